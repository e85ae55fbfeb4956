/** What a group of errors is called, and how its runs are found. */
import type { FaultGroup, RunState } from "../../api/schema";
import { withSearch } from "../../router";
import { format, type Token } from "../runs/search";

export const keyOf = ({ job, fingerprint }: FaultGroup) => `${fingerprint ?? ""} ${job}`;

export const statesOf = (group: FaultGroup) => Object.entries(group.states) as [RunState, number][];

/** As the search box of runs says it. */
export function tokensOf(group: FaultGroup): Token[] {
  const { job, fingerprint } = group;
  return [
    { name: "job", value: job },
    ...(fingerprint ? [{ name: "fingerprint", value: fingerprint }] : []),
    ...statesOf(group).map(([value]) => ({ name: "state", value })),
  ];
}

export const runsOf = (group: FaultGroup) => withSearch("/runs", { q: format(tokensOf(group)) });

/** In the order they had, as long as somebody points at them; those that are new below. */
export function inOrder(groups: FaultGroup[], before: string[]): FaultGroup[] {
  const byKey = new Map(groups.map((group) => [keyOf(group), group]));
  const kept = before.filter((key) => byKey.has(key));
  const known = new Set(kept);
  return [...kept.map((key) => byKey.get(key)!), ...groups.filter((group) => !known.has(keyOf(group)))];
}
