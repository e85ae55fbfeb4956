/** Table of a run's events, oldest first. */
import type { Problem } from "../../../api/problem";
import type { Event } from "../../../api/schema";
import { writeJson } from "../../../api/json";
import { useWords } from "../../../i18n";
import { Card, DataTable, ProblemNotice, StateBadge, Time, type Column } from "../../../ui";
import { runsWords } from "../words";

export function Events({ events, problem }: { events: Event[] | undefined; problem: Problem | null }) {
  const t = useWords(runsWords);
  const columns: Column<Event>[] = [
    { id: "at", name: t.time, cell: (event) => <Time at={event.at} show="absolute" /> },
    {
      id: "change",
      name: t.change,
      cell: (event) => (
        <span className="row">
          {event.type.replaceAll("_", " ")}
          {event.to && <StateBadge state={event.to} />}
        </span>
      ),
    },
    { id: "by", name: t.by, cell: (event) => <span className="mono hostile">{event.actor ?? "–"}</span>, priority: "low" },
    { id: "fence", name: t.fence, cell: (event) => event.fence ?? "–", number: true, priority: "lowest" },
    { id: "also", name: t.also, cell: (event) => (Object.keys(event.details).length ? <code className="quiet">{writeJson(event.details)}</code> : null), clip: true, width: "30%", priority: "low" },
  ];
  if (problem && !events) return <ProblemNotice problem={problem} />;
  return (
    <Card bare>
      <DataTable label={t.events} columns={columns} rows={events} rowKey={(event) => String(event.seq)} expected={3} />
    </Card>
  );
}
