/** Statistics of a job's runs, and how they are written. */
import { part, type Parameters } from "../../api/client";
import { useGet, usePages } from "../../api/hooks";
import type { JobStats } from "../../api/schema";
import { duration, type Tone } from "../../ui";

/** Statistics of all finished runs of a job. */
export function useStats(job: string) {
  return useGet<JobStats>(null, `/jobs/${part(job)}/stats`, {}, { every: 10_000 });
}

/** Statistics of the jobs of a list with this query, by name. One question for a page of rows, so that they arrive
 * together; polled, because it costs more than the list. */
export function useStatsOf(query: Parameters) {
  const { items, more } = usePages<JobStats>(null, "/jobs:stats", query, { keep: true, every: 10_000 });
  return { of: new Map(items?.map((stats) => [stats.job, stats])), more };
}

export const percent = (share: number | null | undefined) =>
  share == null ? "–" : share === 1 ? "100%" : `${(Math.floor(share * 1_000) / 10).toFixed(1)}%`;

export const span = (milliseconds: number | null | undefined) => (milliseconds == null ? "–" : duration(milliseconds));

export const rateTone = (share: number | null | undefined): Tone | undefined =>
  share == null ? undefined : share < 0.9 ? "bad" : share < 0.99 ? "warn" : undefined;
