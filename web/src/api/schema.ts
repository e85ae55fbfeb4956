// Written by tools/api_types.py from the API's OpenAPI document. Do not edit.

/** Schedules of `owner` that no document names are deleted. `dry_run` only returns what would change. */
export interface ApplyBody {
  owner: string;
  documents: Record<string, unknown>[];
  /** Default: `false` */
  dry_run?: boolean;
}

/** Run assigned to an external worker. `steps`: results of the steps that are done, which need not be repeated. `idempotency_key`: the same for every attempt and every retry of the same work. */
export interface Assignment {
  id: string;
  fence: number;
  attempt: number;
  max_attempts: number;
  job: string;
  job_version: number;
  payload: Record<string, unknown>;
  scope: Scope;
  key: string | null;
  plan_time: string | null;
  idempotency_key: string;
  lease_until: string;
  steps: Record<string, unknown>;
}

/** Attempt of a run; `outcome` and `ended_at` are None while it is running. */
export interface Attempt {
  no: number;
  fence: number;
  worker_id: string;
  claimed_at: string;
  lease_until: string | null;
  started_at: string | null;
  ended_at: string | null;
  outcome: Outcome | null;
  error: RunError | null;
  cpu_time_ms: number | null;
  memory_peak_mb: number | null;
  counters: Record<string, number>;
}

/** Item that needs attention: `kind` for programs, `text` for people; `subject` is a name or an id. */
export interface Attention {
  kind: string;
  subject: string | null;
  since: string | null;
  text: string;
  hint: string | null;
}

/** Result of a backfill, or of a dry run: `count` runs, `retried` of them for plan times that had one. Not backfilled are plan times that ran `already` or were coalesced into a run, those that only a compacted range still accounts for (`known`), those that are still `pending`, and those whose unique key another run has `held`; a dry run does not count the latter separately. `plan_times` are the first of those that got a run. */
export interface Backfill {
  schedule: string;
  count: number;
  retried: number;
  already: number;
  known: number;
  pending: number;
  held: number;
  runs: string[];
  plan_times: string[];
  dry_run: boolean;
}

/** `ran` also includes plan times whose run did not succeed (`failed`), or all that have one (`all`). */
export interface BackfillBody {
  /** A time with a zone: 2026-01-31T08:00:00Z */
  from: string;
  /** A time with a zone: 2026-01-31T08:00:00Z */
  to: string;
  /** Default: `"none"` */
  ran?: string;
  /** Default: `1` */
  concurrency?: number;
  /** Default: `false` */
  dry_run?: boolean;
}

/** Exponential backoff between attempts. */
export interface BackoffBody {
  type: "exponential";
  /** Default: `"60s"` */
  base?: string;
  /** Default: `2.0` */
  factor?: number;
  /** Default: `"1h"` */
  cap?: string;
  /** Default: `0.1` */
  jitter?: number;
}

/** Breach as it is shown. */
export interface Breached {
  what: string;
  since: string;
  message: string;
  details: Record<string, unknown>;
}

/** Step of a chart. `queued` and `running` are the highest sample within it; None: there is no sample. */
export interface Bucket {
  at: string;
  runs: Record<string, number>;
  duration_p50_ms: number | null;
  duration_p95_ms: number | null;
  lag_p50_ms: number | null;
  lag_p95_ms: number | null;
  queued: number | null;
  running: number | null;
}

/** Result of a bulk operation: of `matched` runs, `done` were changed, the others are counted in `refused`. */
export interface BulkResult {
  matched: number;
  done: number;
  refused: Refused[];
}

/** An optional reason, for the audit log. */
export interface CancelBody {
  reason?: string | null;
}

/** `cancelled` is the number of runs that ended or were asked to stop. */
export interface CancelledJob {
  job: string;
  cancelled: number;
  status: JobStatus;
}

/** `worker` is a name, or `name@boot` for a program that tells its starts apart. `held` lists all runs that it knows of; other leases of it are handed back first, because the response of their claim was lost. */
export interface ClaimBody {
  worker: string;
  queues?: string[];
  jobs?: string[] | null;
  /** Default: `1` */
  max?: number;
  wait?: string | null;
  lease?: string | null;
  held?: HeldRun[] | null;
  labels?: string[] | null;
  version?: string | null;
}

