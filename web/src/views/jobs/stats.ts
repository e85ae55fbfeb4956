/** Statistics of a job's runs, and how they are written. */
import { part } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { JobStats } from "../../api/schema";
import { duration, type Tone } from "../../ui";

/** Statistics of all finished runs. Polled, because each job is one request. */
export function useStats(job: string, seen = true) {
  return useGet<JobStats>(null, `/jobs/${part(job)}/stats`, {}, { enabled: seen, every: 10_000 });
}

export const percent = (share: number | null | undefined) =>
  share == null ? "–" : share === 1 ? "100%" : `${(Math.floor(share * 1_000) / 10).toFixed(1)}%`;

export const span = (milliseconds: number | null | undefined) => (milliseconds == null ? "–" : duration(milliseconds));

export const rateTone = (share: number | null | undefined): Tone | undefined =>
  share == null ? undefined : share < 0.9 ? "bad" : share < 0.99 ? "warn" : undefined;
