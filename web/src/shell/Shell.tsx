/** Frame around every view: navigation, search, live switch and settings. */
import { useCallback, useEffect, useRef, useState, type ReactNode } from "react";
import { useWhoAmI } from "../api/hooks";
import { api } from "../api/client";
import { useLiveState } from "../api/live";
import { useWords } from "../i18n";
import { usePreferences, type Language, type Theme, type Zone } from "../preferences";
import { href, lazily, Link, navigate, usePlace, withSearch } from "../router";
import { HintedButton, Icon, Menu, SearchBox, useKeys, useToasts } from "../ui";
import { views } from "../views";
import type { View } from "../views/view";
import { CopyNotice } from "./CopyNotice";
import { useCounts, type ItemCount } from "./counts";
import { usePaletteKeys } from "./paletteKeys";
import { shellWords } from "./words";

const MOST = 99;
const LANGUAGES: Record<Language, string> = { en: "English", zh: "中文" };

const KeyHelp = lazily(() => import("./KeyHelp").then((file) => file.KeyHelp));
const Palette = lazily(() => import("./Palette").then((file) => file.Palette));
/** Overlays whose code is loaded ahead. */
export const OVERLAYS = [Palette, KeyHelp];

export function Shell({ children }: { children: ReactNode }) {
  const t = useWords(shellWords);
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState(false);
  const showHelp = useCallback(() => setHelp(true), []);
  usePaletteKeys(() => setPalette((open) => !open));
  useKeys({
    "?": () => setHelp(true),
    "/": (event) => {
      const boxes = [...document.querySelectorAll<HTMLInputElement>('input[data-shortcut="/"]')];
      const box = boxes.find((each) => each.closest("main")) ?? boxes[0];
      if (!box) return;
      event.preventDefault();
      box.focus();
      box.select();
    },
  });
  return (
    <div className="shell">
      <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        {t.skip}
      </a>
      <Rail />
      <div className="body">
        <TopBar onHelp={() => setHelp(true)} />
        <main id="main" tabIndex={-1}>
          <CopyNotice />
          {children}
        </main>
      </div>
      {help && <KeyHelp open onClose={() => setHelp(false)} />}
      {palette && <Palette open onClose={() => setPalette(false)} onHelp={showHelp} />}
    </div>
  );
}