/** The claimed runs. */
export interface ClaimedRuns {
  runs: Assignment[];
}

/** The result of the run. */
export interface CompleteBody {
  fence: number;
  result?: unknown;
}

/** Number of matching runs; a lower bound if not `exact`, because counting stopped at a limit or a timeout. */
export interface Counted {
  count: number;
  exact: boolean;
}

/** Effect of applying a file on one schedule, with its next plan times before and after. A pause is left alone. */
export interface Difference {
  kind: string;
  name: string;
  changes: FieldChange[];
  fires_before: string[];
  fires_after: string[];
  paused: boolean;
}

/** Preview of a document, which could be stored if there are no `problems`. `rule` is None if it makes no sense. */
export interface DocumentPreview {
  rule: string | null;
  timezone: string;
  fires: Fire[];
  problems: DocumentProblem[];
}

/** Problem that keeps a document from being a schedule. `key` is that of the document, where one is at fault. */
export interface DocumentProblem {
  code: string;
  detail: string;
  hint: string | null;
  key: string | null;
}

/** `created` says which of them are new; the others existed. */
export interface EnqueuedRuns {
  items: Run[];
  created: boolean[];
}

/** An error of an external job. */
export interface ErrorBody {
  message: string;
  type?: string | null;
  code?: string | null;
  traceback?: string | null;
}

/** Failed runs of one job with the same error. `type` and `message` are those of the newest; `states` counts runs by final state; `histogram` counts them in 24 equal parts of the time range. Errors older than fingerprints have none, and form one group. */
export interface ErrorGroup {
  fingerprint: string | null;
  job: string;
  type: string | null;
  message: string | null;
  count: number;
  first_at: string;
  last_at: string;
  last_run_id: string;
  states: Record<string, number>;
  histogram: number[];
}

/** Error groups, the one seen last first. `truncated`: there were more failed runs than were read. `next_cursor` is that of the next page. */
export interface ErrorGroups {
  items: ErrorGroup[];
  since: string;
  until: string;
  truncated: boolean;
  next_cursor: string | null;
}

/** Line of the audit trail. `from_state` and `to_state` are set where a run's state changed, if known. An older program did not record them. `seq` orders the lines of one answer: it counts from 1 in the trail of a run or a schedule; in the audit log it is the line's own number, the cursor for the page before. */
export interface Event {
  seq: number;
  at: string;
  kind: string;
  subject: string;
  type: string;
  from: RunState | null;
  to: RunState | null;
  fence: number | null;
  actor: string | null;
  details: Record<string, unknown>;
}

/** A run. `execution_number` counts the runs of its job from 1, `retry_attempt` its attempts from 0. */
export interface Execution {
  id: string;
  job_id: string;
  execution_number: number;
  status: string;
  started_at: string | null;
  completed_at: string | null;
  duration_ms: number | null;
  retry_attempt: number;
  error_message: string | null;
  metadata: Record<string, unknown>;
}

/** An execution with its resource usage. */
export interface ExecutionDetail {
  id: string;
  job_id: string;
  execution_number: number;
  status: string;
  started_at: string | null;
  completed_at: string | null;
  duration_ms: number | null;
  retry_attempt: number;
  error_message: string | null;
  metadata: Record<string, unknown>;
  cpu_time_ms: number | null;
  memory_peak_mb: number | null;
  counters: Record<string, number>;
}

/** Totals over all executions. */
export interface ExecutionTotals {
  total: number;
  average_duration_ms: number | null;
  success_rate: number | null;
}

/** A page of executions. */
export interface Executions {
  executions: Execution[];
  total: number;
  limit: number;
  offset: number;
}

/** Replace the expectations of a job or schedule, like `update`. */
export interface ExpectationsReplaceBody {
  start_within?: string | null | null;
  finish_within?: string | null | null;
  success_every?: string | null | null;
  max_duration?: string | null | null;
  max_consecutive_failures?: number | null | null;
  min_success_rate?: number | string | null | null;
  over?: number | null | null;
  at_least?: number | null | null;
}

