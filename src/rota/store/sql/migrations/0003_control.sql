-- Long work under control: steps, progress and logs of runs, the audit trail, what operators ask of workers.

-- Checkpointed parts of runs. What is recorded as succeeded here is not begun again by later attempts.
create table rota_step (
    run_id {id} not null,
    id text not null,
    no integer not null,            -- the order in which they were first opened
    state text not null check (state in ('running', 'succeeded', 'failed', 'skipped', 'cancelled')),
    fence integer not null,         -- of the attempt that wrote last
    attempt smallint not null,
    started_at bigint,
    finished_at bigint,
    done integer,                   -- hundredths of a percent
    summary text,
    result text,
    error text,
    kept_from {id},                 -- the run that did it, of which this one is a retry
    primary key (run_id, id)
) {keyed};

-- How far a run says it is. A run that says nothing has no row.
create table rota_progress (
    run_id {id} primary key,
    fence integer not null,
    done integer,                   -- hundredths of a percent
    summary text,
    at bigint not null
) {keyed};

-- What runs logged, some lines to a row: [[age, level, logger, text], ...], ages in microseconds before `at`.
create table rota_log (
    run_id {id} not null,
    fence integer not null,
    no integer not null,            -- counts from 1 in each attempt; a gap: lines were dropped, there were too many
    attempt smallint not null,
    at bigint not null,
    lines text not null,
    primary key (run_id, fence, no)
) {wide};

-- Acts of people and policies. The ordinary life of a run costs no row here: it is read off the run and its attempts.
create table rota_event (
    seq {numbered_key},
    at bigint not null,
    kind text not null check (kind in ('run', 'job', 'schedule', 'queue', 'worker')),
    subject text not null,          -- a run's or worker's id, or a name
    type text not null,
    actor text,
    fence integer,
    details text
) {wide};
create index rota_event_subject on rota_event (kind, subject, seq);
create index rota_event_old on rota_event (at) where kind <> 'run'; -- those of a run go with it

-- Whether a run was retried already; the end of a run touches it no more than it does the others.
create index rota_run_retry on rota_run (retry_of) where retry_of is not null;

alter table rota_attempt add column left_as text;   -- the state that its end put the run in
alter table rota_attempt add column due_at bigint;  -- scheduled: until then

-- Above 0: within a step that is not to be cancelled; the grace of a cancel begins when it ends. Below: it was.
alter table rota_lease add column shielded int not null default 0;

alter table rota_worker add column state text not null default 'working';
alter table rota_worker add column weights text;    -- of its queues, where they differ
alter table rota_worker add column settings text;   -- as they are in force
alter table rota_worker add column asked text;      -- by operators: to drain, to stop, other settings
alter table rota_worker add column asked_by text;

drop view rota_run_now;
create view rota_run_now as
select r.id, r.job, r.job_version, r.queue, r.priority, r.scope_kind, r.scope_id, r.key,
    case
        when r.state is not null then r.state
        when l.cancel_at is not null then 'cancelling'
        when l.run_id is not null then 'running'
        when w.hold in (0, 2) then 'queued'
        else 'scheduled'
    end as state,
    r.reason,
    coalesce(r.fence, l.fence, w.fence, 0) as fence,
    coalesce(r.attempt, l.attempt, w.attempt, 0) as attempt,
    r.max_attempts, r.payload, r.result,
    case
        when r.state is not null then r.error
        else (select a.error from rota_attempt a where a.run_id = r.id order by a.fence desc limit 1)
    end as error,
    r.created_at,
    coalesce(w.run_at, r.run_at) as run_at,
    coalesce(r.started_at, l.claimed_at) as started_at,
    r.finished_at, r.retry_of,
    coalesce(r.worker_id, l.worker_id) as worker_id,
    r.tags, r.metadata, r.overrides, r.on_lost, r.origin_id,
    r.state as final_state, l.cancel_at, w.hold,
    r.schedule_id, s.name as schedule, r.plan_time, r.covers_from, r.missed_count,
    r.cancelled_by, p.done, p.summary, p.at as progress_at
from rota_run r
left join rota_lease l on l.run_id = r.id
left join rota_ready w on w.run_id = r.id
left join rota_schedule s on s.id = r.schedule_id
left join rota_progress p on p.run_id = r.id;
