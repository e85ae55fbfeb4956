/** Related runs: those that it follows and that follow it, its replicas or their parent, and its retries. */
import { useGet } from "../../../api/hooks";
import type { Family, FamilyRun, Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useParameter } from "../../../router";
import { Button, Card, StateBadge } from "../../../ui";
import { RunLink } from "../RunLink";
import { relativesOf } from "./family";
import { graphWords } from "./graphWords";
import { runsWords } from "../words";

const MOST = 200;
const SHOWN = 8;

/** Ask for the family of a run. Listen to all runs: a change of a relative is not announced on this run's topic. */
export function useFamily(id: string) {
  return useGet<Family>("runs", `/runs/${id}/family`, { limit: MOST }, { rest: 2_000, keep: true });
}

export function RelatedRuns({ run }: { run: Run }) {
  const t = useWords(runsWords);
  const g = useWords(graphWords);
  const [, setTab] = useParameter("tab");
  const family = useFamily(run.id);
  if (!family.data || family.data.items.length < 2) return null;
  const { follows, followedBy, replicaOf, replicas, retryOf, retries } = relativesOf(family.data, run.id);
  const groups: [string, FamilyRun[], (one: FamilyRun) => string | null][] = [
    [g.replicaOf, replicaOf, (one) => one.job],
    [t.retryOf, retryOf, () => null],
    [g.retries, retries, () => null],
    [t.follows, follows, (one) => one.job],
    [t.followedBy, followedBy, (one) => one.job],
    [t.replicas, replicas, (one) => one.worker_id],
  ];
  return (
    <Card
      title={t.related}
      actions={
        <Button small onClick={() => setTab("graph")}>
          {g.show}
        </Button>
      }
    >
      <div className="stack">
        {groups
          .filter(([, runs]) => runs.length)
          .map(([name, runs, label]) => (
            <div key={name}>
              <h3>{name}</h3>
              <ul>
                {runs.slice(0, SHOWN).map((one) => (
                  <li key={one.id} className="row spread">
                    <span className="row">
                      {label(one) && <span className="hostile">{label(one)}</span>}
                      <RunLink id={one.id} />
                    </span>
                    {one.state ? <StateBadge state={one.state} /> : <span className="quiet">{g.pruned}</span>}
                  </li>
                ))}
              </ul>
              {runs.length > SHOWN && <p className="quiet">{g.others(runs.length - SHOWN)}</p>}
            </div>
          ))}
      </div>
    </Card>
  );
}
