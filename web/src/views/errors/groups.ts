/** Keys and run filters of error groups. */
import type { ErrorGroup, RunState } from "../../api/schema";
import { withSearch } from "../../router";
import { format, type Token } from "../runs/search";

/** A group of several parts has the key of the largest: its newest run may be of another job the next time. */
export function keyOf({ job, fingerprint, parts }: ErrorGroup): string {
  const first = parts?.length > 1 ? [...parts].sort((a, b) => (`${a.fingerprint}` < `${b.fingerprint}` ? -1 : 1))[0]! : { job, fingerprint };
  return `${first.fingerprint ?? ""} ${first.job}`;
}

/** Return the parts of a group, each as a group of its own: the runs of one job with one fingerprint. */
export const partsOf = (group: ErrorGroup): ErrorGroup[] => (group.parts?.length > 1 ? group.parts.map((part) => ({ ...group, ...part, parts: [part], job_count: 1 })) : []);

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

/** Runs of a group. Of several parts, those whose error begins alike: a search names one job and fingerprint. */
export function runsOf(group: ErrorGroup): string {
  const alike = /^[^\d'"`/\n]*/.exec(group.message ?? "")![0].trim().slice(0, 100);
  const said = [{ name: "error", value: `${group.type ?? ""}: ${alike}`.trim() }, ...statesOf(group).map(([value]) => ({ name: "state", value }))];
  return withSearch("/runs", { q: format(group.parts?.length > 1 && group.type ? said : tokensOf(group)) });
}

/** Keep the previous order, with new groups at the end, so that nothing moves under the pointer. */
export function inOrder(groups: ErrorGroup[], before: string[]): ErrorGroup[] {
  const byKey = new Map(groups.map((group) => [keyOf(group), group]));
  const kept = before.filter((key) => byKey.has(key));
  const known = new Set(kept);
  return [...kept.map((key) => byKey.get(key)!), ...groups.filter((group) => !known.has(keyOf(group)))];
}