function Rail() {
  const t = useWords(shellWords);
  const { path } = usePlace();
  const rail = useRef<HTMLElement>(null);
  const counts = useCounts();
  useEffect(() => {
    // On a phone the navigation may be wider than the screen. Do this only there: otherwise Tab would continue from the scrolled link.
    const bar = rail.current;
    if (!bar || [bar, ...bar.children].every((part) => part.scrollWidth <= part.clientWidth)) return;
    bar.querySelector('[aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [path]);
  return (
    <nav ref={rail} className="rail" aria-label={t.navigation}>
      <Link to="/" className="brand" aria-label="rota">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <circle cx="16" cy="16" r="14" fill="none" stroke="currentColor" strokeWidth="3" />
          <path d="M16 8v8.5l5.5 3.2" fill="none" stroke="currentColor" strokeWidth="3" strokeLinecap="round" strokeLinejoin="round" />
        </svg>
        <span className="label">rota</span>
      </Link>
      <ul>
        {views.map((view) => (
          <RailItem key={view.id} view={view} path={path} counted={counts[view.id]} />
        ))}
      </ul>
      <div className="foot">
        <a href={href("/docs")}>{t.api}</a>
      </div>
    </nav>
  );
}

function RailItem({ view, path, counted }: { view: View; path: string; counted: ItemCount | undefined }) {
  const t = useWords(shellWords);
  const name = useWords(view.name).name;
  const root = view.routes[0]!.path;
  const current = root === "/" ? path === "/" : path === root || path.startsWith(`${root}/`) || path.startsWith(`${root}:`);
  return (
    <li>
      <Link to={root} aria-current={current ? "page" : undefined} title={name}>
        <Icon name={view.icon} />
        <span className="label">{name}</span>
        {counted && (
          <>
            <span className={`count tone-${counted.grave ? "bad" : "warn"}`} aria-hidden="true">{counted.count > MOST ? `${MOST}+` : counted.count}</span>
            <span className="unseen">{t.counted(counted.count)}</span>
          </>
        )}
      </Link>
    </li>
  );
}

function TopBar({ onHelp }: { onHelp: () => void }) {
  const t = useWords(shellWords);
  const [text, setText] = useState("");
  const { path } = usePlace();
  const search = () => {
    const wanted = text.trim();
    if (!wanted) return;
    navigate(/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(wanted) ? `/runs/${wanted.toLowerCase()}` : withSearch("/runs", { q: wanted }));
    setText("");
  };
  return (
    <header className="top">
      <div className="search">
        {path !== "/runs" && <SearchBox label={t.search} placeholder={t.searchHint} value={text} onChange={setText} onEnter={search} shortcut="/" />}
      </div>
      <LiveSwitch />
      <span className="wide row">
        <ZoneSwitch />
        <LanguageSwitch />
      </span>
      <ThemeSwitch />
      <button type="button" className="button plain icon wide" aria-label={t.keys} title={t.keys} onClick={onHelp}>
        <Icon name="help" />
      </button>
      <Account />
    </header>
  );
}

function LiveSwitch() {
  const t = useWords(shellWords);
  const [state, toggle] = useLiveState();
  const about = state === "off" ? t.offAbout : state === "polling" ? t.pollingAbout : t.liveAbout;
  return (
    <HintedButton text={about} className="button plain" onPress={toggle}>
      <span className="live" data-state={state}>
        {t[state]}
      </span>
    </HintedButton>
  );
}

function ZoneSwitch() {
  const t = useWords(shellWords);
  const { zone, choose } = usePreferences();
  const names: Record<Zone, string> = { local: t.zoneLocal, utc: t.zoneUtc, schedule: t.zoneSchedule };
  return (
    <Menu
      label={`${t.zone}: ${names[zone]}`}
      icon="clock"
      text={names[zone]}
      chosen={zone}
      entries={Object.entries(names).map(([id, name]) => ({ id, name }))}
      onAction={(id) => choose({ zone: id as Zone })}
    />
  );
}

function ThemeSwitch() {
  const t = useWords(shellWords);
  const { theme, choose } = usePreferences();
  const names: Record<Theme, string> = { system: t.themeSystem, light: t.themeLight, dark: t.themeDark };
  const icons = { system: "system", light: "sun", dark: "moon" } as const;
  return (
    <Menu
      label={`${t.theme}: ${names[theme]}`}
      icon={icons[theme]}
      chosen={theme}
      entries={Object.entries(names).map(([id, name]) => ({ id, name }))}
      onAction={(id) => choose({ theme: id as Theme })}
    />
  );
}

function LanguageSwitch() {
  const t = useWords(shellWords);
  const { language, choose } = usePreferences();
  return (
    <Menu
      label={`${t.language}: ${LANGUAGES[language]}`}
      icon="globe"
      chosen={language}
      entries={Object.entries(LANGUAGES).map(([id, name]) => ({ id, name }))}
      onAction={(id) => choose({ language: id as Language })}
    />
  );
}

/** Account menu. On a phone it also holds the settings, which have no room in the bar. */
function Account() {
  const t = useWords(shellWords);
  const { data: identity, error } = useWhoAmI();
  const { choose } = usePreferences();
  const toasts = useToasts();
  const act = (id: string) => {
    const [kind, value] = id.split(":");
    if (kind === "zone") choose({ zone: value as Zone });
    else if (kind === "language") choose({ language: value as Language });
    else if (kind === "out") void signOut().catch(toasts.complain);
  };
  // Show the menu even if the token may see nothing, so that the user can sign out.
  if (!identity && error?.status !== 403) return null;
  const named = identity?.actor !== "api";
  const entries = [
    ...(named ? [{ id: "out", name: t.signOut }] : []),
    { id: "zone:local", name: t.zoneLocal },
    { id: "zone:utc", name: t.zoneUtc },
    { id: "language:en", name: LANGUAGES.en },
    { id: "language:zh", name: LANGUAGES.zh },
  ];
  const who = identity ? `${identity.actor.replace(/^token:/, "")} · ${identity.role}` : "?";
  return <Menu label={`${t.account}: ${who}`} icon="person" text={named ? who : undefined} entries={entries} onAction={act} />;
}

async function signOut(): Promise<void> {
  await api.delete("/session");
  window.location.reload();
}
