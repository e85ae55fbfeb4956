// Written by tools/api_types.py from the API's OpenAPI document. Do not edit.

/** Act that helps: a verb of the client with its arguments, and the same as a command. */
export interface Action {
  /** Verb of the client, such as `schedules.resume` */
  verb: string;
  /** Its arguments */
  args: Record<string, unknown>;
  /** The same on the command line */
  command: string;
}

/** Run assigned to an external worker. */
export interface Assignment {
  /** Its id */
  id: string;
  /** Number that grows with every claim; only who has the newest one may report */
  fence: number;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number;
  /** Most attempts, the first one included */
  max_attempts: number;
  /** Name of the job */
  job: string;
  /** Version of the job when the run was enqueued */
  job_version: number;
  /** Arguments of the job, by name */
  payload: Record<string, unknown>;
  /** The tenant or object that it is for; unique keys and quotas apply to each scope */
  scope: Scope;
  /** Key of the caller's own: while a run with it has not ended, another enqueue returns that run */
  key: string | null;
  /** Time for which the schedule planned the run */
  plan_time: string | null;
  /** Key that is the same for every attempt and every retry of the same work */
  idempotency_key: string;
  /** When the lease expires unless it is extended; for a run that waits, its deadline */
  lease_until: string;
  /** Results of the steps that are done, which need not be repeated */
  steps: Record<string, unknown>;
}

/** Attempt of a run; `outcome` and `ended_at` are None while it is running. */
export interface Attempt {
  /** Number of the attempt */
  no: number;
  /** Number that grows with every claim; only who has the newest one may report */
  fence: number;
  /** Id of the worker that has the run, or had it last */
  worker_id: string;
  /** When a worker claimed the run */
  claimed_at: string;
  /** When the lease expires unless it is extended; for a run that waits, its deadline */
  lease_until: string | null;
  /** When it began; null until then */
  started_at: string | null;
  /** When it ended; null while it is live */
  ended_at: string | null;
  /** How the attempt ended; null while it is live */
  outcome: Outcome | null;
  /** Error with which it ended */
  error: RunError | null;
  /** CPU time of the attempt; null for coroutines */
  cpu_time_ms: number | null;
  /** Highest memory of the attempt in its own process; null otherwise */
  memory_peak_mb: number | null;
  /** What the handler has counted, by name */
  counters: Record<string, number>;
}

/** Item that needs attention. */
export interface Attention {
  /** What is the matter, for programs */
  kind: string;
  /** Name or id of what it is about */
  subject: string | null;
  /** `problem`, or `warning`: it slows things down, or somebody wanted it */
  severity: string;
  /** The scope that it is about, `kind/id`, if it is about one */
  scope: string | null;
  /** Since when */
  since: string | null;
  /** What is the matter, for people */
  text: string;
  /** What may help */
  hint: string | null;
  /** Command for all that match */
  action: Action | null;
  /** How much of it there is, such as failures in a row; a snoozed item is back when this has doubled */
  weight: number;
  /** Until when it is left alone; null if it is not snoozed */
  snoozed_until: string | null;
  /** Who snoozed it */
  snoozed_by: string | null;
  /** Why it is snoozed */
  snooze_reason: string | null;
}

/** Leave an item alone for a while. */
export interface AttentionSnoozeBody {
  /** Kind of the item: database_copied, epoch_new, schedule_overdue, schedule_failing, schedule_missed, schedule_skipped, run_stuck, run_lingering, worker_gone, queue_unserved, job_unknown, failure_rate, run_slow, queue_growing, limit_starves, signals_untold, delivery_refused, expectation_breached, schedule_paused, queue_paused, job_paused, versions_apart, polling, clock */
  kind: string;
  /** Subject of the item, if it has one */
  subject?: string | null;
  /** For how long; at most `30d`. Default: `"4h"` */
  length?: string;
  /** Why, for the audit log */
  reason?: string | null;
}

/** End a snooze. */
export interface AttentionUnsnoozeBody {
  /** Kind of the item: database_copied, epoch_new, schedule_overdue, schedule_failing, schedule_missed, schedule_skipped, run_stuck, run_lingering, worker_gone, queue_unserved, job_unknown, failure_rate, run_slow, queue_growing, limit_starves, signals_untold, delivery_refused, expectation_breached, schedule_paused, queue_paused, job_paused, versions_apart, polling, clock */
  kind: string;
  /** Subject of the item, if it has one */
  subject?: string | null;
}

/** Result of a backfill, or of a dry run. */
export interface Backfill {
  /** Name of the schedule */
  schedule: string;
  /** Number of runs */
  count: number;
  /** How many of them are for plan times that had a run */
  retried: number;
  /** Plan times that ran already, or were coalesced into a run */
  already: number;
  /** Plan times that only a compacted range still accounts for */
  known: number;
  /** Plan times that are still to be decided */
  pending: number;
  /** Plan times whose unique key another run has */
  held: number;
  /** Ids of the runs */
  runs: string[];
  /** The first plan times that got a run */
  plan_times: string[];
  /** Change nothing; only tell what would change */
  dry_run: boolean;
}

/** Exponential backoff between attempts. */
export interface BackoffBody {
  /** Which of several shapes it is */
  type: "exponential";
  /** First delay. Default: `"60s"` */
  base?: string;
  /** Factor by which each delay is longer than the one before. Default: `2.0` */
  factor?: number;
  /** Longest delay. Default: `"1h"` */
  cap?: string;
  /** Share by which delays vary at random. Default: `0.1` */
  jitter?: number;
}

/** Breach as it is shown. */
export interface Breached {
  /** Name of the expectation */
  what: string;
  /** When the breach began */
  since: string;
  /** What happened, for people */
  message: string;
  /** More about it, for programs */
  details: Record<string, unknown>;
}

/** Step of a chart. `queued` and `running` are the highest sample within it; None: there is no sample. */
export interface Bucket {
  /** Start of the step */
  at: string;
  /** Runs that ended within it, by state */
  runs: Record<string, number>;
  /** Median duration */
  duration_p50_ms: number | null;
  /** Duration that 95 % do not exceed */
  duration_p95_ms: number | null;
  /** Median time between due and begun */
  lag_p50_ms: number | null;
  /** Time between due and begun that 95 % do not exceed */
  lag_p95_ms: number | null;
  /** Most runs that could be claimed at a time */
  queued: number | null;
  /** Most runs that were executed at a time */
  running: number | null;
}

/** Result of a bulk operation: of `matched` runs, `done` were changed, the others are counted in `refused`. */
export interface BulkResult {
  /** Number of those that matched */
  matched: number;
  /** Number of those that were changed */
  done: number;
  /** Those that were not changed, by the reason */
  refused: Refused[];
}

/** Cancel a run, and return it: `cancelled`, or `cancelling` while its worker has its grace period. */
export interface CancelBody {
  /** Why, for the audit log */
  reason?: string | null;
}

/** Cancel a job: its live runs end, and until it is resumed its schedules rest and none of its runs begins. */
export interface CancelJobBody {
  /** Why, for the audit log */
  reason?: string | null;
}

/** Effect of a cancel on a run that has begun. */
export interface CancelPolicy {
  /** Whether a running run can be cancelled */
  supported: boolean;
  /** Time that a cancelled run has to stop */
  grace: string;
}

/** Result of cancelling a job: `cancelled` runs have ended or were asked to stop. */
export interface CancelledJob {
  /** Name of the job */
  job: string;
  /** Number of runs that ended or were asked to stop */
  cancelled: number;
  /** State and counts of the job */
  status: JobStatus;
  /** Names of the schedules that rest because of it, until the job is resumed; at most 500 */
  schedules: string[];
}

/** Pause, resume, cancel or retry all jobs that match a filter. */
export interface ChangeJobsBody {
  /** Command for all that match */
  action: "pause" | "resume" | "cancel" | "retry";
  /** Conditions, all of which must hold */
  filter?: JobFilter | null;
  /** How many are expected; if more match, nothing is changed */
  expected?: number | null;
  /** Required where the filter is empty. Default: `false` */
  everything?: boolean;
  /** Why, for the audit log */
  reason?: string | null;
  /** Plan times of the pause that still run: `skip`, `latest` or `all`. Default: `"skip"` */
  catch_up?: string;
  /** Change nothing; only tell what would change. Default: `false` */
  dry_run?: boolean;
}

/** `schedule` has the parts that change of the schedule that belongs to the job; a job without one gets it. Words of other schedulers are translated as those of a new job: `interval_minutes`, `cron_expr`, `schedule_enabled` and others are about its schedule. `source_name` may only repeat the job's name. */
export interface ChangedJobBody {
  /** What kind of thing it is, or is about */
  kind?: "http" | "command" | "external" | "pipeline";
  /** Address of the HTTP request */
  url?: string | null;
  /** Method of the HTTP request */
  method?: string | null;
  /** Headers of the HTTP request */
  headers?: Record<string, string> | null;
  /** Body of the HTTP request; by default the payload as JSON for POST, PUT and PATCH */
  body?: unknown;
  /** Statuses that count as success: `200`, `2xx`, `200-204`, or a list of them */
  expect_status?: number | string | (number | string)[] | null;
  /** Statuses that are retried; every other failure is final */
  retry_on?: number | string | (number | string)[] | null;
  /** Whether redirects are followed; by default for GET and HEAD */
  redirects?: boolean | null;
  /** How much of a response is stored */
  max_response?: number | string | null;
  /** Secret that signs requests, or the token itself; shown only where it is created */
  secret?: string | null;
  /** Program and its arguments */
  argv?: string[] | null;
  /** Environment variables of the command */
  env?: Record<string, string> | null;
  /** Folder in which the command runs */
  cwd?: string | null;
  /** Standard input of the command */
  stdin?: string | null;
  /** Exit codes that are retried; every other failure is final */
  retry_exit_codes?: number[] | null;
  /** Most CPU time of an attempt */
  cpu_limit?: string | null;
  /** Most memory of an attempt */
  memory_limit?: number | string | null;
  /** Steps of the run */
  steps?: (string | Record<string, unknown>)[] | null;
  /** Parts of a pipeline: a `step` and a `job` each, and the `payload` of that job */
  pipeline?: Record<string, unknown>[] | null;
  /** JSON Schema of the payload */
  payload_schema?: Record<string, unknown> | null;
  /** Name of the queue in which runs wait */
  queue?: string | null;
  /** -1000 to 1000; higher ones run first */
  priority?: number | null;
  /** Most attempts, the first one included */
  max_attempts?: number | null;
  /** Delays between attempts: `"30s"`, a list whose last entry repeats, or an exponential one */
  backoff?: string | string[] | BackoffBody | null;
  /** Longest duration of an attempt */
  timeout?: string | null;
  /** After a lost lease: `retry`, or `fail`, so that no handler starts again */
  on_lost?: string | null;
  /** False: a run that a worker has claimed cannot be cancelled */
  cancellable?: boolean | null;
  /** How long a cancelled handler may take before the run is ended without it */
  cancel_grace?: string | null;
  /** Uniqueness: true for the whole payload, a field, fields, or all options */
  unique?: boolean | string | string[] | UniqueBody | null;
  /** Most runs at a time, on all workers together */
  max_concurrency?: number | null;
  /** Most runs at a time with the same key, or several such limits */
  limit?: Record<string, unknown> | Record<string, unknown>[] | null;
  /** Names of workers that may run it; null for all */
  only_workers?: string[] | null;
  /** Labels of workers: a worker must have all that a run requires */
  labels?: string[] | null;
  /** Lowest version of the application that may run it */
  min_worker_version?: string | null;
  /** How many workers each execute it: a number, `"all"`, or both with options */
  replicas?: number | string | Record<string, unknown> | null;
  /** What is expected of its runs */
  expect?: Record<string, unknown> | null;
  /** Finished runs are kept while they are among the newest of this number */
  keep?: number | null;
  /** Finished runs are kept for this long */
  keep_for?: string | null;
  /** False: it is switched off */
  enabled?: boolean | null;
  /** False: at most one success for each scope, ever */
  repeatable?: boolean | null;
  /** Whether schedules may name it */
  schedulable?: boolean | null;
  /** What it is for, for people */
  description?: string | null;
  /** Words by which runs can be listed */
  tags?: string[] | null;
  /** Anything that callers store with it */
  metadata?: Record<string, unknown> | null;
  /** Changes of the job's own schedule */
  schedule?: Record<string, unknown> | null;
}

