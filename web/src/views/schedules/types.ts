/** Types of schedules in the API. */
import type { RunState } from "../../api/schema";

export type ScheduleState = "active" | "paused" | "job paused" | "job cancelled" | "disabled" | "ended";

/** Definition as in `schedules.toml`, without default values. */
export type Document = Record<string, unknown> & { job?: string };

export interface RecentRun {
  run_id: string;
  plan_time: string;
  state: RunState;
  started_at: string | null;
  finished_at: string | null;
  lateness_ms: number | null;
  duration_ms: number | null;
}

export interface Schedule {
  id: string;
  name: string;
  job: string;
  state: ScheduleState;
  owner: string;
  revision: number;
  enabled: boolean;
  paused_at: string | null;
  paused_by: string | null;
  pause_reason: string | null;
  resume_at: string | null;
  job_paused: boolean;
  job_cancelled: boolean;
  next_plan: string | null;
  awaits: string | null;
  fired: number;
  trouble: string | null;
  created_at: string;
  updated_at: string;
  /** Rule in English. */
  rule: string;
  timezone: string;
  definition: Document;
  /** Recent runs, oldest first; only with `recent=`. */
  recent?: RecentRun[];
  p50_duration_ms?: number | null;
  p95_duration_ms?: number | null;
}

/** States, and troubles of active schedules, that the list may be limited to. */
export type LookedFor = ScheduleState | "failing" | "late";
export const STATES: LookedFor[] = ["active", "failing", "late", "paused", "job paused", "job cancelled", "disabled", "ended"];
