/** Tab of a run with its whole family: as a graph, as a Gantt chart, and as a table. */
import { useMemo } from "react";
import type { Family, Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useParameter } from "../../../router";
import { Card, DataTable, duration, EmptyState, ProblemNotice, StateBadge, Time, useNow, type Column } from "../../../ui";
import { RunLink } from "../RunLink";
import { layoutOf, type Layout, type Node } from "./family";
import { Gantt } from "./Gantt";
import { GraphPicture } from "./GraphPicture";
import { graphWords } from "./graphWords";
import { useFamily } from "./RelatedRuns";
import "./graph.css";

const VIEWS = ["graph", "gantt", "table"] as const;

export function GraphTab({ run }: { run: Run }) {
  const t = useWords(graphWords);
  const [as, show] = useParameter("as");
  const family = useFamily(run.id);
  const view = VIEWS.find((each) => each === as) ?? "graph";
  const layout = useMemo(() => family.data && layoutOf(family.data), [family.data]);
  if (family.error && !family.data) return <ProblemNotice problem={family.error} onRetry={() => void family.refetch()} />;
  if (!family.data || !layout) return <Card>{<span className="skeleton" style={{ width: "60%" }} />}</Card>;
  if (family.data.items.length < 2) return <Card><EmptyState title={t.alone}>{t.aloneAbout}</EmptyState></Card>;
  return (
    <Card
      bare
      title={<Critical layout={layout} />}
      actions={
        <div className="ranges" role="group" aria-label={t.as}>
          {VIEWS.map((each) => (
            <button key={each} type="button" aria-pressed={each === view} onClick={() => show(each === "graph" ? null : each)}>
              {t[each]}
            </button>
          ))}
        </div>
      }
    >
      {family.data.truncated && <p className="graph-cut tone-warn">{t.truncated(family.data.items.length)}</p>}
      {view === "graph" ? <GraphPicture layout={layout} self={run.id} /> : view === "gantt" ? <Gantt layout={layout} self={run.id} /> : <FamilyTable family={family.data} layout={layout} self={run.id} />}
    </Card>
  );
}

/** Return how long a run waited and ran, in milliseconds; null where it has not yet. */
export function spansOf({ run }: Node, now: number): { due: number; began: number | null; end: number } {
  const due = Math.max(Date.parse(run.created_at ?? ""), Date.parse(run.run_at ?? run.created_at ?? ""));
  const began = run.started_at ? Date.parse(run.started_at) : null;
  return { due, began, end: run.finished_at ? Date.parse(run.finished_at) : Math.max(now, began ?? due) };
}

function Critical({ layout }: { layout: Layout }) {
  const t = useWords(graphWords);
  const now = useNow();
  const path = layout.critical.flatMap((id) => layout.nodes.find((node) => node.run.id === id && node.run.state !== null) ?? []);
  if (path.length < 2) return t.tab;
  const spans = path.map((node) => spansOf(node, now));
  const whole = Math.max(...spans.map((span) => span.end)) - Math.min(...spans.map((span) => span.due));
  const took = spans.map((span) => (span.began === null ? 0 : span.end - span.began));
  const longest = took.indexOf(Math.max(...took));
  return (
    <span className="graph-title">
      {t.critical(path.length, duration(whole))}
      {took[longest]! > 0 && <span className="quiet"> · {t.longest(path[longest]!.run.job ?? "", duration(took[longest]!))}</span>}
    </span>
  );
}

function FamilyTable({ family, layout, self }: { family: Family; layout: Layout; self: string }) {
  const t = useWords(graphWords);
  const now = useNow();
  const critical = new Set(layout.critical);
  const rows = [...layout.nodes].sort((a, b) => a.layer - b.layer || (a.run.id < b.run.id ? -1 : 1));
  const took = (node: Node) => {
    const { began, end } = spansOf(node, now);
    return began === null ? null : end - began;
  };
  const waited = (node: Node) => {
    const { due, began, end } = spansOf(node, now);
    return Number.isNaN(due) ? null : Math.max(0, (began ?? end) - due);
  };
  const columns: Column<Node>[] = [
    { id: "run", name: t.run, cell: ({ run }) => <RunLink id={run.id} />, width: "9rem" },
    { id: "job", name: t.job, clip: true, width: "20%", cell: ({ run }) => `${run.job ?? t.pruned}${run.id === self ? ` (${t.self})` : ""}`, sortBy: ({ run }) => run.job },
    { id: "state", name: t.state, cell: ({ run }) => (run.state ? <StateBadge state={run.state} /> : <span className="quiet">{t.pruned}</span>), sortBy: ({ run }) => run.state },
    { id: "began", name: t.began, cell: ({ run }) => <Time at={run.started_at} />, sortBy: ({ run }) => run.started_at, priority: "low" },
    { id: "waited", name: t.waited, number: true, priority: "low", cell: (node) => span(waited(node)), sortBy: waited },
    { id: "took", name: t.took, number: true, cell: (node) => span(took(node)), sortBy: took },
    { id: "path", name: t.onPath, priority: "low", cell: ({ run }) => (critical.has(run.id) ? t.yes : "") },
    {
      id: "because",
      name: t.because,
      clip: true,
      priority: "lowest",
      cell: ({ run }) => family.links.filter((link) => link.to === run.id).map((link) => <span key={link.from + link.kind}>{t[link.kind as "retry"]} <RunLink id={link.from} /> </span>),
    },
  ];
  return <DataTable label={t.tab} columns={columns} rows={rows} rowKey={({ run }) => run.id} to={({ run }) => `/runs/${run.id}`} />;
}

const span = (milliseconds: number | null) => (milliseconds === null ? "–" : duration(milliseconds));