/** Change the given expectations of a job or schedule; None removes one. */
export interface ExpectationsUpdateBody {
  start_within?: string | null | null;
  finish_within?: string | null | null;
  success_every?: string | null | null;
  max_duration?: string | null | null;
  max_consecutive_failures?: number | null | null;
  min_success_rate?: number | string | null | null;
  over?: number | null | null;
  at_least?: number | null | null;
}

/** Expectations of a job or a schedule, their owner, and current breaches. They rest (`resting`) while their subject is paused or disabled. */
export interface Expected {
  kind: string;
  subject: string;
  expect: Record<string, unknown>;
  owner: string;
  since: string;
  resting: boolean;
  breaches: Breached[];
}

/** Explanation of a run or a plan time: `verdict` is one word, `words` are sentences, `facts` are for programs. */
export interface Explanation {
  verdict: string;
  words: string[];
  facts: Record<string, unknown>;
}

/** The run is retried by its job's policy, or `after` that long; with `retry: false` it is not retried. */
export interface FailBody {
  fence: number;
  error: string | ErrorBody;
  /** Default: `true` */
  retry?: boolean;
  after?: string | null;
}

/** `fence` is the number that came with the run. */
export interface FenceBody {
  fence: number;
}

/** Change of one key of a schedule's document; None stands for the default, where the document has no such key. */
export interface FieldChange {
  key: string;
  before: unknown;
  after: unknown;
}

/** Inconsistency: `expected` plan times or records, but `found` so many. */
export interface Finding {
  problem: string;
  words: string;
  scope: Scope | null;
  revisions: number[];
  from_at: string | null;
  to_at: string | null;
  expected: number | null;
  found: number | null;
  run_id: string | null;
  plan_times: string[];
}

/** A plan time to come. `local` is in the schedule's zone; `eligible_at` is when its run may start, jitter aside. `marks`: `gap` (its time of the day does not exist, it fires right after), `fold-first`, `fold-second` (its time of the day comes twice), `transition` (the first one after the clocks changed). */
export interface Fire {
  plan_time: string;
  local: string;
  eligible_at: string;
  marks: string[];
}

/** Meaning of a lane: one schedule, job, worker or queue. */
export type Grouping = "job" | "queue" | "schedule" | "worker";

/** Answer to a heartbeat. `cancelling`: the run was asked to stop. `lease_until`: send the next one before then. For a run that waits, `lease_until` is its deadline. */
export interface Heartbeat {
  cancelling: boolean;
  lease_until: string;
}

/** A run that the worker holds, with its fence. */
export interface HeldRun {
  id: string;
  fence: number;
}

/** Authenticated caller, as recorded with its changes; with a scope, restricted to runs of it. */
export interface Identity {
  actor: string;
  role: Role;
  scope: Scope | null;
}

/** A new token with its `secret`. */
export interface IssuedToken {
  id: string;
  name: string;
  role: Role;
  scope: Scope | null;
  created_at: string;
  created_by: string | null;
  expires_at: string | null;
  revoked_at: string | null;
  revoked_by: string | null;
  used_at: string | null;
  secret: string;
}

/** `kind` may be omitted if there is a `url` or an `argv`. `null` resets an option to its default. `max_retries` (one less than `max_attempts`) and `retry_backoff_seconds` (doubled after each attempt) are alternatives to `max_attempts` and `backoff`. */
export interface JobBody {
  kind?: "command" | "external" | "http";
  url?: string;
  method?: string | null;
  headers?: Record<string, string> | null;
  body?: unknown;
  expect_status?: number | string | (number | string)[] | null;
  retry_on?: number | string | (number | string)[] | null;
  redirects?: boolean | null;
  max_response?: number | string | null;
  secret?: string | null;
  argv?: string[];
  env?: Record<string, string> | null;
  cwd?: string | null;
  stdin?: string | null;
  retry_exit_codes?: number[] | null;
  payload_schema?: Record<string, unknown> | null;
  queue?: string | null;
  priority?: number | null;
  max_attempts?: number | null;
  max_retries?: number;
  backoff?: string | string[] | BackoffBody | null;
  retry_backoff_seconds?: number;
  timeout?: string | null;
  on_lost?: string | null;
  cancellable?: boolean | null;
  cancel_grace?: string | null;
  unique?: boolean | string | string[] | UniqueBody | null;
  max_concurrency?: number | null;
  limit?: Record<string, unknown> | Record<string, unknown>[] | null;
  only_workers?: string[] | null;
  labels?: string[] | null;
  min_worker_version?: string | null;
  replicas?: number | string | Record<string, unknown> | null;
  expect?: Record<string, unknown> | null;
  keep?: number | null;
  keep_for?: string | null;
  enabled?: boolean | null;
  repeatable?: boolean | null;
  schedulable?: boolean | null;
  description?: string | null;
  tags?: string[] | null;
  metadata?: Record<string, unknown> | null;
}

