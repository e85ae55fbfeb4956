/** Charts of the last hour, day or week, each with a table. */
import { useMemo, type ReactNode } from "react";
import { useGet } from "../../api/hooks";
import type { Problem } from "../../api/problem";
import type { Bucket, Series as Counted } from "../../api/schema";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { useParameter } from "../../router";
import { Card, TimeChart, duration, useNow, type Series } from "../../ui";
import { overviewWords } from "./words";

const MINUTE = 60_000;
const RANGES = {
  "1h": { length: 60 * MINUTE, step: MINUTE, name: "1m" },
  "24h": { length: 24 * 60 * MINUTE, step: 15 * MINUTE, name: "15m" },
  "7d": { length: 7 * 24 * 60 * MINUTE, step: 120 * MINUTE, name: "2h" },
};
type Range = keyof typeof RANGES;
/** Interval at which processes store their counts. */
const OFTEN = 10_000;

/** Return the selected time range, which the address holds. */
export function useRange(): Range {
  const [chosen] = useParameter("range");
  return chosen !== null && chosen in RANGES ? (chosen as Range) : "1h";
}

export function RangeSwitch() {
  const t = useWords(overviewWords);
  const range = useRange();
  const [, choose] = useParameter("range");
  return (
    <div className="ranges" role="group" aria-label={t.range}>
      {(Object.keys(RANGES) as Range[]).map((each) => (
        <button key={each} type="button" aria-pressed={each === range} onClick={() => choose(each === "1h" ? null : each)}>
          {t[each]}
        </button>
      ))}
    </div>
  );
}

export interface Past {
  /** Name of the step in the API. */
  step: string;
  times: number[] | undefined;
  buckets: Bucket[];
  changing: boolean;
  problem: Problem | null;
  again: () => void;
}

export function usePast(): Past {
  const { length, step, name } = RANGES[useRange()];
  // Round to a step, so that the query key changes once per step and not every second.
  const from = Math.floor(useNow() / step) * step - length + step;
  const series = useGet<Counted>(null, "/series", { from: new Date(from).toISOString(), step: name }, { keep: true, every: OFTEN });
  const buckets = series.data?.buckets;
  const times = useMemo(() => buckets?.map((bucket) => Date.parse(bucket.at) / 1_000), [buckets]);
  return { step: name, times, buckets: buckets ?? [], changing: series.isPlaceholderData, problem: series.error, again: () => void series.refetch() };
}

export function Throughput({ past }: { past: Past }) {
  const t = useWords(overviewWords);
  const words = useWords(common);
  const ended = (...states: string[]) => past.buckets.map(({ runs }) => states.reduce((total, state) => total + (runs[state] ?? 0), 0));
  const series: Series[] = [
    { name: words.succeeded, tone: "good", values: ended("succeeded") },
    { name: words.failed, tone: "bad", values: ended("failed", "timed_out", "expired") },
    { name: words.cancelled, tone: "warn", values: ended("cancelled") },
    { name: words.skipped, tone: "idle", dashed: true, values: ended("skipped") },
  ];
  return (
    <ChartCard title={t.throughput} about={t.throughputAbout(past.step)} past={past}>
      <Chart label={t.throughput} times={past.times} series={series} stacked />
    </ChartCard>
  );
}

export function History({ past }: { past: Past }) {
  const t = useWords(overviewWords);
  const words = useWords(common);
  const pick = (value: (bucket: Bucket) => number | null) => past.buckets.map(value);
  const depth: Series[] = [
    { name: words.queued, tone: "wait", area: true, values: pick((bucket) => bucket.queued) },
    { name: words.running, tone: "busy", dashed: true, values: pick((bucket) => bucket.running) },
  ];
  const durations: Series[] = [
    { name: "p50", tone: "busy", area: true, values: pick((bucket) => bucket.duration_p50_ms) },
    { name: "p95", tone: "bad", dashed: true, values: pick((bucket) => bucket.duration_p95_ms) },
  ];
  const lateness: Series[] = [
    { name: "p50", tone: "busy", area: true, values: pick((bucket) => bucket.lag_p50_ms) },
    { name: "p95", tone: "bad", dashed: true, values: pick((bucket) => bucket.lag_p95_ms) },
  ];
  return (
    <section className="overview-charts" aria-label={t.history}>
      <ChartCard title={t.depth} about={t.depthAbout} past={past}>
        <Chart label={t.depth} times={past.times} series={depth} />
      </ChartCard>
      <ChartCard title={t.durations} about={t.durationsAbout} past={past}>
        <Chart label={t.durations} times={past.times} series={durations} format={span} />
      </ChartCard>
      <ChartCard title={t.lateness} about={t.latenessAbout} past={past}>
        <Chart label={t.lateness} times={past.times} series={lateness} format={span} />
      </ChartCard>
    </section>
  );
}

function ChartCard({ title, about, past, children }: { title: string; about: string; past: Past; children: ReactNode }) {
  return (
    <div className="overview-chart" aria-busy={past.changing || !past.times}>
      <Card
        title={
          <>
            {title} <span className="overview-about">{about}</span>
          </>
        }
      >
        {children}
      </Card>
    </div>
  );
}

interface ChartProps {
  label: string;
  times: number[] | undefined;
  series: Series[];
  stacked?: boolean;
  format?: (value: number) => string;
}

function Chart({ times, series, ...rest }: ChartProps) {
  const t = useWords(overviewWords);
  if (!times) return <div className="overview-nothing" />;
  if (series.every(({ values }) => values.every((value) => !value))) {
    return (
      <div className="overview-nothing quiet">
        <span>{t.nothingCounted}</span>
        <span>{t.counting}</span>
      </div>
    );
  }
  return <TimeChart times={times} series={series} height={HEIGHT} {...rest} />;
}

const HEIGHT = 168;
const span = (milliseconds: number) => (milliseconds ? duration(milliseconds) : "0");
