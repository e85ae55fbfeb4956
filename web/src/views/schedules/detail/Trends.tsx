/** Charts of duration and lateness of recent runs. */
import { useMemo } from "react";
import { useWords } from "../../../i18n";
import { Card, TimeChart, duration } from "../../../ui";
import { detailWords } from "./words";
import type { Schedule } from "../types";

interface Point {
  duration: number | null;
  lateness: number | null;
}

const most = (one: number | null, other: number | null) => (one === null ? other : other === null ? one : Math.max(one, other));

export function Trends({ schedule }: { schedule: Schedule }) {
  const t = useWords(detailWords);
  const { recent } = schedule;
  const { times, points } = useMemo(() => {
    // One point per plan time: the slowest of several scopes.
    const byTime = new Map<number, Point>();
    for (const run of recent ?? []) {
      if (run.duration_ms === null && run.lateness_ms === null) continue;
      const at = Date.parse(run.plan_time) / 1_000;
      const known = byTime.get(at) ?? { duration: null, lateness: null };
      byTime.set(at, { duration: most(known.duration, run.duration_ms), lateness: most(known.lateness, run.lateness_ms) });
    }
    const sorted = [...byTime].sort(([one], [other]) => one - other);
    return { times: sorted.map(([at]) => at), points: sorted.map(([, point]) => point) };
  }, [recent]);
  const charts = [
    { name: t.duration, values: points.map((point) => point.duration), tone: "busy" as const },
    { name: t.lateness, values: points.map((point) => point.lateness), tone: "wait" as const },
  ];
  return (
    <div className="schedules-pair">
      {charts.map((series) => (
        <Card key={series.name} title={series.name}>
          {times.length ? (
            <TimeChart label={series.name} times={times} series={[{ ...series, area: true }]} height={140} format={(value) => (value ? duration(value) : "0")} zone={schedule.timezone} />
          ) : (
            <p className="quiet">{t.noRuns}</p>
          )}
        </Card>
      ))}
    </div>
  );
}
