/** Numbers in the navigation: items that need attention, at the page that they are about, and whether one is a problem. */
import { useGet, useIdentity } from "../api/hooks";
import type { Overview } from "../api/schema";

/** View of each kind of item; the overview counts all. */
const VIEW_OF: [prefix: string, view: string][] = [
  ["schedule_", "schedules"],
  ["run_", "runs"],
  ["failure_rate", "errors"],
  ["worker_", "workers"],
  ["queue_", "queues"],
  ["job_", "jobs"],
  ["limit_starves", "scopes"],
  ["delivery_refused", "alerts"],
  ["expectation_breached", "alerts"],
];
const EVERY = 15_000;

export interface ItemCount {
  count: number;
  /** One of them is a problem; otherwise all are warnings. */
  grave: boolean;
}

export function useCounts(): Record<string, ItemCount> {
  const known = useIdentity() !== undefined;
  const overview = useGet<Overview>(null, "/overview", {}, { enabled: known, every: EVERY });
  const counts: Record<string, ItemCount> = {};
  // The overview has the gravest items of each kind.
  const grave = new Set(overview.data?.attention.filter(({ severity }) => severity === "problem").map(({ kind }) => kind));
  for (const [kind, count] of Object.entries(overview.data?.attention_counts ?? {})) {
    const view = VIEW_OF.find(([prefix]) => kind.startsWith(prefix))?.[1] ?? "system";
    for (const place of [view, "overview"]) {
      const before = counts[place];
      counts[place] = { count: (before?.count ?? 0) + count, grave: (before?.grave ?? false) || grave.has(kind) };
    }
  }
  return counts;
}