/** Result of a check: its subject, level, explanation, and what to do about it. */
export interface Check {
  /** Its name */
  name: string;
  /** Level of the log line: debug, info, warning, error or critical */
  level: string;
  /** The explanation in sentences */
  words: string;
  /** What may help */
  hint: string | null;
  /** What the explanation is based on, for programs */
  facts: Record<string, unknown>;
}

/** The claimed runs. */
export interface ClaimedRuns {
  /** The claimed runs */
  runs: Assignment[];
}

/** Program, arguments and environment of a command job. `stdin`: None for nothing, or `payload`. `retry_exit_codes`: the exit codes that are retried, None for all. */
export interface CommandLine {
  /** Program and its arguments */
  argv: string[];
  /** Environment variables of the command */
  env: Record<string, string>;
  /** Folder in which the command runs */
  cwd: string | null;
  /** Standard input of the command */
  stdin: string | null;
  /** Exit codes that are retried; every other failure is final */
  retry_exit_codes: number[] | null;
}

/** Number of matching runs; a lower bound if not `exact`, because counting stopped at a limit or a timeout. */
export interface Counted {
  /** How many */
  count: number;
  /** False if there may be more, because counting stopped */
  exact: boolean;
  /** Sum of the durations of those that have ended, if it was asked for */
  run_time_ms?: number | null;
}

/** Job that was created or replaced. `created`: it did not exist before. `schedule` and `run` are those created with it, now or before; the schedule as documents show it. */
export interface CreatedJob {
  /** Its name */
  name: string;
  /** Version of the program */
  version: number;
  /** What kind of thing it is, or is about */
  kind: string;
  /** Name of the queue in which runs wait */
  queue: string;
  /** -1000 to 1000; higher ones run first */
  priority: number;
  /** False: it is not retried */
  retry: RetryPolicy;
  /** Longest duration of an attempt */
  timeout: string | null;
  /** After a lost lease: `retry`, or `fail`, so that no handler starts again */
  on_lost: string;
  /** Where a handler that is no coroutine runs: `thread` or `process` */
  isolation: string;
  /** CPU time that an attempt may take, in a process of its own */
  cpu_limit: string | null;
  /** Bytes that an attempt may use, in a process of its own */
  memory_limit: number | null;
  /** How often a handler is repeated within one attempt */
  local_retries: number;
  /** How a running run is cancelled */
  cancel: CancelPolicy;
  /** Which finished runs are kept */
  retention: Retention;
  /** Uniqueness: true for the whole payload, a field, fields, or all options */
  unique: Unique | null;
  /** Limits of concurrency and rate */
  limits: Limit[];
  /** Steps of the run */
  steps: StepDefinition[];
  /** What a worker must have to execute its runs */
  needs: Requirements;
  /** How many workers each execute it: a number, `"all"`, or both with options */
  replicas: Replicas | null;
  /** What is expected of its runs */
  expect: Expectations | null;
  /** False: it is switched off */
  enabled: boolean;
  /** False: at most one success for each scope, ever */
  repeatable: boolean;
  /** Whether schedules may name it */
  schedulable: boolean;
  /** What it is for, for people */
  description: string;
  /** Words by which runs can be listed */
  tags: string[];
  /** Anything that callers store with it */
  metadata: Record<string, unknown>;
  /** JSON Schema of the payload */
  payload_schema: Record<string, unknown>;
  /** Request of an HTTP job, with its secrets masked */
  http: HttpRequest | null;
  /** Program of a command job, with its secrets masked */
  command: CommandLine | null;
  /** Jobs that are its parts, if it is a pipeline */
  pipeline: Part[];
  /** State and counts of the job */
  status: JobStatus;
  /** When the job was stored; null if only this process declares it */
  created_at: string | null;
  /** When its definition was last changed */
  updated_at: string | null;
  /** Whether the job is new */
  created: boolean;
  /** The schedule that was created with the job */
  schedule: Record<string, unknown> | null;
  /** The run that was created with the job */
  run: Run | null;
}

/** Accept the database as the original: what is due is planned, claimed and sent from now on. */
export interface DatabaseAcceptBody {
  /** Why, for the audit log */
  reason?: string | null;
}

/** Standing of the database: where it is in its history, and whether it may work. */
export interface DatabaseStanding {
  /** What kind of thing it is, or is about */
  kind: string;
  /** How many failovers and restores the database has gone through; fences of a later epoch are larger */
  epoch: number;
  /** True: it is a copy that nobody has accepted, and does nothing by itself */
  held: boolean;
  /** When its epoch began; null in the first epoch, or if the server does not tell where it is */
  since: string | null;
  /** When the copy was accepted as the original */
  accepted_at: string | null;
  /** Who accepted it */
  accepted_by: string | null;
  /** Runs of this epoch that workers held or reported, and that the database did not know any more */
  lost_runs: number;
}

/** Fixed delay for each retry; the last one repeats. */
export interface Delays {
  /** Which of several shapes it is */
  type: "delays";
  /** Delays before the second attempt, the third, …; the last one also before all others */
  delays: string[];
}

/** Effect of changes on one schedule, with its next plan times before and after. A pause is left alone. */
export interface Difference {
  /** `create`, `change`, `delete` or `unchanged` */
  kind: string;
  /** Its name */
  name: string;
  /** Keys that differ */
  changes: FieldChange[];
  /** The next plan times without the change */
  fires_before: string[];
  /** The next plan times with the change */
  fires_after: string[];
  /** Whether the schedule is paused, which stays so */
  paused: boolean;
  /** Trigger in words; null if it makes no sense */
  rule: string | null;
  /** Time zone in which the schedule is computed */
  timezone: string;
  /** What keeps it from being stored */
  problems: DocumentProblem[];
  /** What is allowed, and probably not meant */
  warnings: string[];
  /** How long its simulated runs take, and where that comes from */
  durations: string | null;
}

/** Problem that keeps a document from being a schedule. */
export interface DocumentProblem {
  /** Code of the error */
  code: string;
  /** What is wrong */
  detail: string;
  /** What may help */
  hint: string | null;
  /** Key of the document that is at fault */
  key: string | null;
}

/** Run that a command enqueued; `created` is false when an idempotency key led to an existing run. */
export interface EnqueuedRun {
  /** Its id */
  id: string;
  /** Name of the job */
  job: string;
  /** Version of the job when the run was enqueued */
  job_version: number;
  /** Name of the queue in which runs wait */
  queue: string;
  /** -1000 to 1000; higher ones run first */
  priority: number;
  /** The tenant or object that it is for; unique keys and quotas apply to each scope */
  scope: Scope;
  /** Key of the caller's own: while a run with it has not ended, another enqueue returns that run */
  key: string | null;
  /** State it is in; a filter may name several */
  state: RunState;
  /** Why it was cancelled, or ended without a result of its handler */
  reason: string | null;
  /** Number that grows with every claim; only who has the newest one may report */
  fence: number;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number;
  /** Most attempts, the first one included */
  max_attempts: number;
  /** Arguments of the job, by name */
  payload: unknown;
  /** What the handler returned */
  result: unknown;
  /** Error of the last attempt that failed */
  error: RunError | null;
  /** When it was created */
  created_at: string;
  /** When the run is or was due */
  run_at: string;
  /** When it began; null until then */
  started_at: string | null;
  /** When it ended; null until then */
  finished_at: string | null;
  /** The run that this one repeats */
  retry_of: string | null;
  /** Id of the worker that has the run, or had it last */
  worker_id: string | null;
  /** Words by which runs can be listed */
  tags: string[];
  /** Anything that callers store with it */
  metadata: Record<string, unknown>;
  /** Name of the schedule */
  schedule: string | null;
  /** Time for which the schedule planned the run */
  plan_time: string | null;
  /** The first of the older plan times that the run covers, if any */
  covers_from: string | null;
  /** Number of older plan times that the run covers */
  missed_count: number;
  /** What the run has reported of its progress; null if nothing */
  progress: Progress | null;
  /** Who cancelled it or asked for it: a person, `api`, or a policy of rota (`policy:…`) */
  cancelled_by: string | null;
  /** Since when the run waits for external work */
  wait_since: string | null;
  /** When the run that waits for external work times out */
  wait_until: string | null;
  /** The run of which this one is a replica */
  parent_id: string | null;
  /** Whether the run is new */
  created: boolean;
}

/** `created` says which of them are new; the others existed. */
export interface EnqueuedRuns {
  /** The items of this page */
  items: Run[];
  /** Whether each of the runs is new; the others existed */
  created: boolean[];
}

/** Failed runs with the same error. Errors older than fingerprints have none, and form one group of each job. Of all jobs together, errors are the same if type, code and message are, wherever they were raised. */
export interface ErrorGroup {
  /** Fingerprint, the same for errors that differ only in numbers, ids, addresses and quoted texts */
  fingerprint: string | null;
  /** Job of the newest run */
  job: string;
  /** Numbers of runs by job and fingerprint, of the 50 that have most of them */
  parts: GroupPart[];
  /** Number of jobs with this error */
  job_count: number;
  /** Type of the newest error */
  type: string | null;
  /** Message of the newest error */
  message: string | null;
  /** Number of runs */
  count: number;
  /** When it happened first */
  first_at: string;
  /** When it happened last */
  last_at: string;
  /** Id of the newest run */
  last_run_id: string;
  /** Numbers of runs by state */
  states: Record<string, number>;
  /** Numbers of runs in 24 equal parts of the time range */
  histogram: number[];
}

/** Error groups, the one seen last first unless asked otherwise. */
export interface ErrorGroups {
  /** The items of this page */
  items: ErrorGroup[];
  /** Beginning of the time range */
  since: string;
  /** End of the time range */
  until: string;
  /** True if there were more failed runs than were read */
  truncated: boolean;
  /** Cursor of the next page; null if this is the last one */
  next_cursor: string | null;
}

/** Error of an external job. */
export interface ErrorReport {
  /** What happened, for people */
  message: string;
  /** Type of the error */
  type?: string | null;
  /** Code of the error, for programs */
  code?: string | null;
  /** Where in the code it happened */
  traceback?: string | null;
}

/** Line of the audit trail. Older programs did not record states. */
export interface Event {
  /** Number that orders the lines of one answer: from 1 in the trail of a run or a schedule, else the line's own */
  seq: number;
  /** When it happened */
  at: string;
  /** Kind of the subject: `run`, `schedule`, `job`, `worker` and others */
  kind: string;
  /** Name or id of what it is about */
  subject: string;
  /** What happened: `enqueued`, `claimed`, `paused` and others */
  type: string;
  /** State of the run before, where it changed */
  from: RunState | null;
  /** State of the run after, where it changed */
  to: RunState | null;
  /** Number that grows with every claim; only who has the newest one may report */
  fence: number | null;
  /** Who did it: a person, a token, or a policy of rota */
  actor: string | null;
  /** More about it, for programs */
  details: Record<string, unknown>;
}