/** An optional reason, for the audit log. */
export interface JobReasonBody {
  reason?: string | null;
}

/** `catch_up` says which plan times of the pause still run: none (`skip`), the `latest`, or `all`. */
export interface JobResumeBody {
  /** Default: `"skip"` */
  catch_up?: string;
}

/** State of a job as a whole. */
export type JobState = "cancelled" | "completed" | "failed" | "paused" | "pending" | "running" | "scheduled";

/** Statistics of all runs of a job that ever ended, pruned ones included. */
export interface JobStats {
  job: string;
  total: number;
  succeeded: number;
  failed: number;
  timed_out: number;
  cancelled: number;
  expired: number;
  skipped: number;
  success_rate: number | null;
  average_duration_ms: number | null;
  p95_duration_ms: number | null;
  first_at: string | null;
  last_execution_at: string | null;
  next_scheduled_at: string | null;
}

/** State and counts of a job; `next_at` is when its next run is due, None while the job is paused. */
export interface JobStatus {
  job: string;
  state: JobState;
  running: number;
  waiting: number;
  last_run_at: string | null;
  next_at: string | null;
  paused_at: string | null;
  paused_by: string | null;
  pause_reason: string | null;
}

/** Attempts, the newest first, and `coming` plan times, the next first. `overlaps`: two attempts overlap in time. */
export interface Lane {
  name: string;
  attempts: TimelineAttempt[];
  coming: string[];
  overlaps: boolean;
}

/** Runs that ended within the last 24 hours, by state; as exact as charts are. `success_rate`: share of success among those that succeeded, failed, timed out or expired. */
export interface LastDay {
  runs: Record<string, number>;
  success_rate: number | null;
}

/** Numbers of runs that are queued, and of schedules that are not planned, more than 10 s after they were due. */
export interface Late {
  runs: number;
  schedules: number;
}

/** A log line. */
export interface LineBody {
  text: string;
  /** Default: `"info"` */
  level?: string;
  /** Default: `"external"` */
  logger?: string;
}

/** Runs that have not ended. `capped`: there are more queued or scheduled runs than were counted. */
export interface Live {
  running: number;
  cancelling: number;
  queued: number;
  scheduled: number;
  waiting: number;
  oldest_queued_at: string | null;
  capped: boolean;
}

/** Log line; `cursor` is where to continue reading after its row. */
export interface LogLine {
  at: string;
  level: string;
  logger: string;
  text: string;
  attempt: number;
  fence: number;
  cursor: string;
}

/** A page of log lines. */
export interface LogPage {
  items: LogLine[];
  next_cursor: string | null;
}

/** Log lines to append. With `no`, a sequence number that grows from 1, lines sent again are not stored twice. */
export interface LogsBody {
  fence: number;
  lines: (string | LineBody)[];
  no?: number | null;
}

/** Runs to enqueue together. */
export interface ManyRunsBody {
  runs: RunBody[];
}

