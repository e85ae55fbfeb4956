/** Duration of a run against the usual band of its job: from the median to the 95th percentile. */
import type { Run } from "../../../api/schema";
import { useLocale, useWords } from "../../../i18n";
import { Badge, duration, FINAL, useNow, type Tone } from "../../../ui";
import { useStats } from "../../jobs/stats";
import { usualWords } from "./usualWords";

/** A band of fewer runs says nothing. */
const LEAST = 5;
/** Shares of the median below which a run was shorter, and much shorter. */
const SHORT = 0.75;
const VERY_SHORT = 0.25;

export interface Band {
  p50: number;
  p95: number;
}

/** Return the band in milliseconds, or null if too few runs are known, or the job may not be seen. */
export function useBand(job: string): Band | null {
  const stats = useStats(job).data;
  if (!stats || stats.succeeded < LEAST || stats.p50_duration_ms == null || stats.p95_duration_ms == null) return null;
  return { p50: stats.p50_duration_ms, p95: stats.p95_duration_ms };
}

export function Usual({ run }: { run: Run }) {
  const t = useWords(usualWords);
  const locale = useLocale();
  const band = useBand(run.job);
  const now = useNow();
  if (!band || !run.started_at) return null;
  const took = Math.max(0, (run.finished_at ? Date.parse(run.finished_at) : now) - Date.parse(run.started_at));
  const ratio = took / Math.max(1, band.p50);
  const over = FINAL.has(run.state);
  // The percentile is exact to 5 %, and may be this very run.
  const long = took - band.p50 > 50 && (took > band.p95 * 1.05 || (took > band.p95 * 0.95 && ratio >= 2));
  const factor = new Intl.NumberFormat(locale, { maximumSignificantDigits: 2 }).format(ratio);
  const tone: Tone = long ? (ratio >= 3 ? "bad" : "warn") : "idle";
  const verdict = long ? (over ? t.longer(factor) : t.longerAlready(factor)) : over && ratio < SHORT && run.state === "succeeded" ? (ratio < VERY_SHORT ? t.muchShorter : t.shorter) : over ? t.usual : t.within;
  const most = Math.max(band.p95 * 1.25, took * 1.04, 1);
  const share = (value: number) => `${Math.min(100, (value / most) * 100).toFixed(2)}%`;
  return (
    <div className={`run-usual tone-${tone}`}>
      <div className="run-band" aria-hidden="true">
        <i className="run-band-usual" style={{ left: share(band.p50), width: `max(3px, calc(${share(band.p95)} - ${share(band.p50)}))` }} />
        <i className="run-band-own" style={{ width: `max(3px, ${share(took)})` }} />
      </div>
      <p>
        {long ? <Badge tone={tone}>{verdict}</Badge> : <span>{verdict}</span>} <span className="quiet">{t.band(duration(took), duration(band.p50), duration(band.p95))}</span>
      </p>
    </div>
  );
}
