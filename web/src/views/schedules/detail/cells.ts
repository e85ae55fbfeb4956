/** Cells of the heatmap: outcomes counted by day or hour. */
import type { Occurrence } from "../../../api/schema";

export const OUTCOMES = ["bad", "missed", "skipped", "other", "paused", "covered", "pruned", "live", "good"] as const;
/** Outcomes by severity: the first one present decides the look of a cell. */
export type Outcome = (typeof OUTCOMES)[number];
export type Counts = Partial<Record<Outcome, number>>;

export interface Cell {
  /** `2027-01-31`, or `2027-01-31 08`. */
  key: string;
  start: number;
  counts: Counts;
  total: number;
  worst: Outcome | null;
}

const HOUR = 3_600_000;
const QUARTER = 900_000;
const DAY = 24 * HOUR;

export function outcomeOf({ kind, state }: Occurrence): Outcome {
  if (kind === "ran") {
    if (state === "succeeded") return "good";
    if (state === "failed" || state === "timed_out" || state === "expired") return "bad";
    return state === "cancelled" ? "other" : state === "skipped" ? "skipped" : "live";
  }
  return kind === "skipped" || kind === "missed" || kind === "paused" || kind === "pruned" ? kind : kind === "coalesced" ? "covered" : "live";
}

/** Return a function from an instant to its cell key. It caches per quarter hour, because formatting is slow and zone offsets change only on quarters. */
export function keysIn(zone: string | undefined, hourly: boolean): (at: number) => string {
  const format = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit", ...(hourly ? { hour: "2-digit", hourCycle: "h23" } : {}), timeZone: zone });
  const known = new Map<number, string>();
  return (at) => {
    const quarter = Math.floor(at / QUARTER);
    let key = known.get(quarter);
    if (key === undefined) known.set(quarter, (key = format.format(new Date(quarter * QUARTER)).replace(",", "")));
    return key;
  };
}

/** Return every cell from `from` to `to`, including empty ones. */
export function cellsOf(occurrences: Occurrence[], from: number, to: number, zone: string | undefined, hourly: boolean): Cell[] {
  const keyOf = keysIn(zone, hourly);
  const step = hourly ? HOUR : DAY / 2; // half a day, so that no short day is skipped
  const cells = new Map<string, Cell>();
  const at = (instant: number) => {
    const key = keyOf(instant);
    let cell = cells.get(key);
    if (!cell) cells.set(key, (cell = { key, start: instant, counts: {}, total: 0, worst: null }));
    return cell;
  };
  for (let instant = from; instant < to; instant += step) at(instant);
  at(to);
  const add = (instant: number, outcome: Outcome, count: number) => {
    const cell = at(Math.min(to, Math.max(from, instant)));
    cell.counts[outcome] = (cell.counts[outcome] ?? 0) + count;
    cell.total += count;
  };
  for (const one of occurrences) {
    if (one.kind === "pending") continue;
    const outcome = outcomeOf(one);
    if (one.plan_time) add(Date.parse(one.plan_time), outcome, 1);
    else if (one.from_at && one.to_at) spread(one.from_at, one.to_at, one.count, (instant, count) => add(instant, outcome, count), from, to);
  }
  for (const cell of cells.values()) cell.worst = OUTCOMES.find((outcome) => cell.counts[outcome]) ?? null;
  return [...cells.values()];
}

/** Spread a count evenly over a range, because the exact plan times are unknown. */
function spread(first: string, last: string, count: number, add: (at: number, count: number) => void, from: number, to: number): void {
  const [begin, end] = [Date.parse(first), Date.parse(last)];
  const pieces = Math.min(count, 5_000);
  const share = count / pieces;
  let given = 0;
  for (let piece = 0; piece < pieces; piece++) {
    const instant = pieces === 1 ? begin : begin + ((end - begin) * piece) / (pieces - 1);
    const whole = Math.round((piece + 1) * share) - given;
    given += whole;
    if (whole && instant >= from && instant <= to) add(instant, whole);
  }
}
