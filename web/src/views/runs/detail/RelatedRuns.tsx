/** Related runs: parents, children and replicas. */
import type { ReactNode } from "react";
import { useGet } from "../../../api/hooks";
import type { Page } from "../../../api/client";
import type { RelatedRun, Replica, Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { Card, StateBadge } from "../../../ui";
import { RunLink } from "../RunLink";
import { runsWords } from "../words";

export function RelatedRuns({ run }: { run: Run }) {
  const t = useWords(runsWords);
  // Listen to all runs: a change of a related run is not announced on this run's topic.
  const how = { rest: 2_000 };
  const parents = useGet<Page<RelatedRun>>("runs", `/runs/${run.id}/parents`, {}, how);
  const children = useGet<Page<RelatedRun>>("runs", `/runs/${run.id}/children`, {}, how);
  const replicas = useGet<Page<Replica>>("runs", `/runs/${run.id}/replicas`, {}, how);
  const groups: [string, ReactNode[]][] = [
    [t.follows, related(parents.data?.items)],
    [t.followedBy, related(children.data?.items)],
    [t.replicas, (replicas.data?.items ?? []).map((one) => <Line key={one.run_id} id={one.run_id} name={one.worker ?? undefined} state={one.state} />)],
  ];
  const shown = groups.filter(([, lines]) => lines.length);
  if (!shown.length && !run.parent_id) return null;
  return (
    <Card title={t.related}>
      <div className="stack">
        {run.parent_id && (
          <div className="row">
            <span className="quiet">{t.replicas}</span> <RunLink id={run.parent_id} />
          </div>
        )}
        {shown.map(([name, lines]) => (
          <div key={name}>
            <h3>{name}</h3>
            <ul>{lines}</ul>
          </div>
        ))}
      </div>
    </Card>
  );
}

const related = (items: RelatedRun[] | undefined) => (items ?? []).map((one) => <Line key={one.id} id={one.id} name={one.job ?? undefined} state={one.state} />);

function Line({ id, name, state }: { id: string; name?: string; state: Run["state"] | null }) {
  return (
    <li className="row spread">
      <span className="row">
        {name && <span className="hostile">{name}</span>}
        <RunLink id={id} />
      </span>
      {state && <StateBadge state={state} />}
    </li>
  );
}
