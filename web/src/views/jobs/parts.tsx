/** What both pages show of a job. */
import { part } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { JobStats, JobState } from "../../api/schema";
import { useWords } from "../../i18n";
import { withSearch } from "../../router";
import { Badge, duration, type Shown, type Tone } from "../../ui";
import { format } from "../runs/search";
import { jobsWords } from "./words";

const LOOKS: Record<JobState, [Tone, Shown]> = {
  pending: ["idle", "queued"],
  scheduled: ["idle", "scheduled"],
  running: ["busy", "running"],
  paused: ["warn", "waiting"],
  completed: ["good", "succeeded"],
  failed: ["bad", "failed"],
  cancelled: ["idle", "cancelled"],
};

export function JobBadge({ state }: { state: JobState }) {
  const t = useWords(jobsWords);
  const [tone, shape] = LOOKS[state];
  return (
    <Badge tone={tone} shape={shape}>
      {t[state]}
    </Badge>
  );
}

/** Of all its runs that ever ended; asked for again now and then, because each job is a question. */
export function useStats(job: string, seen = true) {
  return useGet<JobStats>(null, `/jobs/${part(job)}/stats`, {}, { enabled: seen, every: 10_000 });
}

export const percent = (share: number | null | undefined) =>
  share == null ? "–" : share === 1 ? "100%" : `${(Math.floor(share * 1_000) / 10).toFixed(1)}%`;

export const span = (milliseconds: number | null | undefined) => (milliseconds == null ? "–" : duration(milliseconds));

export const rateTone = (share: number | null | undefined): Tone | undefined =>
  share == null ? undefined : share < 0.9 ? "bad" : share < 0.99 ? "warn" : undefined;

export const runsOf = (job: string, state?: string) =>
  withSearch("/runs", { q: format([...(state ? [{ name: "state", value: state }] : []), { name: "job", value: job }]) });