/** One attempt of a run. All attempts of a run have its number; `retry_attempt` tells them apart. */
export interface Execution {
  /** The id of the run and the fence of the attempt: `<run>:<fence>` */
  id: string;
  /** Id of the run */
  run_id: string;
  /** Name of the job */
  job_id: string;
  /** Number of the run among those that its job ever had, from 1; null for callers who may see one scope only */
  execution_number: number | null;
  /** `running`, `completed`, `failed` or `cancelled` */
  status: string;
  /** How the attempt ended, in rota's words; null while it is running */
  outcome: Outcome | null;
  /** When the attempt began, or was claimed if it has not begun */
  started_at: string;
  /** When the attempt ended; null until then */
  completed_at: string | null;
  /** Time from its start to its end */
  duration_ms: number | null;
  /** Number of the attempt of its run, from 0 */
  retry_attempt: number;
  /** Message of the error with which the attempt ended */
  error_message: string | null;
  /** CPU time of the attempt; null for coroutines */
  cpu_time_ms: number | null;
  /** Highest memory of the attempt in its own process; null otherwise */
  memory_peak_mb: number | null;
  /** What the handler has counted, by name */
  counters: Record<string, number>;
  /** Anything that callers store with it */
  metadata: Record<string, unknown>;
}

/** Totals over all executions. */
export interface ExecutionTotals {
  /** How many there are in all */
  total: number;
  /** Average duration */
  average_duration_ms: number | null;
  /** Share of runs that succeeded, 0 to 1 */
  success_rate: number | null;
}

/** A page of executions. */
export interface Executions {
  /** The executions, newest run first, and within it the last attempt first */
  executions: Execution[];
  /** Number of executions of the job that are kept; if `capped`, of its newest ten thousand runs */
  total: number;
  /** Maximum number of items */
  limit: number;
  /** How many items to leave out */
  offset: number;
  /** True if the job has more executions than `total` says */
  capped: boolean;
}

/** Expectations, all optional. The success rate is that of the last `over` runs that succeeded or failed, once there are `at_least` that many. */
export interface Expectations {
  /** Time within which a due run must start */
  start_within?: string | null;
  /** Time within which a due run must end */
  finish_within?: string | null;
  /** Longest time without a success */
  success_every?: string | null;
  /** Longest time that a run may take */
  max_duration?: string | null;
  /** Most failures in a row */
  max_consecutive_failures?: number | null;
  /** Lowest share of runs that succeed, from 0 to 1 */
  min_success_rate?: number | null;
  /** Number of the last runs of which the share is computed */
  over?: number;
  /** Runs that must have ended before the share counts */
  at_least?: number;
}

/** Replace the expectations of a job or schedule, like `update`. */
export interface ExpectationsReplaceBody {
  /** A run starts at most this long after it is due */
  start_within?: string | null | null;
  /** A run ends at most this long after it is due */
  finish_within?: string | null | null;
  /** A run succeeds at least this often */
  success_every?: string | null | null;
  /** An attempt takes at most this long */
  max_duration?: string | null | null;
  /** At most this many runs fail in a row */
  max_consecutive_failures?: number | null | null;
  /** At least this share of the last runs succeeds: `0.95` or `"95%"` */
  min_success_rate?: number | string | null | null;
  /** Number of last runs for the rate, by default 20 */
  over?: number | null | null;
  /** Ended runs before the rate counts, by default 5 */
  at_least?: number | null | null;
}

/** Change the given expectations of a job or schedule; None removes one. */
export interface ExpectationsUpdateBody {
  /** A run starts at most this long after it is due */
  start_within?: string | null | null;
  /** A run ends at most this long after it is due */
  finish_within?: string | null | null;
  /** A run succeeds at least this often */
  success_every?: string | null | null;
  /** An attempt takes at most this long */
  max_duration?: string | null | null;
  /** At most this many runs fail in a row */
  max_consecutive_failures?: number | null | null;
  /** At least this share of the last runs succeeds: `0.95` or `"95%"` */
  min_success_rate?: number | string | null | null;
  /** Number of last runs for the rate, by default 20 */
  over?: number | null | null;
  /** Ended runs before the rate counts, by default 5 */
  at_least?: number | null | null;
}

/** Expectations of a job or a schedule, their owner, and current breaches. */
export interface Expected {
  /** `job` or `schedule` */
  kind: string;
  /** Name of the job or schedule */
  subject: string;
  /** The expectations */
  expect: Record<string, unknown>;
  /** Who declared it: a program, a person, a token, or the owner of a file */
  owner: string;
  /** When they were set */
  since: string;
  /** True while the job or schedule is paused or disabled */
  resting: boolean;
  /** What is breached now */
  breaches: Breached[];
}

/** Explanation of a run or a plan time: `verdict` is one word, `words` are sentences, `facts` are for programs. */
export interface Explanation {
  /** The explanation in one word */
  verdict: string;
  /** The explanation in sentences */
  words: string[];
  /** What the explanation is based on, for programs */
  facts: Record<string, unknown>;
}

/** Delay of `base × factor^(attempt-1)`, plus up to `jitter` of it at random, never more than `cap`. */
export interface Exponential {
  /** Which of several shapes it is */
  type: "exponential";
  /** First delay */
  base: string;
  /** Factor by which each delay is longer than the one before */
  factor: number;
  /** Longest delay */
  cap: string;
  /** Share by which delays vary at random */
  jitter: number;
}

/** Confirm that the run has stopped because its cancellation was requested. */
export interface ExternalCancelledBody {
  /** The number that came with the run */
  fence: number;
}

/** Claim up to `max` runs of external jobs from `queues`, in that order; return none if there are none within `wait`. */
export interface ExternalClaimBody {
  /** A name, or `name@boot` for a program that tells its starts apart */
  worker: string;
  /** Queues, the first ones first. Default: `["default"]` */
  queues?: string[];
  /** Jobs to claim runs of, by default every external one */
  jobs?: string[] | null;
  /** Most runs to claim. Default: `1` */
  max?: number;
  /** How long to wait for a run, up to 30s */
  wait?: string | null;
  /** How long a run is theirs without a heartbeat */
  lease?: string | null;
  /** All runs that the worker knows of; other leases of it are handed back */
  held?: HeldRun[] | null;
  /** What it has, for runs that require it: `["gpu", "zone=eu"]` */
  labels?: string[] | null | null;
  /** Its version, shown among the workers */
  version?: string | null | null;
}

/** Complete the run with a result. */
export interface ExternalCompleteBody {
  /** The number that came with the run */
  fence: number;
  /** Any JSON */
  result?: unknown;
}

/** Report a failure. */
export interface ExternalFailBody {
  /** The number that came with the run */
  fence: number;
  /** A message, or an error with one */
  error: string | ErrorReport;
  /** Whether to retry it. Default: `true` */
  retry?: boolean;
  /** When to retry it, instead of as its policy says */
  after?: string | null;
}

/** Renew the lease for as long as the claim asked for. */
export interface ExternalHeartbeatBody {
  /** The number that came with the run */
  fence: number;
}

/** Append lines to the run's log: text, or `{"text", "level", "logger"}`. */
export interface ExternalLogsBody {
  /** The number that came with the run */
  fence: number;
  /** Lines to append */
  lines: (string | LineReport)[];
  /** Number that grows from 1: the same is stored once */
  no?: number | null;
}

/** Report progress (`percent` from 0 to 100, and a `summary`); this is also a heartbeat. */
export interface ExternalProgressBody {
  /** The number that came with the run */
  fence: number;
  /** How much is done, from 0 to 100 */
  percentage?: number | null;
  /** What is being done */
  summary?: string | null;
}

/** Record the state of a step and return the state stored. */
export interface ExternalStepBody {
  /** The number that came with the run */
  fence: number;
  /** Id of the step within the run */
  id: string;
  /** running, succeeded, failed or skipped */
  state: string;
  /** Any JSON */
  result?: unknown;
  /** Why it failed */
  error?: string | ErrorReport | null;
}

/** Runs that are linked with one another, directly or through others. */
export interface Family {
  /** Runs, the nearest to the one asked about first */
  items: FamilyRun[];
  /** What links them, each from an earlier run to a later one */
  links: FamilyLink[];
  /** True if runs are left out; `more` says where */
  truncated: boolean;
}

/** Link from an earlier run to a later one that was made because of it, or waits for it. */
export interface FamilyLink {
  /** Id of the predecessor, of the parent of a replica, or of the run that was retried */
  from: string;
  /** Id of the run that follows, replicates or retries it */
  to: string;
  /** `dependency`, `replica` or `retry` */
  kind: string;
  /** When a dependent run may start: after `success`, or after any `end` */
  on: string | null;
}

/** Run in a family. If it was pruned, only its id is known. */
export interface FamilyRun {
  /** Its id */
  id: string;
  /** Name of the job */
  job: string | null;
  /** State it is in; a filter may name several */
  state: RunState | null;
  /** Name of the queue in which runs wait */
  queue: string | null;
  /** The tenant or object that it is for; unique keys and quotas apply to each scope */
  scope: Scope | null;
  /** Name of the schedule */
  schedule: string | null;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number;
  /** Worker that runs it, or ran it last */
  worker_id: string | null;
  /** When it was created */
  created_at: string | null;
  /** When it was due */
  run_at: string | null;
  /** When it began; null until then */
  started_at: string | null;
  /** When it ended; null until then */
  finished_at: string | null;
  /** Progress that it has reported */
  percentage: number | null;
  /** True if it has links that lead to runs which are left out */
  more: boolean;
}

/** Change of one key of a schedule's document; None stands for the default, where the document has no such key. */
export interface FieldChange {
  /** Key of the document */
  key: string;
  /** Value until now; null for the default */
  before: unknown;
  /** New value; null for the default */
  after: unknown;
}

/** Inconsistency. */
export interface Finding {
  /** What is inconsistent, for programs */
  problem: string;
  /** What is inconsistent, for people */
  words: string;
  /** The tenant or object that it is for; unique keys and quotas apply to each scope */
  scope: Scope | null;
  /** Revisions of the schedule that are concerned */
  revisions: number[];
  /** Beginning of the time range */
  from_at: string | null;
  /** End of the time range */
  to_at: string | null;
  /** How many plan times or records there should be */
  expected: number | null;
  /** How many there are */
  found: number | null;
  /** Id of the run */
  run_id: string | null;
  /** Plan times */
  plan_times: string[];
}

/** A plan time to come. `local` is in the schedule's `zone`; `eligible_at` is when its run may start, jitter aside. `marks`: `gap` (its time of the day does not exist, it fires right after), `fold-first`, `fold-second` (its time of the day comes twice), `transition` (the first one after the clocks changed). */
export interface Fire {
  /** Time for which the schedule planned the run */
  plan_time: string;
  /** The plan time in the schedule's time zone */
  local: string;
  /** When its run may start, jitter aside */
  eligible_at: string;
  /** What is special about its time of the day: `gap`, `fold-first`, `fold-second` or `transition` */
  marks: string[];
  /** Time zone in which the schedule is computed */
  zone: string;
  /** Name of the schedule */
  schedule: string;
}

/** Plan times of a schedule that did not run. */
export interface Gap {
  /** `skipped` by a policy or a pause, or `missed` because nothing planned at that time */
  kind: string;
  /** First of the plan times */
  from: string;
  /** Last of the plan times */
  to: string;
  /** Number of plan times */
  count: number;
  /** Why, for the audit log */
  reason: string | null;
  /** Id of the skipped run, if it is a single one that has a run */
  run_id: string | null;
}

/** Order of error groups: the one seen last first, or the largest first. */
export type GroupOrder = "count" | "newest";

/** Runs of one job in an error group that spans several. */
export interface GroupPart {
  /** Name of the job */
  job: string;
  /** Fingerprint, the same for errors that differ only in numbers, ids, addresses and quoted texts */
  fingerprint: string | null;
  /** Number of runs */
  count: number;
}

/** Meaning of a lane: one schedule, job, worker or queue. */
export type Grouping = "job" | "queue" | "schedule" | "worker";

/** Answer to a heartbeat: send the next one before `lease_until`. */
export interface Heartbeat {
  /** True if the run was asked to stop */
  cancelling: boolean;
  /** When the lease expires unless it is extended; for a run that waits, its deadline */
  lease_until: string;
}

/** Run that a worker holds, with its fence. */
export interface HeldRun {
  /** Its id */
  id: string;
  /** Number that grows with every claim; only who has the newest one may report */
  fence: number;
}