/** `schedule` is a schedule's document without its job; it has the job's name unless it names its own. Alternatively, give an interval: `interval_minutes` counts `minutes`, `hours` or `days` (`interval_type`), with `schedule_enabled`. `schedule_enabled: false` without an interval means one run, now. `payload` is for the schedule or that run. */
export interface NewJobBody {
  kind?: "command" | "external" | "http";
  url?: string;
  method?: string | null;
  headers?: Record<string, string> | null;
  body?: unknown;
  expect_status?: number | string | (number | string)[] | null;
  retry_on?: number | string | (number | string)[] | null;
  redirects?: boolean | null;
  max_response?: number | string | null;
  secret?: string | null;
  argv?: string[];
  env?: Record<string, string> | null;
  cwd?: string | null;
  stdin?: string | null;
  retry_exit_codes?: number[] | null;
  payload_schema?: Record<string, unknown> | null;
  queue?: string | null;
  priority?: number | null;
  max_attempts?: number | null;
  max_retries?: number;
  backoff?: string | string[] | BackoffBody | null;
  retry_backoff_seconds?: number;
  timeout?: string | null;
  on_lost?: string | null;
  cancellable?: boolean | null;
  cancel_grace?: string | null;
  unique?: boolean | string | string[] | UniqueBody | null;
  max_concurrency?: number | null;
  limit?: Record<string, unknown> | Record<string, unknown>[] | null;
  only_workers?: string[] | null;
  labels?: string[] | null;
  min_worker_version?: string | null;
  replicas?: number | string | Record<string, unknown> | null;
  expect?: Record<string, unknown> | null;
  keep?: number | null;
  keep_for?: string | null;
  enabled?: boolean | null;
  repeatable?: boolean | null;
  schedulable?: boolean | null;
  description?: string | null;
  tags?: string[] | null;
  metadata?: Record<string, unknown> | null;
  name: string;
  schedule?: Record<string, unknown> | null;
  interval_minutes?: number | null;
  interval_type?: string | null;
  schedule_enabled?: boolean | null;
  payload?: Record<string, unknown> | null;
}

export interface NextRun {
  schedule: string;
  job: string;
  at: string;
  zone: string;
  rule: string;
}

/** Notification without its secrets, for people. */
export interface NotificationView {
  name: string;
  on: string[];
  to: string;
  jobs: string[];
  schedules: string[];
  secret: string | null;
  include_payload: boolean;
  at_most: number;
  owner: string;
  enabled: boolean;
  created_at: string;
  updated_at: string;
}

/** Create a notification that sends the events `on` ("failure", …) to `to`, a URL or a `mailto:` address. */
export interface NotificationsCreateBody {
  /** Its name */
  name: string;
  on?: string[] | string | null | null;
  jobs?: string[] | null | null;
  schedules?: string[] | null | null;
  secret?: string | null | null;
  include_payload?: boolean | null | null;
  at_most?: number | null | null;
  /** A URL or a `mailto:` address */
  to: string;
}

/** Change the given options of a notification; None resets an option to its default. */
export interface NotificationsUpdateBody {
  on?: string[] | string | null | null;
  jobs?: string[] | null | null;
  schedules?: string[] | null | null;
  secret?: string | null | null;
  include_payload?: boolean | null | null;
  at_most?: number | null | null;
  to?: string | null;
  enabled?: boolean | null | null;
}

/** The database's time. */
export interface Now {
  /** The database's time */
  now: string;
}

/** Plan time, or `count` of them between `from_at` and `to_at`; without a scope, those of all scopes. `run_id` is the run that it got, or the one that it was coalesced into. */
export interface Occurrence {
  kind: string;
  plan_time: string | null;
  from_at: string | null;
  to_at: string | null;
  count: number;
  scope: Scope | null;
  run_id: string | null;
  state: string | null;
  reason: string | null;
  revision: number | null;
  again: Replacement | null;
}

/** Sum of all that operators request of a worker, not the last request only. So it is idempotent: a worker may read it twice, or late. */
export interface OperatorRequest {
  state?: WorkerState;
  settings?: WorkerSettings;
}

/** Result of one attempt. */
export type Outcome = "cancelled" | "failed" | "handed_back" | "lost" | "snoozed" | "succeeded" | "timed_out";

/** Content of the overview page; `attention` has the first of each kind, `attention_count` counts all. */
export interface Overview {
  at: string;
  live: Live;
  late: Late;
  last_day: LastDay;
  workers: WorkerCounts;
  schedules: Record<string, number>;
  attention: Attention[];
  attention_count: number;
  next_fires: NextRun[];
}

/** Pause of a job or queue by an operator: since when, by whom and why. */
export interface Pause {
  name: string;
  paused_at: string;
  paused_by: string | null;
  reason: string | null;
}

/** `until` is an instant, or a duration from now. */
export interface PauseBody {
  reason?: string | null;
  until?: string | null;
}

/** An error, as in RFC 9457. Programs should decide by `code`. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  hint?: string | null;
  field?: string | null;
  pointer?: string | null;
}

/** Progress of a run as it reports it. `steps` are left out in lists of runs. */
export interface Progress {
  percentage: number | null;
  summary: string | null;
  at: string | null;
  steps?: Step[];
}

