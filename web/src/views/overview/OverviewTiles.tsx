/** Six key numbers, each with a link to its rows. */
import type { Overview } from "../../api/schema";
import { useLocale, useWords } from "../../i18n";
import { Duration, Tile } from "../../ui";
import { runsWith } from "./links";
import { overviewWords } from "./words";

const BAD = ["failed", "timed_out", "expired"];
const BAD_STATES = BAD.map((state) => `state:${state}`);
const NOTHING = "–";

const sum = (counts: Record<string, number>, states = Object.keys(counts)) => states.reduce((total, state) => total + (counts[state] ?? 0), 0);

export function OverviewTiles({ overview }: { overview: Overview | undefined }) {
  const t = useWords(overviewWords);
  const locale = useLocale();
  const number = (value: number) => value.toLocaleString(locale);
  if (!overview) {
    const names = [t.running, t.queued, t.failed, t.late, t.rate, t.workers];
    return (
      <section className="overview-tiles" aria-label={t.tiles} aria-busy="true">
        {names.map((name) => (
          <Tile key={name} name={name} value="" loading />
        ))}
      </section>
    );
  }
  const { live, late, last_day: day, workers } = overview;
  const [bad, good, ended] = [sum(day.runs, BAD), sum(day.runs, ["succeeded"]), sum(day.runs)];
  const lateNow = late.runs + late.schedules;
  return (
    <section className="overview-tiles" aria-label={t.tiles}>
      <Tile
        name={t.running}
        value={number(live.running)}
        note={live.cancelling ? t.cancelling(live.cancelling) : workers.slots ? t.slots(workers.busy, workers.slots) : t.noSlots}
        to={runsWith("state:running")}
      />
      <Tile
        name={t.queued}
        value={number(live.queued) + (live.capped ? "+" : "")}
        note={live.oldest_queued_at && live.queued ? <>{t.oldest} <Duration from={live.oldest_queued_at} /></> : t.noneQueued}
        to={runsWith("state:queued")}
      />
      <Tile
        name={t.failed}
        value={number(bad)}
        tone={bad ? "bad" : undefined}
        note={ended ? t.failedOf(good + bad) : t.nothingEnded}
        to={runsWith(...BAD_STATES, "since:24h")}
      />
      <Tile
        name={t.late}
        value={number(lateNow)}
        tone={lateNow ? "warn" : undefined}
        note={lateNow ? t.lateOf(late.runs, late.schedules) : t.onTime}
        to={late.schedules && !late.runs ? "/schedules" : runsWith("state:queued")}
      />
      <Tile
        name={t.rate}
        value={day.success_rate === null ? NOTHING : percentage(day.success_rate, locale)}
        note={day.success_rate === null ? t.nothingEnded : t.rateOf(good, good + bad)}
        to={runsWith("since:24h")}
      />
      <Tile
        name={t.workers}
        value={number(workers.alive)}
        tone={workers.alive ? undefined : "bad"}
        note={workers.stale ? <span className="tone-warn overview-tone">{t.stale(workers.stale)}</span> : workers.alive ? t.capacity(workers.slots) : t.noWorkers}
        to="/workers"
      />
    </section>
  );
}

/** Round down, so that one failure never shows as 100 %. */
function percentage(share: number, locale: string): string {
  const digits = share > 0.99 && share < 1 ? 2 : 1;
  const cut = Math.floor(share * 100 * 10 ** digits) / 10 ** digits;
  return `${cut.toLocaleString(locale, { maximumFractionDigits: digits })} %`;
}
