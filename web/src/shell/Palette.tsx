/** Command palette (Ctrl-K): pages, jobs, schedules, queues, workers, saved searches and settings, by a part of their name. */
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { part, type Page } from "../api/client";
import { useGet } from "../api/hooks";
import { useWords, words } from "../i18n";
import { usePreferences } from "../preferences";
import { navigate, withSearch } from "../router";
import { Dialog, Icon } from "../ui";
import type { IconName } from "../ui/icons";
import { views } from "../views";
import { useSavedViews } from "../views/runs/list/views";
import { shellWords } from "./words";

export const paletteWords = words({
  en: {
    title: "Go to anything",
    placeholder: "A page, job, schedule, queue, worker or run id",
    results: "Results",
    page: "page",
    job: "job",
    schedule: "schedule",
    queue: "queue",
    worker: "worker",
    view: "saved search",
    setting: "setting",
    run: "run",
    search: "search runs",
    nothing: "Nothing matches",
    keys: "↑ ↓ to move, Enter to open, Esc to close",
  },
  zh: {
    title: "前往任意位置",
    placeholder: "页面、任务、计划、队列、工作进程或运行编号",
    results: "结果",
    page: "页面",
    job: "任务",
    schedule: "计划",
    queue: "队列",
    worker: "工作进程",
    view: "已保存的搜索",
    setting: "设置",
    run: "运行",
    search: "搜索运行",
    nothing: "没有匹配项",
    keys: "↑ ↓ 移动，回车打开，Esc 关闭",
  },
});

interface Entry {
  id: string;
  name: string;
  kind: string;
  icon: IconName;
  act: () => void;
}

interface Named {
  name: string;
}

const MOST = 12;
const HEX_ID = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i;

/** Return how well a name matches: letters at its start are best, letters that are apart are worst; null: not at all. */
function rank(name: string, text: string): number | null {
  const [plain, wanted] = [name.toLowerCase(), text.toLowerCase()];
  const at = plain.indexOf(wanted);
  if (at >= 0) return at === 0 ? 0 : /[\s._:/-]/.test(plain[at - 1]!) ? 1 : 2;
  let from = 0;
  for (const letter of wanted) {
    from = plain.indexOf(letter, from) + 1;
    if (!from) return null;
  }
  return 3;
}

export function Palette({ open, onClose, onHelp }: { open: boolean; onClose: () => void; onHelp: () => void }) {
  const t = useWords(paletteWords);
  return (
    <Dialog title={t.title} open={open} onClose={onClose}>
      <Content onClose={onClose} onHelp={onHelp} />
    </Dialog>
  );
}

function Content({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const t = useWords(paletteWords);
  const id = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(onHelp);
  const wanted = text.trim();
  const found = useMemo(() => {
    const ranked = entries.flatMap((entry) => {
      const place = wanted ? rank(entry.name, wanted) : 0;
      return place === null ? [] : [{ entry, place }];
    });
    const best = ranked.sort((a, b) => a.place - b.place).slice(0, MOST).map(({ entry }) => entry);
    const run = HEX_ID.test(wanted) ? [{ id: "run", name: wanted, kind: t.run, icon: "runs" as const, act: () => navigate(`/runs/${wanted.toLowerCase()}`) }] : [];
    const search = wanted ? [{ id: "search", name: wanted, kind: t.search, icon: "search" as const, act: () => navigate(withSearch("/runs", { q: wanted })) }] : [];
    return [...run, ...best, ...search];
  }, [entries, wanted, t]);
  const active = Math.min(at, found.length - 1);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.act();
  };
  const keys = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const acts: Record<string, () => void> = {
      ArrowDown: () => setAt((active + 1) % found.length),
      ArrowUp: () => setAt((active - 1 + found.length) % found.length),
      Enter: () => choose(found[active]),
    };
    if (!acts[event.key] || !found.length) return;
    event.preventDefault();
    acts[event.key]!();
  };
  return (
    <div className="palette">
      <input
        className="input"
        role="combobox"
        aria-label={t.title}
        aria-expanded={found.length > 0}
        aria-controls={id}
        aria-activedescendant={found.length ? `${id}-${active}` : undefined}
        aria-autocomplete="list"
        placeholder={t.placeholder}
        value={text}
        autoFocus
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <ul ref={list} id={id} role="listbox" aria-label={t.results}>
        {found.map((entry, place) => (
          <li key={entry.id} id={`${id}-${place}`} role="option" aria-selected={place === active} onPointerMove={() => setAt(place)} onClick={() => choose(entry)}>
            <Icon name={entry.icon} />
            <span className="clip">{entry.name}</span>
            <span className="quiet">{entry.kind}</span>
          </li>
        ))}
      </ul>
      {!found.length && <p className="quiet">{t.nothing}</p>}
      <p className="quiet palette-keys">{t.keys}</p>
    </div>
  );
}

function useEntries(onHelp: () => void): Entry[] {
  const t = useWords(paletteWords);
  const s = useWords(shellWords);
  const { language, choose } = usePreferences();
  const saved = useSavedViews();
  const most = { limit: 500 };
  const jobs = useGet<Page<Named>>(null, "/jobs", most);
  const schedules = useGet<Page<Named>>(null, "/schedules", most);
  const queues = useGet<Page<{ queue: string }>>(null, "/queues", most);
  const workers = useGet<Page<Named & { id: string }>>(null, "/workers", most);
  return useMemo(() => {
    const listed = <T extends Named>(items: T[] | undefined, kind: string, icon: IconName, to: (item: T) => string) =>
      (items ?? []).map((item): Entry => ({ id: `${icon} ${to(item)}`, name: item.name, kind, icon, act: () => navigate(to(item)) }));
    const setting = (id: string, name: string, act: () => void): Entry => ({ id: `setting ${id}`, name, kind: t.setting, icon: "system", act });
    return [
      ...views.map((view): Entry => ({ id: `page ${view.id}`, name: view.name[language].name, kind: t.page, icon: view.icon, act: () => navigate(view.routes[0]!.path) })),
      ...saved.map((view): Entry => ({ id: `view ${view.name}`, name: view.name, kind: t.view, icon: "star", act: () => navigate(withSearch("/runs", { q: view.q })) })),
      ...listed(schedules.data?.items, t.schedule, "schedules", (item) => `/schedules/${part(item.name)}`),
      ...listed(jobs.data?.items, t.job, "jobs", (item) => `/jobs/${part(item.name)}`),
      ...listed(queues.data?.items.map(({ queue }) => ({ name: queue })), t.queue, "queues", (item) => `/queues/${part(item.name)}`),
      ...listed(workers.data?.items, t.worker, "workers", (item) => `/workers/${part(item.id)}`),
      setting("light", `${s.theme}: ${s.themeLight}`, () => choose({ theme: "light" })),
      setting("dark", `${s.theme}: ${s.themeDark}`, () => choose({ theme: "dark" })),
      setting("utc", `${s.zone}: ${s.zoneUtc}`, () => choose({ zone: "utc" })),
      setting("local", `${s.zone}: ${s.zoneLocal}`, () => choose({ zone: "local" })),
      setting("en", `${s.language}: English`, () => choose({ language: "en" })),
      setting("zh", `${s.language}: 中文`, () => choose({ language: "zh" })),
      { id: "help", name: s.keys, kind: t.setting, icon: "help", act: onHelp },
    ];
  }, [t, s, language, choose, saved, jobs.data, schedules.data, queues.data, workers.data, onHelp]);
}
