/** What cannot be shown attempt by attempt: a shade over it, and the number of finished runs for each column of time. */
import { useGet } from "../../api/hooks";
import type { Series } from "../../api/schema";
import { useWords } from "../../i18n";
import type { TimeRange } from "./range";
import { timelineWords } from "./words";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Counts of single minutes are kept for two days. */
const FINE = 47 * HOUR;
const COLUMNS = 120;
const HEIGHT = 40;
const BAD = ["failed", "timed_out", "expired"];

export function Shade({ width, height }: { width: number; height: number }) {
  return (
    <g className="timeline-shade">
      <defs>
        <pattern id="timeline-hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="8" height="8" className="timeline-hatch-back" />
          <line x1="0" y1="0" x2="0" y2="8" />
        </pattern>
      </defs>
      <rect width={width} height={height} fill="url(#timeline-hatch)" />
    </g>
  );
}

/** Length of a column: whole minutes, or whole hours if the range begins long ago. */
function stepOf(from: number, to: number, now: number): number {
  const unit = from < now - FINE ? HOUR : MINUTE;
  return Math.max(1, Math.ceil((to - from) / COLUMNS / unit)) * unit;
}

export function Density({ range: { from, to, span, now }, width, complete }: { range: TimeRange; width: number; complete: number }) {
  const t = useWords(timelineWords);
  const until = Math.min(to, now);
  const step = stepOf(from, until, now);
  const first = Math.floor(from / step) * step;
  const last = Math.max(first + step, Math.ceil(until / step) * step);
  const question = { from: new Date(first).toISOString(), to: new Date(last).toISOString(), step: `${step / MINUTE}m` };
  const series = useGet<Series>("runs", "/series", question, { keep: true, rest: 5_000 });
  const x = (at: number) => ((at - from) / span) * width;
  const columns = (series.data?.buckets ?? []).map((bucket) => {
    const all = Object.entries(bucket.runs).filter(([state]) => state !== "skipped");
    const count = all.reduce((sum, [, runs]) => sum + runs, 0);
    return { at: Date.parse(bucket.at), count, bad: all.reduce((sum, [state, runs]) => sum + (BAD.includes(state) ? runs : 0), 0) };
  });
  const most = Math.max(1, ...columns.map((column) => column.count));
  const total = columns.reduce((sum, column) => sum + (column.at < complete ? column.count : 0), 0);
  const tall = (count: number) => (count ? Math.max(1.5, (count / most) * (HEIGHT - 6)) : 0);
  const wide = Math.max(1, x(from + step) - 1);
  return (
    <>
      <div className="timeline-density-name">
        <span>{t.density}</span>
        <span className="quiet">{t.densityMost(most.toLocaleString())}</span>
      </div>
      <div className="timeline-density" role="img" aria-label={t.densityAbout(total.toLocaleString())}>
        <svg width={width} height={HEIGHT} aria-hidden="true">
          <Shade width={Math.max(0, Math.min(width, x(complete)))} height={HEIGHT} />
          {columns.map((column) => (
            <g key={column.at}>
              <title>{`${new Date(column.at).toLocaleString()}: ${column.count}`}</title>
              <rect className="timeline-count" x={x(column.at)} y={HEIGHT - tall(column.count)} width={wide} height={tall(column.count)} />
              <rect className="timeline-count tone-bad" x={x(column.at)} y={HEIGHT - tall(column.bad)} width={wide} height={tall(column.bad)} />
            </g>
          ))}
        </svg>
      </div>
    </>
  );
}
