/** Tables of the attempts in the timeline, and of the plan times that did not run. */
import { useMemo } from "react";
import type { TimelineAttempt } from "../../api/schema";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { Link } from "../../router";
import { DataTable, Duration, StateBadge, Time, type Column } from "../../ui";
import { RunLink } from "../runs/RunLink";
import type { Bar, Blank, Row } from "./lanes";
import { laneLink, type By } from "./links";
import type { TimeRange } from "./range";
import { timelineWords } from "./words";

interface Line extends Bar {
  lane: string;
}

const MOST = 500;

export function AttemptTable({ by, rows, range: { from, to } }: { by: By; rows: Row[]; range: TimeRange }) {
  const t = useWords(timelineWords);
  const lines = useMemo(
    () =>
      rows
        .flatMap((row) => row.bars.filter((bar) => bar.end >= from && bar.start <= to).map((bar): Line => ({ ...bar, lane: row.name })))
        .sort((a, b) => b.start - a.start)
        .slice(0, MOST),
    [rows, from, to],
  );
  const columns: Column<Line>[] = [
    { id: "run", name: t.run, width: "8.5rem", cell: ({ attempt }) => <RunLink id={attempt.run_id} /> },
    { id: "lane", name: t[by], clip: true, width: "26%", cell: ({ lane }) => <Link to={laneLink(by, lane)}>{lane}</Link>, sortBy: ({ lane }) => lane },
    { id: "job", name: t.job, clip: true, width: "18%", priority: "low", cell: ({ attempt }) => attempt.job, sortBy: ({ attempt }) => attempt.job },
    { id: "state", name: t.state, cell: ({ state }) => <StateBadge state={state} />, sortBy: ({ state }) => state },
    { id: "started", name: t.started, cell: ({ attempt }) => <Time at={attempt.started_at} />, sortBy: ({ start }) => start },
    { id: "took", name: t.took, number: true, priority: "low", cell: ({ attempt }) => <Took attempt={attempt} />, sortBy: ({ start, end }) => end - start },
    { id: "worker", name: t.onWorker, clip: true, width: "20%", priority: "lowest", cell: ({ attempt }) => attempt.worker_id ?? "–" },
  ];
  const shown = columns.filter(({ id }) => id !== by);
  return (
    <>
      <DataTable
        label={t.chart(rows.length, lines.length)}
        columns={shown}
        rows={lines}
        rowKey={(line) => line.key}
        to={({ attempt }) => `/runs/${attempt.run_id}`}
      />
      <BlankTable by={by} rows={rows} from={from} to={to} />
    </>
  );
}

interface BlankLine extends Blank {
  lane: string;
}

function BlankTable({ by, rows, from, to }: { by: By; rows: Row[]; from: number; to: number }) {
  const t = useWords(timelineWords);
  const states = useWords(common);
  const lines = rows
    .flatMap((row) => row.blanks.filter((blank) => blank.to >= from && blank.from <= to).map((blank): BlankLine => ({ ...blank, lane: row.name })))
    .sort((a, b) => b.from - a.from)
    .slice(0, MOST);
  if (!lines.length) return null;
  const kind = ({ gap }: BlankLine) => (gap.kind === "missed" ? t.missed : states.skipped);
  const columns: Column<BlankLine>[] = [
    { id: "lane", name: t[by], clip: true, width: "26%", cell: ({ lane }) => <Link to={laneLink(by, lane)}>{lane}</Link>, sortBy: ({ lane }) => lane },
    { id: "kind", name: t.state, cell: kind, sortBy: kind },
    { id: "from", name: t.planTime, cell: ({ gap }) => <Time at={gap.from} show="absolute" />, sortBy: (line) => line.from },
    { id: "count", name: t.count, number: true, cell: ({ gap }) => gap.count, sortBy: ({ gap }) => gap.count },
    { id: "reason", name: t.reason, clip: true, priority: "low", cell: ({ gap }) => gap.reason },
  ];
  return <DataTable label={t.unrun} columns={columns} rows={lines} rowKey={(line) => line.key} to={({ gap, lane }) => (gap.run_id ? `/runs/${gap.run_id}` : laneLink(by, lane))} />;
}

function Took({ attempt: { started_at, ended_at } }: { attempt: TimelineAttempt }) {
  return <Duration from={started_at} to={ended_at} />;
}