/** Request template of an HTTP job. `body` is text or JSON; without one, methods that have a body send the run's payload. `redirects`: whether they are followed; None: those of GET and HEAD only. */
export interface HttpRequest {
  /** Address of the HTTP request */
  url: string;
  /** Method of the HTTP request */
  method: string;
  /** Headers of the HTTP request */
  headers: Record<string, string>;
  /** Body of the HTTP request; by default the payload as JSON for POST, PUT and PATCH */
  body: unknown;
  /** Statuses that count as success: `200`, `2xx`, `200-204`, or a list of them */
  expect_status: string[];
  /** Statuses that are retried; every other failure is final */
  retry_on: string[];
  /** Whether redirects are followed; by default for GET and HEAD */
  redirects: boolean | null;
  /** How much of a response is stored */
  max_response: number;
  /** Secret that signs requests, or the token itself; shown only where it is created */
  secret: string | null;
}

/** Authenticated caller, as recorded with its changes; with a scope, restricted to runs of it. */
export interface Identity {
  /** Name under which the caller's changes are recorded */
  actor: string;
  /** What its holder may do */
  role: Role;
  /** Only runs of this scope may be accessed; null for all */
  scope: Scope | null;
}

/** A new token with its `secret`. */
export interface IssuedToken {
  /** Its id */
  id: string;
  /** Name of the token, as the audit log shows it */
  name: string;
  /** What its holder may do */
  role: Role;
  /** Only runs of this scope may be accessed; null for all */
  scope: Scope | null;
  /** When it was created */
  created_at: string;
  /** Who created it */
  created_by: string | null;
  /** When it expires; null if never */
  expires_at: string | null;
  /** When it was revoked */
  revoked_at: string | null;
  /** Who revoked it */
  revoked_by: string | null;
  /** When it was used last */
  used_at: string | null;
  /** Secret that signs requests, or the token itself; shown only where it is created */
  secret: string;
}

/** Conditions on a job, all of which must hold. */
export interface JobFilter {
  /** Name, or a pattern: `import-*` */
  name?: string | null;
  /** Part of the name, in any case */
  text?: string | null;
  /** python, http, command, external or pipeline */
  kind?: string | null;
  /** Queue of its runs */
  queue?: string | null;
  /** One of its tags */
  tag?: string | null;
  /** State of the job, such as paused or failed */
  state?: string | null;
}

/** State of a job as a whole. */
export type JobState = "cancelled" | "completed" | "failed" | "paused" | "pending" | "running" | "scheduled";

/** Statistics of all runs of a job that ever ended, pruned ones included. */
export interface JobStats {
  /** Name of the job */
  job: string;
  /** Runs that ended */
  total: number;
  /** Runs that succeeded */
  succeeded: number;
  /** Runs that failed */
  failed: number;
  /** Runs that timed out */
  timed_out: number;
  /** Runs that were cancelled */
  cancelled: number;
  /** Runs that were lost and not retried */
  expired: number;
  /** Runs that never began */
  skipped: number;
  /** Share of runs that succeeded, 0 to 1 */
  success_rate: number | null;
  /** Average duration */
  average_duration_ms: number | null;
  /** Duration that half of them do not exceed */
  p50_duration_ms: number | null;
  /** Duration that 95 % do not exceed */
  p95_duration_ms: number | null;
  /** Time of the first one */
  first_at: string | null;
  /** When the last one began */
  last_execution_at: string | null;
  /** When the next run is due */
  next_scheduled_at: string | null;
}

/** State and counts of a job; `next_at` is when its next run is due, None while the job is paused. */
export interface JobStatus {
  /** Name of the job */
  job: string;
  /** State it is in; a filter may name several */
  state: JobState;
  /** Runs that are being executed */
  running: number;
  /** Runs that wait */
  waiting: number;
  /** When its last run began */
  last_run_at: string | null;
  /** When the next run is due */
  next_at: string | null;
  /** Since when it is paused; null if it is not */
  paused_at: string | null;
  /** Who paused it */
  paused_by: string | null;
  /** Why it is paused */
  pause_reason: string | null;
  /** When the job was cancelled; null unless it is, or once it is resumed */
  cancelled_at: string | null;
  /** Who cancelled the job */
  cancelled_by: string | null;
  /** Why the job was cancelled */
  cancel_reason: string | null;
  /** Limit that an operator set on the job, beside those that it declares */
  live_limit: LiveLimit | null;
}

/** Job as callers see it: its definition, with secrets masked, and its `status`. */
export interface JobView {
  /** Its name */
  name: string;
  /** Version of the program */
  version: number;
  /** What kind of thing it is, or is about */
  kind: string;
  /** Name of the queue in which runs wait */
  queue: string;
  /** -1000 to 1000; higher ones run first */
  priority: number;
  /** False: it is not retried */
  retry: RetryPolicy;
  /** Longest duration of an attempt */
  timeout: string | null;
  /** After a lost lease: `retry`, or `fail`, so that no handler starts again */
  on_lost: string;
  /** Where a handler that is no coroutine runs: `thread` or `process` */
  isolation: string;
  /** CPU time that an attempt may take, in a process of its own */
  cpu_limit: string | null;
  /** Bytes that an attempt may use, in a process of its own */
  memory_limit: number | null;
  /** How often a handler is repeated within one attempt */
  local_retries: number;
  /** How a running run is cancelled */
  cancel: CancelPolicy;
  /** Which finished runs are kept */
  retention: Retention;
  /** Uniqueness: true for the whole payload, a field, fields, or all options */
  unique: Unique | null;
  /** Limits of concurrency and rate */
  limits: Limit[];
  /** Steps of the run */
  steps: StepDefinition[];
  /** What a worker must have to execute its runs */
  needs: Requirements;
  /** How many workers each execute it: a number, `"all"`, or both with options */
  replicas: Replicas | null;
  /** What is expected of its runs */
  expect: Expectations | null;
  /** False: it is switched off */
  enabled: boolean;
  /** False: at most one success for each scope, ever */
  repeatable: boolean;
  /** Whether schedules may name it */
  schedulable: boolean;
  /** What it is for, for people */
  description: string;
  /** Words by which runs can be listed */
  tags: string[];
  /** Anything that callers store with it */
  metadata: Record<string, unknown>;
  /** JSON Schema of the payload */
  payload_schema: Record<string, unknown>;
  /** Request of an HTTP job, with its secrets masked */
  http: HttpRequest | null;
  /** Program of a command job, with its secrets masked */
  command: CommandLine | null;
  /** Jobs that are its parts, if it is a pipeline */
  pipeline: Part[];
  /** State and counts of the job */
  status: JobStatus;
  /** When the job was stored; null if only this process declares it */
  created_at: string | null;
  /** When its definition was last changed */
  updated_at: string | null;
}

/** Attempts and plan times of one schedule, job, worker or queue. */
export interface Lane {
  /** Name of the schedule, job, worker or queue */
  name: string;
  /** Attempts, the newest first */
  attempts: TimelineAttempt[];
  /** Plan times to come, the next first */
  coming: string[];
  /** Plan times that did not run, the earliest first */
  gaps: Gap[];
  /** True if two attempts overlap in time */
  overlaps: boolean;
}

/** Runs that ended within the last 24 hours, by state; as exact as charts are. `success_rate`: share of success among those that succeeded, failed, timed out or expired. */
export interface LastDay {
  /** The runs */
  runs: Record<string, number>;
  /** Share of runs that succeeded, 0 to 1 */
  success_rate: number | null;
}

/** The last run of a schedule. */
export interface LastRun {
  /** Its id */
  id: string;
  /** State it is in; a filter may name several */
  state: RunState;
  /** Why, for the audit log */
  reason: string | null;
  /** Time for which the schedule planned the run */
  plan_time: string | null;
  /** When it began; null until then */
  started_at: string | null;
  /** When it ended; null until then */
  finished_at: string | null;
  /** Time from its start to its end */
  duration_ms: number | null;
}

/** Numbers of what is late. */
export interface Late {
  /** Runs that are queued more than 10 s after they were due */
  runs: number;
  /** Schedules that are not planned more than 10 s after they were due */
  schedules: number;
}

/** Limit of `max` runs at once that are alike in `by`: "scope" or fields of the payload; of all runs if it is empty. With `per` it is a rate: at most `max` attempts begin within any span of that length. `when_full="queue"` lets further runs wait, up to `max_queued`; the other modes act at enqueue. */
export interface Limit {
  /** Most runs to claim */
  max: number;
  /** Values that runs share under one limit: fields of the payload, or `scope` */
  by?: string[];
  /** What becomes of a run that finds no room: `queue`, `skip`, `reject` or `cancel_oldest` */
  when_full?: string;
  /** Most runs that may wait */
  max_queued?: number | null;
  /** Time within which `max` attempts may start; null: runs at a time */
  per?: string | null;
}

/** Limit how many runs of a job run at a time, or start within a time, from now on. */
export interface LimitJobBody {
  /** Runs at a time */
  max_concurrency?: number | null;
  /** Attempts that may start within a time: `"5/s"`, `"1000/1h"` */
  rate?: string | null;
  /** For how long; without it, until it is cleared */
  for?: string | null;
  /** Why, for the audit log */
  reason?: string | null;
}

/** Limit how many runs of a queue run at a time, or start within a time, from now on, over all its jobs. */
export interface LimitQueueBody {
  /** Runs at a time */
  max_concurrency?: number | null;
  /** Attempts that may start within a time: `"5/s"`, `"1000/1h"` */
  rate?: string | null;
  /** For how long; without it, until it is cleared */
  for?: string | null;
  /** Why, for the audit log */
  reason?: string | null;
  /** Also one that no job names, and that has no runs. Default: `false` */
  force?: boolean;
}

/** Log line of an external job. */
export interface LineReport {
  /** Text for people */
  text: string;
  /** Level of the log line: debug, info, warning, error or critical. Default: `"info"` */
  level?: string;
  /** Name of the logger. Default: `"external"` */
  logger?: string;
}

/** Runs that have not ended. */
export interface Live {
  /** Runs that are being executed */
  running: number;
  /** Runs that were asked to stop and have not yet */
  cancelling: number;
  /** Runs that may be claimed */
  queued: number;
  /** Runs that are not due yet */
  scheduled: number;
  /** Runs that wait for external work */
  waiting: number;
  /** Since when the run that waits longest could be claimed */
  oldest_queued_at: string | null;
  /** True if there are more queued or scheduled runs than were counted */
  capped: boolean;
}

/** Limit that an operator set on a job or a queue while it runs. */
export interface LiveLimit {
  /** Most runs at a time, on all workers together */
  max_concurrency: number | null;
  /** Attempts that may start within a time: `"1000/1h"` */
  rate: string | null;
  /** Since when the limit holds */
  since: string | null;
  /** Who set the limit */
  by: string | null;
  /** Reason for the limit */
  reason: string | null;
  /** When the limit ends by itself; null: when it is cleared */
  until: string | null;
}

/** Log line; `cursor` is where to continue reading after it. */
export interface LogLine {
  /** When it happened */
  at: string;
  /** Level of the log line: debug, info, warning, error or critical */
  level: string;
  /** Name of the logger */
  logger: string;
  /** Text for people */
  text: string;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number;
  /** Number that grows with every claim; only who has the newest one may report */
  fence: number;
  /** `next_cursor` of the previous page */
  cursor: string;
}

/** A page of log lines. */
export interface LogPage {
  /** The items of this page */
  items: LogLine[];
  /** Cursor of the next page; null if this is the last one */
  next_cursor: string | null;
}

/** Runs to enqueue together. */
export interface ManyRunsBody {
  /** The runs, all or none of which are enqueued */
  runs: RunBody[];
}