/** An omitted value keeps its last report. */
export interface ProgressBody {
  fence: number;
  percentage?: number | null;
  summary?: string | null;
}

/** `oldest_at` is since when the longest-waiting run has been claimable; null if there is none. */
export interface Queue {
  queue: string;
  running: number;
  queued: number;
  scheduled: number;
  paused: Pause | null;
  oldest_at: string | null;
}

/** Stored quota; without an id, the default of all scopes of its kind that have no quota of their own. */
export interface QuotaOf {
  kind: string;
  id: string | null;
  max_concurrency: number | null;
  max_queued: number | null;
  rate: string | null;
  owner: string;
}

/** Set a quota, replacing the previous one. */
export interface QuotasUpdateBody {
  /** Runs at a time */
  max_concurrency?: number | null;
  /** Runs that may wait; a further one is refused */
  max_queued?: number | null;
  /** Attempts that may start within a time: `"1000/1h"` */
  rate?: string | null;
}

/** Number of runs refused for the same reason; `examples` are a few ids, `message` is that of the first. */
export interface Refused {
  code: string;
  count: number;
  message: string;
  examples: string[];
}

/** Predecessor or successor of a run. `job` and `state` are None if it was pruned. */
export interface RelatedRun {
  id: string;
  job: string | null;
  state: RunState | null;
  result: unknown;
  on: string;
  otherwise: string;
}

/** Newest run that a retry or a backfill made in place of one that did not succeed. */
export interface Replacement {
  run_id: string;
  state: string;
}

/** Replica, a run of its own. `worker` is the name of its worker, None while any may have it. `cleared`: the run was enqueued again, and this replica no longer counts. */
export interface Replica {
  run_id: string;
  worker: string | null;
  state: RunState;
  attempt: number;
  error: string | null;
  result: unknown;
  finished_at: string | null;
  bound: boolean;
  cleared: boolean;
}

/** `null` lifts the restriction. */
export interface RestrictBody {
  only_workers: string[] | null;
}

/** `catch_up` says which plan times of the pause still run: none (`skip`), the `latest`, or `all`. */
export interface ResumeBody {
  /** Default: `"skip"` */
  catch_up?: string;
}

/** `was_paused` says whether the queue was paused before. */
export interface ResumedQueue {
  queue: string;
  running: number;
  queued: number;
  scheduled: number;
  paused: Pause | null;
  oldest_at: string | null;
  was_paused: boolean;
}

/** `keep_steps` reuses the results of completed steps; `from_step` reuses only those before that step. */
export interface RetryBody {
  /** Default: `false` */
  keep_steps?: boolean;
  from_step?: string | null;
}

/** Role of a token: `viewer` < `operator` < `admin`; `worker` and `enqueue` may do only that. */
export type Role = "admin" | "enqueue" | "operator" | "viewer" | "worker";

export interface Run {
  id: string;
  job: string;
  job_version: number;
  queue: string;
  priority: number;
  scope: Scope;
  key: string | null;
  state: RunState;
  reason: string | null;
  fence: number;
  attempt: number;
  max_attempts: number;
  payload: unknown;
  result: unknown;
  error: RunError | null;
  created_at: string;
  run_at: string;
  started_at: string | null;
  finished_at: string | null;
  retry_of: string | null;
  worker_id: string | null;
  tags: string[];
  metadata: Record<string, unknown>;
  schedule: string | null;
  plan_time: string | null;
  covers_from: string | null;
  missed_count: number;
  progress: Progress | null;
  cancelled_by: string | null;
  wait_since: string | null;
  wait_until: string | null;
  parent_id: string | null;
}

/** A run to enqueue. `null` counts as omitted. */
export interface RunBody {
  job: string;
  payload?: Record<string, unknown>;
  queue?: string | null;
  priority?: number | null;
  delay?: string | null;
  run_at?: string | null;
  key?: string | null;
  scope?: ScopeBody | null;
  unique?: boolean | string | string[] | UniqueBody | null;
  max_attempts?: number | null;
  backoff?: string | string[] | BackoffBody | null;
  timeout?: string | null;
  tags?: string[] | null;
  metadata?: Record<string, unknown> | null;
  after?: (string | Record<string, string>)[] | null;
  ref?: string | null;
  only_workers?: string[] | null;
  labels?: string[] | null;
  min_worker_version?: string | null;
}

