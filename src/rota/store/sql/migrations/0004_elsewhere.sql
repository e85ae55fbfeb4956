-- Work elsewhere: runs that wait for other runs to go well, for somebody outside, or for each of several workers;
-- jobs as data; rates and quotas; who is told of what happened, and what is expected to happen.

-- What a run waits for in another: 0 its turn, after that one's end; 1 its success, else it is skipped; 2 its success,
-- else it is cancelled; 3 any end of it; 4 it conducts that one, its replica.
alter table rota_wait add column kind smallint not null default 0;

-- Whom a run has followed, in the order given; waits go when they are over, this stays as long as the run.
create table rota_followed (
    run_id {id} not null,
    no integer not null,
    after_id {id} not null,
    kind smallint not null,
    primary key (run_id, no)
) {keyed};
create index rota_followed_after on rota_followed (after_id);

-- Runs in other hands: no lease, no slot. The fence is the right to end it.
create table rota_outside (
    run_id {id} primary key,
    fence integer not null,
    attempt smallint not null,
    worker_id text not null,        -- who handed it over
    claimed_at bigint not null,
    began_at bigint,
    since bigint not null,
    deadline bigint not null,       -- timed out by then
    cancel_at bigint,               -- cancelling: the end of its grace
    step text                       -- the step whose end it waits for; null: that of the run
) {keyed};
create index rota_outside_deadline on rota_outside (deadline);
create index rota_outside_cancel on rota_outside (cancel_at) where cancel_at is not null;

-- Which workers may have a run; few that differ, so a worker knows which of them it meets.
create table rota_need (
    id text primary key,
    definition text not null
) {keyed};

-- hold: 5 conducts replicas once it is due, 6 may be claimed by workers that meet its need, 7 waits for run_at and
-- then for such a worker
alter table rota_ready add column need text;
alter table rota_run add column need text; -- where it comes from when the run is queued again
create index rota_ready_need on rota_ready (need, queue, rank, run_at, run_id) where hold = 6;
create index rota_ready_due_need on rota_ready (run_at) where hold = 7;
create index rota_ready_conduct on rota_ready (run_at) where hold = 5;

-- A run done by each of several workers: it has replicas, and no lease of its own.
create table rota_conduct (
    run_id {id} primary key,
    fence integer not null,
    attempt smallint not null,
    policy text not null,
    since bigint not null,
    cancel_at bigint,
    look smallint not null          -- 1: something happened to its replicas that nobody has looked at
) {keyed};
create index rota_conduct_look on rota_conduct (run_id) where look = 1;

create table rota_replica (
    parent_id {id} not null,
    run_id {id} not null,
    worker text,                    -- the name of whose it is; null: of the next that comes
    bound smallint not null,        -- 1: nobody else may have it
    cleared smallint not null default 0, -- 1: it was published again, and counts no more
    primary key (parent_id, run_id)
) {keyed};
create unique index rota_replica_run on rota_replica (run_id);
create unique index rota_replica_worker on rota_replica (parent_id, worker) where worker is not null and cleared = 0;

alter table rota_run add column parent_id {id};
create index rota_run_parent on rota_run (parent_id) where parent_id is not null;

alter table rota_worker add column labels text;
alter table rota_worker add column app_version text;

-- A run that goes through the parts of a pipeline: which of them is to be done now, by whoever knows its job.
create table rota_stage (
    run_id {id} primary key,
    pipeline text not null,         -- its own job
    plan text not null,             -- all parts, as they were when it was enqueued
    no smallint not null,           -- of the part, from 1
    step text not null,
    job text not null,
    job_version integer not null,
    queue text not null
) {keyed};

-- Jobs that are made by a command and not by code.
alter table rota_job add column kind text not null default 'python';
alter table rota_job add column owner text not null default 'code';
alter table rota_job add column dropped_at bigint;

-- A limit with a period is a rate: so many may begin within any such span.
alter table rota_limit add column period bigint;
alter table rota_limit add column opens_at bigint;  -- shut until then
create index rota_limit_opens on rota_limit (opens_at) where opens_at is not null;
alter table rota_gate add column period bigint;