/** `schedule` is a schedule's document without its job; it has the job's name unless it names its own. Words of other schedulers are translated: `interval_minutes` with `interval_type`, `cron_expr` and others become a schedule, with `schedule_enabled` and its `payload`; `schedule_enabled: false` alone means one run, now. */
export interface NewJobBody {
  /** What kind of thing it is, or is about */
  kind?: "http" | "command" | "external" | "pipeline";
  /** Address of the HTTP request */
  url?: string | null;
  /** Method of the HTTP request */
  method?: string | null;
  /** Headers of the HTTP request */
  headers?: Record<string, string> | null;
  /** Body of the HTTP request; by default the payload as JSON for POST, PUT and PATCH */
  body?: unknown;
  /** Statuses that count as success: `200`, `2xx`, `200-204`, or a list of them */
  expect_status?: number | string | (number | string)[] | null;
  /** Statuses that are retried; every other failure is final */
  retry_on?: number | string | (number | string)[] | null;
  /** Whether redirects are followed; by default for GET and HEAD */
  redirects?: boolean | null;
  /** How much of a response is stored */
  max_response?: number | string | null;
  /** Secret that signs requests, or the token itself; shown only where it is created */
  secret?: string | null;
  /** Program and its arguments */
  argv?: string[] | null;
  /** Environment variables of the command */
  env?: Record<string, string> | null;
  /** Folder in which the command runs */
  cwd?: string | null;
  /** Standard input of the command */
  stdin?: string | null;
  /** Exit codes that are retried; every other failure is final */
  retry_exit_codes?: number[] | null;
  /** Most CPU time of an attempt */
  cpu_limit?: string | null;
  /** Most memory of an attempt */
  memory_limit?: number | string | null;
  /** Steps of the run */
  steps?: (string | Record<string, unknown>)[] | null;
  /** Parts of a pipeline: a `step` and a `job` each, and the `payload` of that job */
  pipeline?: Record<string, unknown>[] | null;
  /** JSON Schema of the payload */
  payload_schema?: Record<string, unknown> | null;
  /** Name of the queue in which runs wait */
  queue?: string | null;
  /** -1000 to 1000; higher ones run first */
  priority?: number | null;
  /** Most attempts, the first one included */
  max_attempts?: number | null;
  /** Delays between attempts: `"30s"`, a list whose last entry repeats, or an exponential one */
  backoff?: string | string[] | BackoffBody | null;
  /** Longest duration of an attempt */
  timeout?: string | null;
  /** After a lost lease: `retry`, or `fail`, so that no handler starts again */
  on_lost?: string | null;
  /** False: a run that a worker has claimed cannot be cancelled */
  cancellable?: boolean | null;
  /** How long a cancelled handler may take before the run is ended without it */
  cancel_grace?: string | null;
  /** Uniqueness: true for the whole payload, a field, fields, or all options */
  unique?: boolean | string | string[] | UniqueBody | null;
  /** Most runs at a time, on all workers together */
  max_concurrency?: number | null;
  /** Most runs at a time with the same key, or several such limits */
  limit?: Record<string, unknown> | Record<string, unknown>[] | null;
  /** Names of workers that may run it; null for all */
  only_workers?: string[] | null;
  /** Labels of workers: a worker must have all that a run requires */
  labels?: string[] | null;
  /** Lowest version of the application that may run it */
  min_worker_version?: string | null;
  /** How many workers each execute it: a number, `"all"`, or both with options */
  replicas?: number | string | Record<string, unknown> | null;
  /** What is expected of its runs */
  expect?: Record<string, unknown> | null;
  /** Finished runs are kept while they are among the newest of this number */
  keep?: number | null;
  /** Finished runs are kept for this long */
  keep_for?: string | null;
  /** False: it is switched off */
  enabled?: boolean | null;
  /** False: at most one success for each scope, ever */
  repeatable?: boolean | null;
  /** Whether schedules may name it */
  schedulable?: boolean | null;
  /** What it is for, for people */
  description?: string | null;
  /** Words by which runs can be listed */
  tags?: string[] | null;
  /** Anything that callers store with it */
  metadata?: Record<string, unknown> | null;
  /** Its name */
  name: string;
  /** Document of the schedule that is created with the job */
  schedule?: Record<string, unknown> | null;
  /** Payload of a run that is enqueued with the job */
  run?: Record<string, unknown> | null;
}

/** Next plan time of a schedule. */
export interface NextRun {
  /** Name of the schedule */
  schedule: string;
  /** Name of the job */
  job: string;
  /** When it is due */
  at: string;
  /** Time zone in which the schedule is computed */
  zone: string;
  /** When it fires, in words */
  rule: string;
}

/** Notification without its secrets, for people. */
export interface NotificationView {
  /** Its name */
  name: string;
  /** Events that are sent */
  on: string[];
  /** A URL or a `mailto:` address */
  to: string;
  /** Only events of these jobs */
  jobs: string[];
  /** Only events of these schedules */
  schedules: string[];
  /** `***` if messages are signed */
  secret: string | null;
  /** Whether messages include the payload */
  include_payload: boolean;
  /** Most messages in an hour for each job and kind of event */
  at_most: number;
  /** Who declared it: a program, a person, a token, or the owner of a file */
  owner: string;
  /** Whether it is sent */
  enabled: boolean;
  /** When it was created */
  created_at: string;
  /** When it was changed last */
  updated_at: string;
}

/** Create a notification that sends the events `on` ("failure", …) to `to`, a URL or a `mailto:` address. */
export interface NotificationsCreateBody {
  /** Its name */
  name: string;
  /** Signals to send, of success, failure, cancelled, skip, missed, late, breached, met; by default failure */
  on?: string[] | string | null | null;
  /** Only of these jobs; without jobs and schedules, of everything */
  jobs?: string[] | null | null;
  /** Only of these schedules */
  schedules?: string[] | null | null;
  /** Signs webhooks; `env:NAME` is looked up by the sending worker */
  secret?: string | null | null;
  /** Whether to send payloads, too */
  include_payload?: boolean | null | null;
  /** Deliveries per hour, job and kind of event, by default 60 */
  at_most?: number | null | null;
  /** A URL, a `mailto:` address, or a service and its URL: `slack:https://…` */
  to: string;
}

/** Change the given options of a notification; None resets an option to its default. */
export interface NotificationsUpdateBody {
  /** Signals to send, of success, failure, cancelled, skip, missed, late, breached, met; by default failure */
  on?: string[] | string | null | null;
  /** Only of these jobs; without jobs and schedules, of everything */
  jobs?: string[] | null | null;
  /** Only of these schedules */
  schedules?: string[] | null | null;
  /** Signs webhooks; `env:NAME` is looked up by the sending worker */
  secret?: string | null | null;
  /** Whether to send payloads, too */
  include_payload?: boolean | null | null;
  /** Deliveries per hour, job and kind of event, by default 60 */
  at_most?: number | null | null;
  /** A URL, a `mailto:` address, or a service and its URL: `slack:https://…` */
  to?: string | null;
  /** Whether it is sent */
  enabled?: boolean | null | null;
}

/** The database's time. */
export interface Now {
  /** The database's time */
  now: string;
}

/** Plan time, or `count` of them between `from_at` and `to_at`; without a scope, those of all scopes. `run_id` is the run that it got, or the one that it was coalesced into. */
export interface Occurrence {
  /** What became of it: `ran`, `skipped`, `coalesced`, `missed`, `paused`, `pruned` or `pending` */
  kind: string;
  /** Time for which the schedule planned the run */
  plan_time: string | null;
  /** Beginning of the time range */
  from_at: string | null;
  /** End of the time range */
  to_at: string | null;
  /** Number of plan times that this line stands for */
  count: number;
  /** The tenant or object that it is for; unique keys and quotas apply to each scope */
  scope: Scope | null;
  /** The run that it got, or the one that it was coalesced into */
  run_id: string | null;
  /** State of that run */
  state: string | null;
  /** Why it got no run, or was skipped */
  reason: string | null;
  /** Revision of the schedule that decided */
  revision: number | null;
  /** Run that was made in place of one that did not succeed */
  again: Replacement | null;
  /** Summary of the plan time over its scopes, if it has several: in the first of its lines */
  summary: PlanTimeSummary | null;
}

/** Sum of all that operators request of a worker, not the last request only. So it is idempotent: a worker may read it twice, or late. */
export interface OperatorRequest {
  /** What it is asked to do: work, drain or stop */
  state?: WorkerState;
  /** Settings that operators have changed */
  settings?: WorkerSettings;
}

/** Result of one attempt. */
export type Outcome = "cancelled" | "failed" | "handed_back" | "lost" | "snoozed" | "succeeded" | "timed_out";

/** Content of the overview page. */
export interface Overview {
  /** When it was computed */
  at: string;
  /** Runs that have not ended */
  live: Live;
  /** How many are late by more than 10 s */
  late: Late;
  /** Runs that ended within the last 24 hours */
  last_day: LastDay;
  /** Numbers of workers and slots */
  workers: WorkerCounts;
  /** Numbers of schedules by state */
  schedules: Record<string, number>;
  /** What needs attention: the first of each kind */
  attention: Attention[];
  /** Number of all items that are not snoozed */
  attention_count: number;
  /** Numbers of these by kind */
  attention_counts: Record<string, number>;
  /** Number of items that are snoozed */
  snoozed: number;
  /** The next plan times of all schedules */
  next_fires: NextRun[];
}

/** Part of a pipeline. `payload` is a template; None: the run's own payload. */
export interface Part {
  /** Name of the part */
  step: string;
  /** Name of the job */
  job: string;
  /** Arguments of the job, by name */
  payload?: unknown;
}

/** Pause of a job or queue by an operator: since when, by whom and why. */
export interface Pause {
  /** Name of the job or queue */
  name: string;
  /** Since when it is paused; null if it is not */
  paused_at: string;
  /** Who paused it */
  paused_by: string | null;
  /** Why, for the audit log */
  reason: string | null;
}

/** Pause a job: no run of it starts and its schedules do not fire until it is resumed. */
export interface PauseJobBody {
  /** Why, for the audit log */
  reason?: string | null;
}

/** Pause a queue: nothing is claimed from it until it is resumed. */
export interface PauseQueueBody {
  /** Why, for the audit log */
  reason?: string | null;
  /** Also one that no job names, and that has no runs. Default: `false` */
  force?: boolean;
}

/** Summary of one plan time over all its scopes. A run counts by the newest run that was made in its place. */
export interface PlanTimeSummary {
  /** Number of scopes that have a run */
  scopes: number;
  /** Number of runs by state */
  states: Record<string, number>;
  /** The same for people: `37 succeeded, 2 failed, 1 cancelled` */
  words: string;
}

/** An error, as in RFC 9457. Programs should decide by `code`. */
export interface Problem {
  /** URN of the code */
  type: string;
  /** Phrase of the status */
  title: string;
  /** HTTP status */
  status: number;
  /** What is wrong, for programs */
  code: string;
  /** What is wrong, for people */
  detail: string;
  /** What may help */
  hint?: string | null;
  /** Field of a trigger that is wrong */
  field?: string | null;
  /** JSON pointer to the value in the body */
  pointer?: string | null;
}

/** Progress of a run as it reports it. `steps` are left out in lists of runs. */
export interface Progress {
  /** 0 to 100; null if unknown */
  percentage: number | null;
  /** What is being done, for people */
  summary: string | null;
  /** When it was reported */
  at: string | null;
  /** Steps of the run */
  steps?: Step[];
}

/** Result of a purge: of `matched` runs, `done` were deleted, or would be; something needs those in `refused`. */
export interface Purged {
  /** Number of those that matched */
  matched: number;
  /** Number of those that were changed */
  done: number;
  /** Those that were not changed, by the reason */
  refused: Refused[];
  /** Space in the file that new rows take before it grows, on SQLite */
  reusable_bytes: number | null;
  /** How to give the space back to the system */
  advice: string;
}

/** Queue with its runs; cancelling ones count as running. `oldest_at` is since when the longest-waiting run has been claimable; null if there is none. */
export interface Queue {
  /** Name of the queue in which runs wait */
  queue: string;
  /** Runs that are being executed */
  running: number;
  /** Runs that may be claimed */
  queued: number;
  /** Runs that are not due yet */
  scheduled: number;
  /** The pause; null if there is none */
  paused: Pause | null;
  /** Since when the run that waits longest could be claimed; null if none waits */
  oldest_at: string | null;
  /** Limit that an operator set on the queue */
  live_limit: LiveLimit | null;
}