/** Error of a run or an attempt. `core/runs/error_fingerprint.py` defines which errors share a `fingerprint`. */
export interface RunError {
  type: string;
  message: string;
  code?: string | null;
  traceback?: string | null;
  fingerprint?: string | null;
}

/** All conditions must hold. `state` may be repeated: any of them. */
export interface RunQuery {
  state?: RunState[];
  job?: string | null;
  queue?: string | null;
  key?: string | null;
  tag?: string | null;
  scope?: string | null;
  schedule?: string | null;
  worker?: string | null;
  parent?: string | null;
  created_after?: string | null;
  created_before?: string | null;
  error?: string | null;
  fingerprint?: string | null;
  /** Values in the payload, by dotted path: `payload.url=https://…` */
  payload?: Record<string, string | number | boolean | null>;
  retried?: boolean | null;
}

export type RunState = "cancelled" | "cancelling" | "expired" | "failed" | "queued" | "running" | "scheduled" | "skipped" | "succeeded" | "timed_out" | "waiting";

/** The run's new state. */
export interface RunStateAnswer {
  state: RunState;
}

/** Command and filter. If more than `expected` match, nothing is changed. An empty filter needs `everything`. `dry_run` only counts. */
export interface RunsBulkBody {
  action: "cancel" | "retry";
  filter?: RunQuery;
  expected?: number | null;
  /** Default: `false` */
  everything?: boolean;
  reason?: string | null;
  /** Default: `false` */
  dry_run?: boolean;
}

/** `jobs` are counted by state. `stale_locks_cleared` counts the expired leases that this process has taken away. */
export interface SchedulerMetrics {
  jobs: Record<string, number>;
  executions: ExecutionTotals;
  last_check_at: string | null;
  last_metrics_update: string;
  stale_locks_cleared: number;
}

/** All schedules of a job or an owner, or those named. */
export interface SchedulesBulkBody {
  action: "disable" | "enable" | "pause" | "resume";
  job?: string | null;
  owner?: string | null;
  names?: string[] | null;
  expected?: number | null;
  reason?: string | null;
  /** Default: `false` */
  dry_run?: boolean;
}

export interface Scope {
  kind: string;
  id: string;
}

/** A scope. */
export interface ScopeBody {
  kind: string;
  id: string;
}

/** Result of a delivery, such as the status of an HTTP response. */
export interface Sent {
  /** Result of a delivery, such as the status of an HTTP response */
  sent: unknown;
}

/** Chart, from the start of its first step to the end of the last one, or to now. */
export interface Series {
  from: string;
  to: string;
  step: string;
  buckets: Bucket[];
}

/** The token to sign in with. */
export interface SessionBody {
  token: string;
}

/** `changes`: another trigger or other options, as in a document. `outages`: periods without a scheduler, each from and to; times with a zone, or relative to `start` (`+1h`). */
export interface SimulateBody {
  /** Default: `"1d"` */
  span?: string;
  start?: string | null;
  /** Default: `"1s"` */
  duration?: string;
  fail_every?: number | null;
  outages?: [string, string][];
  workers?: number | null;
  changes?: Record<string, unknown>;
}

/** Fate of a plan time; `missed` and `covered` stand for `count` of them, up to `to_at`. */
export interface SimulatedRun {
  kind: string;
  plan_time: string;
  scope?: string | null;
  started_at?: string | null;
  finished_at?: string | null;
  attempt?: number;
  reason?: string | null;
  count?: number;
  to_at?: string | null;
}

/** Report of a simulation. `counts` are of everything until `until_at`. `truncated`: there was too much to decide, and `until_at` is earlier than asked for. `events_truncated`: there are more of them, and `events` has the first. */
export interface SimulationReport {
  from_at: string;
  until_at: string;
  counts: Record<string, number>;
  events: SimulatedRun[];
  truncated: boolean;
  events_truncated: boolean;
}

/** Status of the process. */
export interface Status {
  status: string;
}

