/** Keys and run filters of error groups. */
import type { ErrorGroup, RunState } from "../../api/schema";
import { withSearch } from "../../router";
import { format, type Token } from "../runs/search";

export const keyOf = ({ job, fingerprint }: ErrorGroup) => `${fingerprint ?? ""} ${job}`;

export const statesOf = (group: ErrorGroup) => Object.entries(group.states) as [RunState, number][];

/** Return the search tokens that find the runs of a group. */
export function tokensOf(group: ErrorGroup): Token[] {
  const { job, fingerprint } = group;
  return [
    { name: "job", value: job },
    ...(fingerprint ? [{ name: "fingerprint", value: fingerprint }] : []),
    ...statesOf(group).map(([value]) => ({ name: "state", value })),
  ];
}

export const runsOf = (group: ErrorGroup) => withSearch("/runs", { q: format(tokensOf(group)) });

/** Keep the previous order, with new groups at the end, so that nothing moves under the pointer. */
export function inOrder(groups: ErrorGroup[], before: string[]): ErrorGroup[] {
  const byKey = new Map(groups.map((group) => [keyOf(group), group]));
  const kept = before.filter((key) => byKey.has(key));
  const known = new Set(kept);
  return [...kept.map((key) => byKey.get(key)!), ...groups.filter((group) => !known.has(keyOf(group)))];
}