/** Stored quota; without an id, the default of all scopes of its kind that have no quota of their own. */
export interface QuotaOf {
  /** Kind of the scope */
  kind: string;
  /** Id of the scope; null for each scope of the kind that has no quota of its own */
  id: string | null;
  /** Most runs at a time, on all workers together */
  max_concurrency: number | null;
  /** Most runs that may wait */
  max_queued: number | null;
  /** Attempts that may start within a time: `"1000/1h"` */
  rate: string | null;
  /** Who declared it: a program, a person, a token, or the owner of a file */
  owner: string;
  /** Whether nothing of the scope begins, or is planned */
  paused: boolean;
  /** Reason of the pause */
  reason: string | null;
  /** Since when the scope is paused */
  paused_at: string | null;
  /** Who paused the scope */
  paused_by: string | null;
}

/** Pause a scope: until it is resumed, none of its runs starts, and its plan times are skipped. */
export interface QuotasPauseBody {
  /** Why, for the audit log */
  reason?: string | null;
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

/** Recent runs, the oldest first, and percentiles of their durations. */
export interface Recent {
  /** The last runs, the oldest first */
  recent: RecentRun[];
  /** Half of these runs took at most this long */
  p50_duration_ms: number | null;
  /** All but one in twenty of these runs took at most this long */
  p95_duration_ms: number | null;
}

/** Recent run; `lateness_ms`: from when it was due, delay and jitter included, until its first attempt began. */
export interface RecentRun {
  /** Id of the run */
  run_id: string;
  /** Time for which the schedule planned the run */
  plan_time: string;
  /** State it is in; a filter may name several */
  state: RunState;
  /** When it began; null until then */
  started_at: string | null;
  /** When it ended; null until then */
  finished_at: string | null;
  /** From when it was due until its first attempt began */
  lateness_ms: number | null;
  /** Time from its start to its end */
  duration_ms: number | null;
}

/** Runs that were refused for the same reason. */
export interface Refused {
  /** Code of the error */
  code: string;
  /** Number of runs that were refused for this reason */
  count: number;
  /** Message of the first one */
  message: string;
  /** Ids of a few of them */
  examples: string[];
}

/** Predecessor or successor of a run. `job` and `state` are None if it was pruned. */
export interface RelatedRun {
  /** Its id */
  id: string;
  /** Name of the job */
  job: string | null;
  /** State it is in; a filter may name several */
  state: RunState | null;
  /** What the handler returned */
  result: unknown;
  /** When the later run may start: after `success`, or after any `end` */
  on: string;
  /** What becomes of it without a success: `skip` or `cancel` */
  otherwise: string;
  /** Arguments of the later run that are the result of the earlier one */
  inputs: string[];
}

/** Newest run that a retry or a backfill made in place of one that did not succeed. */
export interface Replacement {
  /** Id of the run */
  run_id: string;
  /** State of that run */
  state: string;
}

/** Replica, a run of its own. */
export interface Replica {
  /** Id of the run */
  run_id: string;
  /** Name of its worker; null while any may have it */
  worker: string | null;
  /** State it is in; a filter may name several */
  state: RunState;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number;
  /** Error in one line */
  error: string | null;
  /** What the handler returned */
  result: unknown;
  /** When it ended; null until then */
  finished_at: string | null;
  /** True if only this worker may have it */
  bound: boolean;
  /** True if the run was enqueued again, and this replica no longer counts */
  cleared: boolean;
}

/** Replicas on `count` different workers, or on `all` that are alive when the run is due; each must succeed. `allowed_failures`: so many may fail, and other workers replace them. `absent_after`: a replica stops waiting for a worker that was silent for so long; with `all` it has failed, otherwise another worker may have it. */
export interface Replicas {
  /** How many */
  count?: number | null;
  /** Whether all workers execute it that are alive when the run is due */
  all?: boolean;
  /** How many replicas may fail; other workers replace them */
  allowed_failures?: number;
  /** How long a worker may be silent before its replica stops waiting for it */
  absent_after?: string;
}

/** Requirements on a worker: one of these names, all of these labels, at least this version. `anyone`: workers of any name may have the run, whatever its job says. */
export interface Requirements {
  /** Names of workers that may run it; null for all */
  only_workers?: string[];
  /** Labels of workers: a worker must have all that a run requires */
  labels?: string[];
  /** Lowest version of the application that may run it */
  min_worker_version?: string | null;
  /** Whether workers of any name may have the run, whatever its job says */
  anyone?: boolean;
}

/** Let only workers with these names execute the run; None lifts the restriction. */
export interface RestrictBody {
  /** Names of workers; null lifts the restriction */
  only_workers: string[] | null;
}

/** Resume a job that is paused or cancelled, with its schedules. */
export interface ResumeJobBody {
  /** Plan times of the pause that still run: `skip`, `latest` or `all`. Default: `"skip"` */
  catch_up?: string;
}

/** A queue that was resumed; `was_paused` says whether it was paused before. */
export interface ResumedQueue {
  /** Name of the queue in which runs wait */
  queue: string;
  /** Runs that are being executed */
  running: number;
  /** Runs that may be claimed */
  queued: number;
  /** Runs that are not due yet */
  scheduled: number;
  /** The pause; null if there is none */
  paused: Pause | null;
  /** Since when the run that waits longest could be claimed; null if none waits */
  oldest_at: string | null;
  /** Limit that an operator set on the queue */
  live_limit: LiveLimit | null;
  /** Whether it was paused before */
  was_paused: boolean;
}

/** Answer to the resume of a scope. */
export interface ResumedScope {
  /** Whether it was paused */
  was_paused: boolean;
}

/** A finished run is kept while it is among the newest `keep`, or younger than `keep_for`. */
export interface Retention {
  /** Finished runs are kept while they are among the newest of this number */
  keep: number;
  /** Finished runs are kept for this long */
  keep_for: string;
}

/** Enqueue a copy of a final run, whose `retry_of` names the old one, which stays as it is. */
export interface RetryBody {
  /** Reuse the results of completed steps. Default: `false` */
  keep_steps?: boolean;
  /** Reuse only those before this step */
  from_step?: string | null;
  /** Payload of the new run, if it is to differ from the old one */
  payload?: Record<string, unknown> | null;
}

/** Number of attempts of a run, and the delays between them. */
export interface RetryPolicy {
  /** Most attempts, the first one included */
  max_attempts: number;
  /** Delays between attempts: `"30s"`, a list whose last entry repeats, or an exponential one */
  backoff: Exponential | Delays;
  /** True if somebody gave a backoff that is the same as the default: it stands. Otherwise not written */
  backoff_given?: boolean;
}

/** Role of a token: `viewer` < `operator` < `admin`; `worker` and `enqueue` may do only that. */
export type Role = "admin" | "enqueue" | "operator" | "viewer" | "worker";

/** One execution of a job, with all its attempts. */
export interface Run {
  /** Its id */
  id: string;
  /** Name of the job */
  job: string;
  /** Version of the job when the run was enqueued */
  job_version: number;
  /** Name of the queue in which runs wait */
  queue: string;
  /** -1000 to 1000; higher ones run first */
  priority: number;
  /** The tenant or object that it is for; unique keys and quotas apply to each scope */
  scope: Scope;
  /** Key of the caller's own: while a run with it has not ended, another enqueue returns that run */
  key: string | null;
  /** State it is in; a filter may name several */
  state: RunState;
  /** Why it was cancelled, or ended without a result of its handler */
  reason: string | null;
  /** Number that grows with every claim; only who has the newest one may report */
  fence: number;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number;
  /** Most attempts, the first one included */
  max_attempts: number;
  /** Arguments of the job, by name */
  payload: unknown;
  /** What the handler returned */
  result: unknown;
  /** Error of the last attempt that failed */
  error: RunError | null;
  /** When it was created */
  created_at: string;
  /** When the run is or was due */
  run_at: string;
  /** When it began; null until then */
  started_at: string | null;
  /** When it ended; null until then */
  finished_at: string | null;
  /** The run that this one repeats */
  retry_of: string | null;
  /** Id of the worker that has the run, or had it last */
  worker_id: string | null;
  /** Words by which runs can be listed */
  tags: string[];
  /** Anything that callers store with it */
  metadata: Record<string, unknown>;
  /** Name of the schedule */
  schedule: string | null;
  /** Time for which the schedule planned the run */
  plan_time: string | null;
  /** The first of the older plan times that the run covers, if any */
  covers_from: string | null;
  /** Number of older plan times that the run covers */
  missed_count: number;
  /** What the run has reported of its progress; null if nothing */
  progress: Progress | null;
  /** Who cancelled it or asked for it: a person, `api`, or a policy of rota (`policy:…`) */
  cancelled_by: string | null;
  /** Since when the run waits for external work */
  wait_since: string | null;
  /** When the run that waits for external work times out */
  wait_until: string | null;
  /** The run of which this one is a replica */
  parent_id: string | null;
}

/** A run to enqueue. `null` counts as omitted. */
export interface RunBody {
  /** Name of the job */
  job: string;
  /** Arguments of the job, by name */
  payload?: Record<string, unknown>;
  /** Name of the queue in which runs wait */
  queue?: string | null;
  /** -1000 to 1000; higher ones run first */
  priority?: number | null;
  /** Not before this long from now */
  delay?: string | null;
  /** Not before this time */
  run_at?: string | null;
  /** Key of the caller's own: while a run with it has not ended, another enqueue returns that run */
  key?: string | null;
  /** The tenant or object that it is for; unique keys and quotas apply to each scope */
  scope?: ScopeBody | null;
  /** Uniqueness: true for the whole payload, a field, fields, or all options */
  unique?: boolean | string | string[] | UniqueBody | null;
  /** Most attempts, the first one included */
  max_attempts?: number | null;
  /** Delays between attempts: `"30s"`, a list whose last entry repeats, or an exponential one */
  backoff?: string | string[] | BackoffBody | null;
  /** Longest duration of an attempt */
  timeout?: string | null;
  /** Words by which runs can be listed */
  tags?: string[] | null;
  /** Anything that callers store with it */
  metadata?: Record<string, unknown> | null;
  /** Runs that must end first: ids, refs, or objects with `run`, `on` and `otherwise` */
  after?: (string | Record<string, string>)[] | null;
  /** Arguments that are results of other runs: `{"pages": run}`, or a list of runs. The run follows those */
  inputs?: Record<string, string | unknown[]> | null;
  /** Name by which other runs of the same request may follow this one */
  ref?: string | null;
  /** Names of workers that may run it; null for all */
  only_workers?: string[] | null;
  /** Labels of workers: a worker must have all that a run requires */
  labels?: string[] | null;
  /** Lowest version of the application that may run it */
  min_worker_version?: string | null;
}

/** Error of a run or an attempt. `core/runs/error_fingerprint.py` defines which errors share a `fingerprint`. */
export interface RunError {
  /** Type of the error */
  type: string;
  /** What happened, for people */
  message: string;
  /** Code of the error, if it has one */
  code?: string | null;
  /** Where in the code it happened */
  traceback?: string | null;
  /** Fingerprint, the same for errors that differ only in numbers, ids, addresses and quoted texts */
  fingerprint?: string | null;
}

/** All conditions must hold. */
export interface RunQuery {
  /** State; may be repeated: any of them */
  state?: RunState[];
  /** Name of the job */
  job?: string | null;
  /** Name of the queue */
  queue?: string | null;
  /** Scope: `kind/id` */
  scope?: string | null;
  /** Key of the run */
  key?: string | null;
  /** One of its tags */
  tag?: string | null;
  /** Name of the schedule that created it */
  schedule?: string | null;
  /** An id, or a name, which several workers may share */
  worker?: string | null;
  /** The run whose replicas to find */
  parent?: string | null;
  /** Created at this time or later */
  created_after?: string | null;
  /** Created before this time */
  created_before?: string | null;
  /** A part of `Type: message` */
  error?: string | null;
  /** Fingerprint of the error it ended with; of its last attempt's, if it is live */
  fingerprint?: string | null;
  /** Values in the payload, by dotted path: `payload.url=https://…` */
  payload?: Record<string, string | number | boolean | null>;
  /** Whether another run is a retry of it */
  retried?: boolean | null;
}

/** State of a run. */
export type RunState = "cancelled" | "cancelling" | "expired" | "failed" | "queued" | "running" | "scheduled" | "skipped" | "succeeded" | "timed_out" | "waiting";

/** The run's new state. */
export interface RunStateAnswer {
  /** The run's new state */
  state: RunState;
}

/** Command and filter. If more than `expected` match, nothing is changed. An empty filter needs `everything`. `dry_run` only counts. */
export interface RunsBulkBody {
  /** Command for all that match */
  action: "cancel" | "retry";
  /** Conditions, all of which must hold */
  filter?: RunQuery;
  /** How many are expected; if more match, nothing is changed */
  expected?: number | null;
  /** Required where the filter is empty. Default: `false` */
  everything?: boolean;
  /** Why, for the audit log */
  reason?: string | null;
  /** Change nothing; only tell what would change. Default: `false` */
  dry_run?: boolean;
}

/** Filter of runs that have ended. If more than `expected` match, nothing is deleted. An empty filter without `older_than` needs `everything`. `dry_run` only counts. */
export interface RunsPurgeBody {
  /** Conditions, all of which must hold */
  filter?: RunQuery;
  /** Only runs that ended longer ago */
  older_than?: string | null;
  /** How many are expected; if more match, nothing is changed */
  expected?: number | null;
  /** Required where the filter is empty. Default: `false` */
  everything?: boolean;
  /** Change nothing; only tell what would change. Default: `false` */
  dry_run?: boolean;
}

/** Changes of a schedule, as in a document. What is left out stays; null restores a default. */
export interface ScheduleChanges {
  /** Trigger: time from the end of its last run to the next plan time */
  after?: string | null;
  /** What an interval counts from: an instant, `start`, or `epoch` (1970) */
  anchor?: string | null;
  /** Pauses between the attempts of its runs */
  backoff?: string | string[] | Record<string, unknown> | null;
  /** What becomes of plan times that passed without a planner */
  catch_up?: string | Record<string, unknown> | null;
  /** Trigger: a cron expression, or a table with its own `timezone` */
  cron?: string | Record<string, unknown> | null;
  /** Time from a plan time until its run may start */
  delay?: string | null;
  /** Description for people */
  description?: string | null;
  /** Trigger: several triggers, each of which fires */
  either?: Record<string, unknown>[] | null;
  /** Whether it fires */
  enabled?: boolean | null;
  /** No plan time after */
  end_at?: string | null;
  /** Trigger: elapsed time between plan times, such as `30m` */
  every?: string | null;
  /** Not on these dates: `2026-12-25`, or from/to */
  exclude?: string[] | null;
  /** Expectations, whose breach is reported */
  expect?: Record<string, unknown> | null;
  /** What becomes of a plan time after a failed run */
  failure?: string | Record<string, unknown> | null;
  /** With `cron`: which of two equal times counts */
  fold?: string | null;
  /** Trigger: a job, each end of whose runs starts a run */
  following?: string | null;
  /** With `cron`: what a time that the clocks skip becomes */
  gap?: string | null;
  /** Another notation of `every`: how many units, counted from 1970 unless `anchor` is given */
  interval_minutes?: number | null;
  /** With `interval_minutes`: minutes, hours or days */
  interval_type?: string | null;
  /** Random further delay, up to this */
  jitter?: string | null;
  /** Name of the job that it runs */
  job?: string | null;
  /** Attempts of its runs */
  max_attempts?: number | null;
  /** Runs of this schedule at a time */
  max_concurrency?: number | null;
  /** Runs that may wait for that limit */
  max_queued?: number | null;
  /** Plan times after which it ends */
  max_runs?: number | null;
  /** Metadata of its runs */
  metadata?: Record<string, unknown> | null;
  /** Name, unique among schedules */
  name?: string | null;
  /** With `following`: which ends count: success, failure or end */
  on?: string | null;
  /** Trigger: one instant */
  once?: string | null;
  /** What becomes of a plan time while an earlier run goes on */
  overlap?: string | Record<string, unknown> | null;
  /** Payload of its runs; texts may contain `{plan_time}` */
  payload?: Record<string, unknown> | null;
  /** Priority of its runs */
  priority?: number | null;
  /** Queue of its runs */
  queue?: string | null;
  /** Runs that may start within a time: `100/1m` */
  rate?: string | null;
  /** Scopes, `kind/id`, that get a run each, or a provider of them */
  scopes?: string | (string | string[])[] | null;
  /** No plan time before */
  start_at?: string | null;
  /** Tags of its runs */
  tags?: string[] | null;
  /** Timeout of its runs */
  timeout?: string | null;
  /** Zone of the cron expression, the windows and the dates */
  timezone?: string | null;
  /** What a run does at that limit */
  when_full?: string | null;
  /** Only within these times: `09:00-17:00 mon-fri` */
  windows?: (string | Record<string, unknown>)[] | null;
}

/** A schedule as in `schedules.toml`: name, job, one trigger (`cron`, `every`, `after`, `following`, `once` or `either`), and options. Options that are left out have their defaults. */
export interface ScheduleDocument {
  /** Trigger: time from the end of its last run to the next plan time */
  after?: string;
  /** What an interval counts from: an instant, `start`, or `epoch` (1970) */
  anchor?: string;
  /** Pauses between the attempts of its runs */
  backoff?: string | string[] | Record<string, unknown>;
  /** What becomes of plan times that passed without a planner */
  catch_up?: string | Record<string, unknown>;
  /** Trigger: a cron expression, or a table with its own `timezone` */
  cron?: string | Record<string, unknown>;
  /** Time from a plan time until its run may start */
  delay?: string;
  /** Description for people */
  description?: string;
  /** Trigger: several triggers, each of which fires */
  either?: Record<string, unknown>[];
  /** Whether it fires */
  enabled?: boolean;
  /** No plan time after */
  end_at?: string;
  /** Trigger: elapsed time between plan times, such as `30m` */
  every?: string;
  /** Not on these dates: `2026-12-25`, or from/to */
  exclude?: string[];
  /** Expectations, whose breach is reported */
  expect?: Record<string, unknown>;
  /** What becomes of a plan time after a failed run */
  failure?: string | Record<string, unknown>;
  /** With `cron`: which of two equal times counts */
  fold?: string;
  /** Trigger: a job, each end of whose runs starts a run */
  following?: string;
  /** With `cron`: what a time that the clocks skip becomes */
  gap?: string;
  /** Another notation of `every`: how many units, counted from 1970 unless `anchor` is given */
  interval_minutes?: number;
  /** With `interval_minutes`: minutes, hours or days */
  interval_type?: string;
  /** Random further delay, up to this */
  jitter?: string;
  /** Name of the job that it runs */
  job?: string;
  /** Attempts of its runs */
  max_attempts?: number;
  /** Runs of this schedule at a time */
  max_concurrency?: number;
  /** Runs that may wait for that limit */
  max_queued?: number;
  /** Plan times after which it ends */
  max_runs?: number;
  /** Metadata of its runs */
  metadata?: Record<string, unknown>;
  /** Name, unique among schedules */
  name?: string;
  /** With `following`: which ends count: success, failure or end */
  on?: string;
  /** Trigger: one instant */
  once?: string;
  /** What becomes of a plan time while an earlier run goes on */
  overlap?: string | Record<string, unknown>;
  /** Payload of its runs; texts may contain `{plan_time}` */
  payload?: Record<string, unknown>;
  /** Priority of its runs */
  priority?: number;
  /** Queue of its runs */
  queue?: string;
  /** Runs that may start within a time: `100/1m` */
  rate?: string;
  /** Scopes, `kind/id`, that get a run each, or a provider of them */
  scopes?: string | (string | string[])[];
  /** No plan time before */
  start_at?: string;
  /** Tags of its runs */
  tags?: string[];
  /** Timeout of its runs */
  timeout?: string;
  /** Zone of the cron expression, the windows and the dates */
  timezone?: string;
  /** What a run does at that limit */
  when_full?: string;
  /** Only within these times: `09:00-17:00 mon-fri` */
  windows?: (string | Record<string, unknown>)[];
}

/** A schedule: `rule` is its trigger in words, `definition` the document that would create it. `recent` and the percentiles of the durations of those runs are there if `recent` was asked for. */
export interface ScheduleView {
  /** Its id */
  id: string;
  /** Its name */
  name: string;
  /** Name of the job */
  job: string;
  /** Who declared it: a program, a person, a token, or the owner of a file */
  owner: string;
  /** Number of its changes, which its `ETag` holds */
  revision: number;
  /** False: it is switched off */
  enabled: boolean;
  /** Since when it is paused; null if it is not */
  paused_at: string | null;
  /** Who paused it */
  paused_by: string | null;
  /** Why it is paused */
  pause_reason: string | null;
  /** When its pause ends by itself */
  resume_at: string | null;
  /** Whether its job is paused or cancelled */
  job_paused: boolean;
  /** Whether its job is cancelled */
  job_cancelled: boolean;
  /** Plan times up to here are decided */
  cursor_at: string;
  /** Next plan time */
  next_plan: string | null;
  /** Run whose end it waits for */
  awaits: string | null;
  /** Number of its plan times, skipped ones included */
  fired: number;
  /** Version of the time zone data that it is planned with */
  tzdata: string;
  /** Why it could not be planned */
  trouble: string | null;
  /** When it was created */
  created_at: string;
  /** When it was changed last */
  updated_at: string;
  /** State it is in; a filter may name several */
  state: string;
  /** When it fires, in words */
  rule: string;
  /** Time zone in which the schedule is computed */
  timezone: string;
  /** Document that would create it, without its name */
  definition: ScheduleDocument;
  /** Its last run; only commands tell it */
  last: LastRun | null;
  /** Its last runs, the oldest first */
  recent?: RecentRun[];
  /** Half of these runs took at most this long */
  p50_duration_ms?: number | null;
  /** All but one in twenty of these runs took at most this long */
  p95_duration_ms?: number | null;
  /** Whether a request to create or replace it has created it */
  created?: boolean;
  /** What is allowed in the definition that a request stored, and probably not meant */
  warnings?: string[];
}

/** Totals from the database, the same from every server. `jobs` and `executions` are counted at most every 30 seconds, when somebody asks. */
export interface SchedulerMetrics {
  /** Numbers of jobs by state */
  jobs: Record<string, number>;
  /** Totals over all executions */
  executions: ExecutionTotals;
  /** When the scheduler last looked for work */
  last_check_at: string | null;
  /** When jobs and executions were counted */
  last_metrics_update: string;
  /** Number of expired leases that were taken away, by any process */
  stale_locks_cleared: number;
}

/** Create and update schedules from documents, under `owner`, and return what changed. */
export interface SchedulesApplyDocumentsBody {
  /** Schedules as in `schedules.toml` */
  documents: Record<string, unknown>[];
  /** Owner of these schedules; those that no document names are deleted */
  owner: string;
}

/** Create runs for past plan times between `from_at` and `to_at` that have none, `concurrency` of them at a time. */
export interface SchedulesBackfillBody {
  /** The first plan time */
  from: string;
  /** The last plan time */
  to: string;
  /** Also plan times whose run did not succeed (`failed`), or all that have one (`all`). Default: `"none"` */
  ran?: string;
  /** Runs at a time. Default: `1` */
  concurrency?: number;
  /** Only return what would be created. Default: `false` */
  dry_run?: boolean;
}

/** All schedules of a job or an owner, or those named. */
export interface SchedulesBulkBody {
  /** Command for all that match */
  action: "disable" | "enable" | "pause" | "resume";
  /** Name of the job */
  job?: string | null;
  /** Who declared it: a program, a person, a token, or the owner of a file */
  owner?: string | null;
  /** Names of schedules */
  names?: string[] | null;
  /** How many are expected; if more match, nothing is changed */
  expected?: number | null;
  /** Why, for the audit log */
  reason?: string | null;
  /** Change nothing; only tell what would change. Default: `false` */
  dry_run?: boolean;
}

/** Pause a schedule. */
export interface SchedulesPauseBody {
  /** Why, for people */
  reason?: string | null;
  /** When the pause ends: a time, or a duration from now */
  until?: string | null;
}

/** Resume a schedule. */
export interface SchedulesResumeBody {
  /** Which plan times of the pause still run: none (`skip`), the `latest`, or `all`. Default: `"skip"` */
  catch_up?: string;
}

/** Return what a schedule would do, optionally with changes, or what documents would change; store nothing. */
export interface SchedulesSimulateBody {
  /** How long to simulate; `"0s"`: only list next plan times. Default: `"1d"` */
  span?: string;
  /** Another trigger or other options, as in a document */
  changes?: Record<string, unknown> | null;
  /** Schedules as in `schedules.toml`, instead of one that exists; they may be unfinished */
  documents?: Record<string, unknown>[] | null;
  /** Owner of the documents; its schedules that none of them names are deleted */
  owner?: string | null;
  /** When it begins, as if there were no runs; by default now */
  start?: string | null | null;
  /** How long each run takes; by default the median of its job's last 20 */
  duration?: string | null | null;
  /** Every Nth run fails, with all its attempts */
  fail_every?: number | null | null;
  /** When no planner works, from and to: times with a zone, or from the beginning on (`+1h`) */
  outages?: string[][] | null;
  /** Runs at a time; by default any number */
  workers?: number | null | null;
  /** Most plan times to list; by default 20 */
  limit?: number | null | null;
}

/** Run a schedule now, for each of its scopes or only for `scope`. */
export interface SchedulesTriggerBody {
  /** Only this scope, `kind/id`; by default all of its scopes */
  scope?: string | null;
  /** Ignore the overlap policy. Default: `false` */
  force?: boolean;
}

/** Tenant or object that a run is for. */
export interface Scope {
  /** Kind of the scope, such as `account` */
  kind: string;
  /** Id of the scope */
  id: string;
}

/** A scope. */
export interface ScopeBody {
  /** Kind of the scope, such as `account` */
  kind: string;
  /** Id of the scope */
  id: string;
}

/** Result of a delivery, such as the status of an HTTP response. */
export interface Sent {
  /** Result of a delivery, such as the status of an HTTP response */
  sent: unknown;
}

/** Chart, from the start of its first step to the end of the last one, or to now. */
export interface Series {
  /** Beginning of the time range */
  from: string;
  /** End of the time range */
  to: string;
  /** Length of a step */
  step: string;
  /** Steps of the chart */
  buckets: Bucket[];
}

/** The token to sign in with. */
export interface SessionBody {
  /** The token to sign in with */
  token: string;
}

/** Fate of a plan time; `missed` and `covered` stand for `count` of them, up to `to_at`. */
export interface SimulatedRun {
  /** What becomes of it, in one word */
  kind: string;
  /** Time for which the schedule planned the run */
  plan_time: string;
  /** Name of the schedule */
  schedule?: string;
  /** Scope, as `kind/id` */
  scope?: string | null;
  /** When it began; null until then */
  started_at?: string | null;
  /** When it ended; null until then */
  finished_at?: string | null;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt?: number;
  /** Why it got no run */
  reason?: string | null;
  /** Number of plan times that this line stands for */
  count?: number;
  /** End of the time range */
  to_at?: string | null;
}

/** Answer what schedules would do: what changes in each, their next plan times, and what becomes of those. */
export interface SimulationReport {
  /** Beginning of the time range */
  from_at: string;
  /** Until when it was computed */
  until_at: string;
  /** What changes in each schedule */
  schedules: Difference[];
  /** Next plan times, whatever becomes of them */
  fires: Fire[];
  /** How many plan times had each fate; `failed` ones are among the runs */
  counts: Record<string, number>;
  /** What becomes of each plan time */
  events: SimulatedRun[];
  /** Number of plan times that are counted and not listed among the events */
  unlisted: number;
  /** True if there was too much to decide, and it ends earlier than asked for */
  truncated: boolean;
}

/** Status of the process. */
export interface Status {
  /** State in one word */
  status: string;
}

/** Step of a run; `kept_from`: the earlier run that completed it, of which this run is a retry. */
export interface Step {
  /** Id of the step */
  id: string;
  /** Name of the step, for people */
  name: string;
  /** State of the step */
  state: StepState;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number | null;
  /** When it began; null until then */
  started_at: string | null;
  /** When it ended; null until then */
  finished_at: string | null;
  /** 0 to 100; null if unknown */
  percentage: number | null;
  /** What is being done, for people */
  summary: string | null;
  /** What the handler returned */
  result: unknown;
  /** Error of the last attempt that failed */
  error: unknown;
  /** The earlier run that did it, of which this one is a retry */
  kept_from: string | null;
}

/** Declared step; one that is not `cancelable` finishes before a cancel takes effect. */
export interface StepDefinition {
  /** Its id */
  id: string;
  /** Its name */
  name?: string;
  /** Longest duration of an attempt */
  timeout?: string | null;
  /** Whether a cancel interrupts it */
  cancelable?: boolean;
}

/** State of a step. */
export type StepState = "cancelled" | "failed" | "pending" | "running" | "skipped" | "succeeded";

/** The state that the step is in. */
export interface StepStateAnswer {
  /** The state that the step is in */
  state: StepState;
}

/** Timeline of attempts. */
export interface Timeline {
  /** Beginning of the time range */
  from: string;
  /** End of the time range */
  to: string;
  /** What a lane stands for: `schedule`, `job`, `worker` or `queue` */
  by: string;
  /** Lanes, by name */
  lanes: Lane[];
  /** True if there are older attempts that are left out */
  truncated: boolean;
  /** From here on no attempt is left out; null if that is so of the whole range */
  complete_from: string | null;
}

/** Attempt in a timeline. */
export interface TimelineAttempt {
  /** Id of the run */
  run_id: string;
  /** Number of the attempt */
  no: number;
  /** Name of the job */
  job: string;
  /** Outcome or, while it lasts, `running`, `cancelling` or `waiting` */
  state: string;
  /** Id of the worker that has the run, or had it last */
  worker_id: string | null;
  /** When it began; null until then */
  started_at: string;
  /** When it ended; null while it is live */
  ended_at: string | null;
}

/** Token of a caller, without its secret. */
export interface Token {
  /** Its id */
  id: string;
  /** Name of the token, as the audit log shows it */
  name: string;
  /** What its holder may do */
  role: Role;
  /** Only runs of this scope may be accessed; null for all */
  scope: Scope | null;
  /** When it was created */
  created_at: string;
  /** Who created it */
  created_by: string | null;
  /** When it expires; null if never */
  expires_at: string | null;
  /** When it was revoked */
  revoked_at: string | null;
  /** Who revoked it */
  revoked_by: string | null;
  /** When it was used last */
  used_at: string | null;
}

/** Scope of a token. */
export interface TokenScope {
  /** Kind of the scope, such as `account` */
  kind: string;
  /** Id of the scope */
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

/** Uniqueness by `fields` of the payload (none: all of it), until the run is final or for `period` after creation. `clear`: replicas of the existing run that have failed, or succeeded, are run again. */
export interface Unique {
  /** Fields of the payload; none means all of it */
  fields: string[];
  /** How long after its creation a run holds the key; by default until it has ended */
  period: string | null;
  /** When another run has the key: `existing`, `replace` or `reject` */
  on_conflict: string;
  /** Replicas of the existing run that are run again: those that `failed` or `succeeded` */
  clear: string[];
}

/** Uniqueness of a run. */
export interface UniqueBody {
  /** Fields of the payload; none means all of it */
  fields?: string[];
  /** How long after its creation a run holds the key; by default until it has ended */
  period?: string | null;
  /** When another run has the key: `existing`, `replace` or `reject`. Default: `"existing"` */
  on_conflict?: string;
  /** Replicas of the existing run that are run again: those that `failed` or `succeeded` */
  clear?: string[];
}

/** Answer to the end of a snooze. */
export interface Unsnoozed {
  /** Whether it was snoozed */
  was_snoozed: boolean;
}

/** Run that is to begin, at a plan time or after a delay. */
export interface UpcomingRun {
  /** When it may begin; in the past, if it is late */
  at: string;
  /** Name of the job */
  job: string;
  /** The queue of a run that exists; None for a plan time */
  queue: string | null;
  /** Name of the schedule */
  schedule: string | null;
  /** The run, if it exists already: it was delayed, or waits for its retry */
  run_id: string | null;
  /** How often it was tried before */
  attempt: number;
  /** Rule of the schedule, in words */
  rule: string | null;
  /** Time zone of the schedule */
  zone: string | null;
  /** Number of runs at the plan time, one for each scope; None if a provider names the scopes then */
  scopes: number | null;
  /** Number of later plan times of this schedule within the period that are not listed */
  more: number;
}

/** Runs that are to begin within a period. */
export interface UpcomingRuns {
  /** Beginning of the time range */
  from: string;
  /** End of the time range */
  to: string;
  /** The next first */
  items: UpcomingRun[];
  /** Number of plan times and waiting runs in the period, as far as they were read */
  total: number;
  /** True if there are more than were read or listed */
  truncated: boolean;
}

/** Result for one schedule. */
export interface Verification {
  /** Name of the schedule */
  schedule: string;
  /** Number of plan times that were compared, of all scopes */
  plan_times: number;
  /** Inconsistencies */
  findings: Finding[];
  /** Stretches that cannot be computed again */
  unverified: string[];
}

/** Worker, as its last heartbeat described it. */
export interface Worker {
  /** Its id */
  id: string;
  /** Its name */
  name: string;
  /** Name of its machine */
  host: string;
  /** Id of its process */
  pid: number;
  /** Version of rota */
  version: string;
  /** State it is in; a filter may name several */
  state: WorkerState;
  /** Names of queues, each with the most slots that its runs may take where it has a number */
  queues: Record<string, number>;
  /** Names of the jobs that it knows */
  jobs: string[];
  /** How many runs it executes at a time */
  slots: number;
  /** Number of runs that it holds */
  held: number;
  /** The oldest runs that it holds */
  runs: WorkerRun[];
  /** When it began; null until then */
  started_at: string;
  /** Time of the last heartbeat */
  seen_at: string;
  /** Time between two heartbeats */
  heartbeat: string | null;
  /** Time between two looks for work */
  poll: string | null;
  /** What operators ask of the worker */
  asked: OperatorRequest | null;
  /** Who asked it last */
  asked_by: string | null;
  /** Its labels */
  labels: string[];
  /** Version of the application that the worker runs */
  app_version: string;
}

/** Numbers of workers and slots. */
export interface WorkerCounts {
  /** Workers that send heartbeats */
  alive: number;
  /** Workers that are silent for longer than a lease, without a shutdown */
  stale: number;
  /** Slots of all workers that are alive */
  slots: number;
  /** Slots in use */
  busy: number;
}

/** Run that a worker has claimed. */
export interface WorkerRun {
  /** Its id */
  id: string;
  /** Name of the job */
  job: string;
  /** Number of the attempt, counted from 1; 0 before the first one */
  attempt: number;
  /** When a worker claimed the run */
  claimed_at: string;
}

/** Settings that may change while a worker runs; None: as it was started. */
export interface WorkerSettings {
  /** How many runs it executes at a time */
  slots?: number | null;
  /** Names of queues, each with the most slots that its runs may take where it has a number */
  queues?: Record<string, number> | null;
  /** Time between two heartbeats */
  heartbeat?: string | null;
  /** Time between two looks for work */
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