/** Step of a run; `kept_from`: the earlier run that completed it, of which this run is a retry. */
export interface Step {
  id: string;
  name: string;
  state: StepState;
  attempt: number | null;
  started_at: string | null;
  finished_at: string | null;
  percentage: number | null;
  summary: string | null;
  result: unknown;
  error: unknown;
  kept_from: string | null;
}

/** State of a step, with its result or error. */
export interface StepBody {
  fence: number;
  id: string;
  state: string;
  result?: unknown;
  error?: string | ErrorBody | null;
}

export type StepState = "cancelled" | "failed" | "pending" | "running" | "skipped" | "succeeded";

/** The state that the step is in. */
export interface StepStateAnswer {
  state: StepState;
}

/** Timeline; `truncated`: there are older attempts that are left out. */
export interface Timeline {
  from: string;
  to: string;
  by: string;
  lanes: Lane[];
  truncated: boolean;
}

/** Attempt; `state` is its outcome or, while it lasts, `running`, `cancelling` or `waiting`. */
export interface TimelineAttempt {
  run_id: string;
  no: number;
  job: string;
  state: string;
  worker_id: string | null;
  started_at: string;
  ended_at: string | null;
}

export interface Token {
  id: string;
  name: string;
  role: Role;
  scope: Scope | null;
  created_at: string;
  created_by: string | null;
  expires_at: string | null;
  revoked_at: string | null;
  revoked_by: string | null;
  used_at: string | null;
}

/** Scope of a token. */
export interface TokenScope {
  kind: string;
  id: string;
}

/** Create a token and return it with its secret, which is not stored and cannot be read again. */
export interface TokensCreateBody {
  /** Name of the token, as the audit log shows it */
  name: string;
  /** viewer, operator, admin, worker or enqueue */
  role: string;
  /** Time until it expires, or `never`. Default: `"90d"` */
  expires?: string;
  /** It only gives access to runs of this scope */
  scope?: string | TokenScope | null;
}

/** `scope` (`kind/id`) limits it to one scope. `force` ignores the overlap policy. */
export interface TriggerBody {
  scope?: string | null;
  /** Default: `false` */
  force?: boolean;
}

/** The runs created. */
export interface TriggeredRuns {
  items: Run[];
}

/** Uniqueness of a run. */
export interface UniqueBody {
  fields?: string[];
  period?: string | null;
  /** Default: `"existing"` */
  on_conflict?: string;
  clear?: string[];
}

/** Result for one schedule: `plan_times` compared, of all scopes; `unverified` stretches cannot be recomputed. */
export interface Verification {
  schedule: string;
  plan_times: number;
  findings: Finding[];
  unverified: string[];
}

/** Worker; `held` counts all runs that it holds, `runs` are the oldest of them. */
export interface Worker {
  id: string;
  name: string;
  host: string;
  pid: number;
  version: string;
  state: WorkerState;
  queues: Record<string, number>;
  jobs: string[];
  slots: number;
  held: number;
  runs: WorkerRun[];
  started_at: string;
  seen_at: string;
  heartbeat: string | null;
  poll: string | null;
  asked: OperatorRequest | null;
  asked_by: string | null;
  labels: string[];
  app_version: string;
}

/** Numbers of workers and slots. `stale`: silent for longer than a lease, no shutdown. `busy`: slots in use. */
export interface WorkerCounts {
  alive: number;
  stale: number;
  slots: number;
  busy: number;
}

/** Run that a worker has claimed. */
export interface WorkerRun {
  id: string;
  job: string;
  attempt: number;
  claimed_at: string;
}

/** Settings that may change while a worker runs; None: as it was started. */
export interface WorkerSettings {
  slots?: number | null;
  queues?: Record<string, number> | null;
  heartbeat?: string | null;
  poll?: string | null;
}

/** State of a worker. A worker never reports `gone`: it follows from a silence longer than its lease. */
export type WorkerState = "draining" | "gone" | "stopping" | "working";

/** Change the given settings of running workers. */
export interface WorkersUpdateBody {
  /** Runs at a time */
  slots?: number | null;
  /** Names of queues, or names with weights */
  queues?: Record<string, number> | string[] | null;
  /** Time between heartbeats */
  heartbeat?: string | null;
  /** Longest time between two looks for work */
  poll?: string | null;
}
