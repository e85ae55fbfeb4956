/** Live log of a run. */
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { api, apiUrl } from "../../../api/client";
import { problemOf, type Problem } from "../../../api/problem";
import type { LogLine, LogPage, Run } from "../../../api/schema";
import { useLocale, useWords } from "../../../i18n";
import { Card, CopyButton, FINAL, ProblemNotice, useZone } from "../../../ui";
import { runsWords } from "../words";

const MOST = 2_000;
const LEVELS: Record<string, string> = { error: "bad", critical: "bad", warning: "warn" };

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
    let after: string | null = null;
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
      source = new EventSource(apiUrl(`/runs/${run.id}/logs`, { follow: "1", after }));
      source.addEventListener("open", () => setFollowing(true));
      source.addEventListener("line", (event) => {
        after = (event as MessageEvent).lastEventId;
        waiting.push(JSON.parse((event as MessageEvent<string>).data) as LogLine);
      });
      source.addEventListener("end", close);
    };
    api
      .get<LogPage>(`/runs/${run.id}/logs`, { last: MOST }, leaving.signal)
      .then((page) => {
        setLines(page.items);
        after = page.next_cursor;
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
          {!!lines?.length && <CopyButton text={lines.map((line) => `${line.at} ${line.level} ${line.logger}: ${line.text}`).join("\n")} />}
        </>
      }
    >
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
        {lines?.length ? lines.map((line) => <Line key={line.cursor} line={line} many={run.attempt > 1} />) : <span className="quiet">{t.noLogYet}</span>}
      </div>
    </Card>
  );
}

function Line({ line, many }: { line: LogLine; many: boolean }) {
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
      <span className="text">{line.text}</span>
    </div>
  );
}
