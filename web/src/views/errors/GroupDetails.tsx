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
import { runsOf, statesOf } from "./groups";
import { errorsWords } from "./words";

interface GroupDetailsProps {
  group: ErrorGroup;
  since: string;
  until: string;
  onRetry?: () => void;
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
            group.fingerprint !== null && [t.fingerprint, <Fingerprint text={group.fingerprint} />],
          ]}
        />
        {group.fingerprint === null && <p className="quiet">{t.old}</p>}
        <div className="row">
          <Link className="button" to={runsOf(group)}>
            {t.runs}
          </Link>
          {onRetry && (
            <Button icon="retry" onClick={onRetry}>
              {t.retryAll}
            </Button>
          )}
        </div>
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

function Fingerprint({ text }: { text: string }) {
  return (
    <span className="row">
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  );
}
