/** Details of an error group: runs over time, outcomes and the newest error. */
import { useMemo } from "react";
import { useGet } from "../../api/hooks";
import type { ErrorGroup, Run } from "../../api/schema";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { Link } from "../../router";
import { Button, CopyButton, Facts, ProblemNotice, StateBadge, Time, TimeChart } from "../../ui";
import { RunLink } from "../runs/RunLink";
import { ErrorCard } from "../runs/detail/ErrorCard";
import { keyOf, partsOf, runsOf, statesOf } from "./groups";
import { errorsWords } from "./words";

interface GroupDetailsProps {
  group: ErrorGroup;
  since: string;
  until: string;
  onRetry?: (group: ErrorGroup) => void;
}

export function GroupDetails({ group, since, until, onRetry }: GroupDetailsProps) {
  const t = useWords(errorsWords);
  const states = useWords(common);
  const run = useGet<Run>(null, `/runs/${group.last_run_id}`, { steps: false }, { keep: true });
  const times = useMemo(() => {
    const [from, to] = [Date.parse(since) / 1_000, Date.parse(until) / 1_000];
    return group.histogram.map((_, part) => Math.round(from + ((to - from) * part) / group.histogram.length));
  }, [since, until, group.histogram]);
  return (
    <div className="errors-newest">
      <div className="errors-facts">
        <Facts
          items={[
            [t.outcomes, <States group={group} />],
            [t.first, <Time at={group.first_at} show="both" />],
            [t.last, <Time at={group.last_at} show="both" />],
            [t.newest, <RunLink id={group.last_run_id} />],
            group.fingerprint !== null && !partsOf(group).length && [t.fingerprint, <Fingerprint text={group.fingerprint} />],
          ]}
        />
        {group.fingerprint === null && <p className="quiet">{t.old}</p>}
        <div className="row">
          <Link className="button" to={runsOf(group)}>
            {t.runs}
          </Link>
          {onRetry && group.fingerprint && !partsOf(group).length && (
            <Button icon="retry" onClick={() => onRetry(group)}>
              {t.retryAll}
            </Button>
          )}
        </div>
        <Parts group={group} onRetry={onRetry} />
      </div>
      <TimeChart label={t.overTime} times={times} series={[{ name: states.failed, tone: "bad", values: [...group.histogram] }]} height={130} stacked />
      <div className="errors-error">
        {run.error ? run.error.status === 404 ? <p className="quiet">{t.gone}</p> : <ProblemNotice problem={run.error} /> : null}
        {run.data?.error && <ErrorCard run={run.data} error={run.data.error} />}
        {run.data && !run.data.error && run.data.reason && <p className="hostile">{run.data.reason}</p>}
      </div>
    </div>
  );
}

function States({ group }: { group: ErrorGroup }) {
  return (
    <span className="errors-states">
      {statesOf(group).map(([state, count]) => (
        <span key={state}>
          <StateBadge state={state} /> {count.toLocaleString()}
        </span>
      ))}
    </span>
  );
}

/** The jobs with this error, each with its runs and a button to retry them. */
function Parts({ group, onRetry }: { group: ErrorGroup; onRetry?: (group: ErrorGroup) => void }) {
  const t = useWords(errorsWords);
  const parts = partsOf(group);
  if (!parts.length) return null;
  return (
    <ul className="errors-parts" aria-label={t.inJobs}>
      {parts.map((part) => (
        <li key={keyOf(part)} className="row spread">
          <Link className="clip" to={runsOf(part)}>
            {part.job}
          </Link>
          <span className="row">
            {part.count.toLocaleString()}
            {onRetry && part.fingerprint && (
              <Button small icon="retry" label={t.retryAllOf(group.type ?? t.unsaid, part.job)} onClick={() => onRetry(part)} />
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Fingerprint({ text }: { text: string }) {
  return (
    <span className="row">
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  );
}
