/** Plan times of many scopes: a summary of each, followed by those outcomes that somebody should see. */
import type { Occurrence } from "../../../api/schema";
import { OUTCOMES, outcomeOf, type Counts, type Outcome } from "./cells";

/** Outcomes of one plan time in all scopes. */
export interface Instant {
  at: string;
  counts: Counts;
  total: number;
  /** Number of outcomes that are not listed below it. */
  hidden: number;
}

export type Line = Occurrence | Instant;

export const isInstant = (line: Line): line is Instant => "counts" in line;

/** Outcomes in the order in which people read them: the good ones first, then the worst. */
export const READ: readonly Outcome[] = ["good", ...OUTCOMES.filter((outcome) => outcome !== "good")];

const listed = (one: Occurrence) => !["good", "live", "covered", "pruned"].includes(outcomeOf(one));

/** Return occurrences, which are in order of time, with a summary before those that share a plan time. All outcomes of a time in `open` are listed. */
export function byInstant(occurrences: Occurrence[], open: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  for (let first = 0, last; first < occurrences.length; first = last) {
    const at = occurrences[first]!.plan_time;
    last = first + 1;
    while (at && last < occurrences.length && occurrences[last]!.plan_time === at) last++;
    const same = occurrences.slice(first, last);
    if (!at || same.length === 1) {
      lines.push(...same);
      continue;
    }
    const counts: Counts = {};
    for (const one of same) counts[outcomeOf(one)] = (counts[outcomeOf(one)] ?? 0) + 1;
    const shown = [...same.filter(listed), ...(open.has(at) ? same.filter((one) => !listed(one)) : [])];
    lines.push({ at, counts, total: same.length, hidden: same.length - shown.length }, ...shown);
  }
  return lines;
}
