/** Gantt chart of a family: when each run waited and ran, on one axis. */
import { useWords } from "../../../i18n";
import { Link } from "../../../router";
import { duration, StateBadge, toneOf, useNow } from "../../../ui";
import { type Layout, type Node } from "./family";
import { spansOf } from "./Graph";
import { graphWords } from "./graphWords";

export function Gantt({ layout, self }: { layout: Layout; self: string }) {
  const t = useWords(graphWords);
  const now = useNow();
  const rows = layout.nodes
    .filter((node) => node.run.state !== null)
    .map((node) => ({ node, ...spansOf(node, now) }))
    .sort((a, b) => (a.began ?? a.end) - (b.began ?? b.end) || a.node.layer - b.node.layer);
  const begin = Math.min(...rows.map((row) => row.due));
  const end = Math.max(begin + 1, ...rows.map((row) => row.end));
  const share = (at: number) => ((at - begin) / (end - begin)) * 100;
  const critical = new Set(layout.critical);
  return (
    <table className="table graph-gantt" aria-label={t.gantt}>
      <thead>
        <tr>
          <th scope="col">{t.run}</th>
          <th scope="col">
            <span className="graph-axis">
              <span>0</span>
              <span>{duration((end - begin) / 2)}</span>
              <span>{duration(end - begin)}</span>
            </span>
          </th>
          <th scope="col" className="number">
            {t.took}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ node, due, began, end: until }) => (
          <tr key={node.run.id} data-run={node.run.id} data-self={node.run.id === self ? "" : undefined} data-critical={critical.has(node.run.id) ? "" : undefined}>
            <th scope="row">
              <Name node={node} />
            </th>
            <td>
              <span className={`graph-bar tone-${toneOf(node.run.state!)}`} title={title(t, due, began, until)}>
                {(began ?? until) > due && <i className="graph-wait" style={{ left: `${share(due)}%`, width: `${share(began ?? until) - share(due)}%` }} />}
                {began !== null && <i style={{ left: `${share(began)}%`, width: `max(3px, ${share(until) - share(began)}%)` }} />}
              </span>
            </td>
            <td className="number">{began === null ? "–" : duration(until - began)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Name({ node: { run } }: { node: Node }) {
  return (
    <span className="graph-name">
      <Link className="clip" to={`/runs/${run.id}?tab=graph&as=gantt`} title={run.id}>
        {run.job} <span className="mono quiet">…{run.id.slice(-6)}</span>
      </Link>
      <StateBadge state={run.state!} />
    </span>
  );
}

const title = (t: { waitedFor: (span: string) => string; ranFor: (span: string) => string }, due: number, began: number | null, end: number) =>
  [t.waitedFor(duration(Math.max(0, (began ?? end) - due))), began !== null && t.ranFor(duration(end - began))].filter(Boolean).join(", ");
