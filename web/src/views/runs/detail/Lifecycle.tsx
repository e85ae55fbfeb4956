/** Lifecycle of a run from enqueued to finished, with the duration of each phase. */
import type { ReactNode } from "react";
import type { Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { Countdown, Duration, StateBadge, Time } from "../../../ui";
import { runsWords } from "../words";

export function Lifecycle({ run }: { run: Run }) {
  const t = useWords(runsWords);
  const both = useWords(common);
  const begun = run.started_at !== null;
  return (
    <ol className="run-line" aria-label={t.state}>
      <Stop name={t.created} at={run.created_at} />
      {run.state === "scheduled" ? (
        <Between name={t.due}>
          <Countdown to={run.run_at} />
        </Between>
      ) : (
        <Between name={run.attempt > 1 ? t.earlier(run.attempt - 1) : t.waited}>
          <Duration from={later(run.created_at, run.run_at)} to={run.started_at ?? run.finished_at} />
        </Between>
      )}
      {begun && <Stop name={t.began} at={run.started_at} />}
      {begun && run.state !== "scheduled" && run.state !== "queued" && (
        <Between name={t.ran}>
          <Duration from={run.started_at} to={run.finished_at} />
        </Between>
      )}
      {run.state === "waiting" && run.wait_until && (
        <Between name={t.timesOut}>
          <Countdown to={run.wait_until} />
        </Between>
      )}
      {run.finished_at ? <Stop name={both[run.state]} at={run.finished_at} /> : <li className="run-now"><StateBadge state={run.state} /></li>}
    </ol>
  );
}

const later = (a: string, b: string) => (Date.parse(a) > Date.parse(b) ? a : b);

function Stop({ name, at }: { name: string; at: string | null }) {
  return (
    <li>
      <span className="quiet">{name}</span>
      <Time at={at} show="absolute" />
    </li>
  );
}

function Between({ name, children }: { name: string; children: ReactNode }) {
  return (
    <li className="run-between">
      <span className="quiet">{name}</span>
      {children}
    </li>
  );
}
