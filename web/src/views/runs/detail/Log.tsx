/** Live log of a run, searched and filtered by level, and as a file. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { api, apiUrl } from "../../../api/client";
import { problemOf, type Problem } from "../../../api/problem";
import type { LogLine, LogPage, Run } from "../../../api/schema";
import { useLocale, useWords } from "../../../i18n";
import { Button, Card, CopyButton, FINAL, ProblemNotice, SearchBox, useToasts, useZone } from "../../../ui";
import { runsWords } from "../words";

const MOST = 2_000;
const LEVELS: Record<string, string> = { error: "bad", critical: "bad", warning: "warn" };
const RANKS = ["debug", "info", "warning", "error", "critical"] as const;
type Level = (typeof RANKS)[number];
/** A log of fewer lines needs no search. */
const FEW = 4;

export const textOf = (lines: LogLine[]) => lines.map((line) => `${line.at} ${line.level} ${line.logger}: ${line.text}`).join("\n");

/** Load the whole log, page after page. */
async function wholeLog(id: string): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: LogPage = await api.get<LogPage>(`/runs/${id}/logs`, { cursor });
    lines.push(...page.items);
    if (page.next_cursor === null) return lines;
    cursor = page.next_cursor;
  }
}

interface Followed {
  lines: LogLine[] | null;
  following: boolean;
  problem: Problem | null;
}

/** Load the last lines, and follow new ones while the run is active and the page is visible. */
function useLog(run: Run): Followed {
  const [lines, setLines] = useState<LogLine[] | null>(null);
  const [following, setFollowing] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const over = FINAL.has(run.state);
  useEffect(() => {
    const waiting: LogLine[] = [];
    const leaving = new AbortController();
    let source: EventSource | null = null;
    let cursor: string | null = null;
    const flush = window.setInterval(() => {
      if (!waiting.length) return;
      const more = waiting.splice(0);
      setLines((before) => [...(before ?? []), ...more].slice(-MOST));
    }, 100);
    const close = () => {
      source?.close();
      source = null;
      setFollowing(false);
    };
    const follow = () => {
      if (document.hidden) return close();
      if (source || leaving.signal.aborted) return;
      source = new EventSource(apiUrl(`/runs/${run.id}/logs`, { follow: "1", cursor }));
      source.addEventListener("open", () => setFollowing(true));
      source.addEventListener("line", (event) => {
        cursor = (event as MessageEvent).lastEventId;
        waiting.push(JSON.parse((event as MessageEvent<string>).data) as LogLine);
      });
      source.addEventListener("end", close);
    };
    api
      .get<LogPage>(`/runs/${run.id}/logs`, { tail: MOST, limit: MOST }, leaving.signal)
      .then((page) => {
        setLines(page.items);
        cursor = page.items.at(-1)?.cursor ?? null;
        if (over) return;
        follow();
        document.addEventListener("visibilitychange", follow);
      })
      .catch((error: unknown) => leaving.signal.aborted || setProblem(problemOf(error)));
    return () => {
      leaving.abort();
      window.clearInterval(flush);
      document.removeEventListener("visibilitychange", follow);
      close();
    };
  }, [run.id, over]);
  return { lines, following, problem };
}

export function Log({ run }: { run: Run }) {
  const t = useWords(runsWords);
  const { lines, following, problem } = useLog(run);
  const box = useRef<HTMLDivElement>(null);
  const below = useRef(true);
  const [text, setText] = useState("");
  const [level, setLevel] = useState<Level>("debug");
  const shown = useMemo(() => lines?.filter((line) => isShown(line, text, level)), [lines, text, level]);
  useLayoutEffect(() => {
    if (box.current && below.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  if (problem) return <ProblemNotice problem={problem} />;
  if (!lines?.length && (FINAL.has(run.state) || run.attempt === 0)) return null;
  return (
    <Card
      title={t.log}
      bare
      actions={
        <>
          {following && <span className="live" data-state="live">{t.following}</span>}
          {!!lines?.length && <CopyButton text={textOf(shown ?? [])} />}
          {!!lines?.length && <Download run={run} />}
        </>
      }
    >
      {(lines?.length ?? 0) >= FEW && (
        <div className="run-logtools">
          <SearchBox label={t.searchLog} placeholder={t.searchLog} value={text} onChange={setText} />
          <select className="input" aria-label={t.level} value={level} onChange={(event) => setLevel(event.target.value as Level)}>
            <option value="debug">{t.allLevels}</option>
            {RANKS.slice(1).map((each) => (
              <option key={each} value={each}>
                {t.fromLevel(each)}
              </option>
            ))}
          </select>
          <span className="quiet" role="status">
            {shown!.length < lines!.length ? t.oneOfLines(shown!.length, lines!.length) : t.linesOf(lines!.length)}
          </span>
        </div>
      )}
      <div
        ref={box}
        className="run-log"
        role="log"
        aria-label={t.log}
        tabIndex={0}
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          below.current = scrollHeight - scrollTop - clientHeight < 24;
        }}
      >
        {shown?.length ? shown.map((line) => <Line key={line.cursor} line={line} many={run.attempt > 1} found={text.trim()} />) : <span className="quiet">{lines?.length ? t.noLine : t.noLogYet}</span>}
      </div>
    </Card>
  );
}

function isShown(line: LogLine, text: string, level: Level): boolean {
  const rank = RANKS.indexOf(line.level.toLowerCase() as Level);
  if (level !== "debug" && rank < RANKS.indexOf(level)) return false;
  const wanted = text.trim().toLowerCase();
  return !wanted || `${line.logger} ${line.text}`.toLowerCase().includes(wanted);
}

function Download({ run }: { run: Run }) {
  const t = useWords(runsWords);
  const toasts = useToasts();
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const address = URL.createObjectURL(new Blob([textOf(await wholeLog(run.id)), "\n"], { type: "text/plain" }));
      const link = document.createElement("a");
      Object.assign(link, { href: address, download: `${run.job}-${run.id.slice(-12)}.log` });
      link.click();
      window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
    } catch (error) {
      toasts.complain(error as Problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button small look="plain" icon="download" label={t.download} busy={busy} onClick={() => void save()} />
  );
}

/** Text with the places marked that were searched for. */
function Marked({ text, found }: { text: string; found: string }) {
  if (!found) return text;
  const parts: ReactNode[] = [];
  const plain = text.toLowerCase();
  const wanted = found.toLowerCase();
  let from = 0;
  for (let at = plain.indexOf(wanted); at >= 0; at = plain.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + found.length)}</mark>);
    from = at + found.length;
  }
  return [...parts, text.slice(from)];
}

function Line({ line, many, found }: { line: LogLine; many: boolean; found: string }) {
  const zone = useZone();
  const locale = useLocale();
  const time = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23", timeZone: zone }).format(new Date(line.at));
  return (
    <div className={`run-logline tone-${LEVELS[line.level.toLowerCase()] ?? "idle"}`}>
      <time dateTime={line.at} title={line.at}>
        {many ? `#${line.attempt} ` : ""}
        {time}
      </time>
      <span className="level">{line.level.toLowerCase()}</span>
      <span className="text">
        <Marked text={line.text} found={found} />
      </span>
    </div>
  );
}