-- How many have begun under a rate, and when: a row for each claim, as long as it counts, and as long again.
create table rota_begun (
    key text not null,
    at bigint not null,
    count integer not null,
    primary key (key, at)
) {keyed};

-- What a scope may have, over all jobs. An empty scope_id: each scope of that kind.
create table rota_quota (
    scope_kind text not null,
    scope_id text not null,
    definition text,                -- null: dropped, and its runs not all freed yet
    owner text not null,
    changed_at bigint not null,
    settled smallint not null default 0, -- 1: all live runs are under it
    primary key (scope_kind, scope_id)
) {keyed};

-- Jobs whose ends somebody wants to know; '*': those of all.
create table rota_listener (
    job text not null,
    what text not null,             -- by whom: 'schedule', 'notification', 'expectation'
    subject text not null,
    since bigint not null default 0, -- what ended before was not listened for
    primary key (job, what, subject)
) {keyed};

-- What happened and is still to be told: written with what happened, gone with what comes of it.
create table rota_signal (
    no {numbered_key},
    at bigint not null,
    type text not null,             -- a final state, or 'missed', 'late', 'breached', 'met'
    kind text not null,             -- 'run', 'job', 'schedule'
    subject text not null,
    job text,
    schedule text,
    details text
) {wide};

-- Who is told of what, and how.
create table rota_notification (
    name text primary key,
    definition text not null,
    owner text not null,
    enabled smallint not null default 1,
    created_at bigint not null,
    updated_at bigint not null
) {keyed};

-- How often a notification was sent about a job since, and how often it was held back.
create table rota_told (
    notification text not null,
    job text not null,
    since bigint not null,
    told integer not null,
    held integer not null,
    primary key (notification, job)
) {keyed};

create table rota_expectation (
    kind text not null check (kind in ('job', 'schedule')),
    subject text not null,
    definition text not null,
    owner text not null,
    since bigint not null,          -- expected from then on
    rests smallint not null default 0, -- 1: its job is disabled
    primary key (kind, subject)
) {keyed};

-- Expectations that are not met now.
create table rota_breach (
    kind text not null,
    subject text not null,
    what text not null,
    since bigint not null,
    details text,
    primary key (kind, subject, what)
) {keyed};

drop view rota_run_now;
create view rota_run_now as
select r.id, r.job, r.job_version, r.queue, r.priority, r.scope_kind, r.scope_id, r.key,
    case
        when r.state is not null then r.state
        when coalesce(l.cancel_at, o.cancel_at, c.cancel_at) is not null then 'cancelling'
        when l.run_id is not null then 'running'
        when o.run_id is not null or c.run_id is not null then 'waiting'
        when w.hold in (0, 2, 6) then 'queued'
        else 'scheduled'
    end as state,
    r.reason,
    coalesce(r.fence, l.fence, w.fence, o.fence, c.fence, 0) as fence,
    coalesce(r.attempt, l.attempt, w.attempt, o.attempt, c.attempt, 0) as attempt,
    r.max_attempts, r.payload, r.result,
    case
        when r.state is not null then r.error
        else (select a.error from rota_attempt a where a.run_id = r.id order by a.fence desc limit 1)
    end as error,
    r.created_at,
    coalesce(w.run_at, r.run_at) as run_at,
    coalesce(r.started_at, l.claimed_at, o.began_at, o.claimed_at, c.since) as started_at,
    r.finished_at, r.retry_of,
    coalesce(r.worker_id, l.worker_id, o.worker_id) as worker_id,
    r.tags, r.metadata, r.overrides, r.on_lost, r.origin_id,
    r.state as final_state, coalesce(l.cancel_at, o.cancel_at, c.cancel_at) as cancel_at, w.hold,
    r.schedule_id, s.name as schedule, r.plan_time, r.covers_from, r.missed_count,
    r.cancelled_by, p.done, p.summary, p.at as progress_at, r.parent_id, o.deadline as wait_until,
    coalesce(o.since, c.since) as wait_since
from rota_run r
left join rota_lease l on l.run_id = r.id
left join rota_ready w on w.run_id = r.id
left join rota_schedule s on s.id = r.schedule_id
left join rota_progress p on p.run_id = r.id
left join rota_outside o on o.run_id = r.id
left join rota_conduct c on c.run_id = r.id;
