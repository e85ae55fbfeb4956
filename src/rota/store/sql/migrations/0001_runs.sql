-- Times are microseconds since the epoch, UTC. A run's live state is spread over three tables so that the hot
-- ones stay narrow: `rota_ready` (may be claimed, or will be), `rota_lease` (claimed), `rota_run` (what it is and
-- how it ended; `state` is null until then). The view `rota_run_now` puts them together.

create table rota_job (
    name text not null,
    version integer not null,
    definition text not null,
    declared_at bigint not null,
    primary key (name, version)
) {keyed};

create table rota_run (
    id {id} primary key,
    job text not null,
    job_version integer not null,
    queue text not null,
    priority smallint not null,
    scope_kind text not null,
    scope_id text not null,
    key text,
    payload text not null,
    tags text,
    metadata text,
    overrides text,
    max_attempts smallint not null,
    on_lost text not null,
    retry_of {id},
    origin_id {id},
    created_at bigint not null,
    run_at bigint not null,
    state text check (state in ('succeeded', 'failed', 'timed_out', 'cancelled', 'expired', 'skipped')),
    attempt smallint,
    fence integer,
    claimed_at bigint,
    started_at bigint,
    finished_at bigint,
    worker_id text,
    result text,
    error text,
    measures text,
    reason text,
    cancelled_by text
) {hot_run};
create index rota_run_job on rota_run (job, id);

create table rota_ready (
    run_id {id} primary key,
    queue text not null,
    rank smallint not null,     -- minus the priority, so that the index runs forwards
    run_at bigint not null,
    hold smallint not null,     -- 0 may be claimed, 1 waits for run_at
    solo smallint not null,     -- 1: claimed only into a free slot, never into a buffer
    attempt smallint not null,  -- attempts used so far
    fence integer not null,
    job text not null,
    job_version integer not null
) {hot_ready};
create index rota_ready_claim on rota_ready (queue, rank, run_at, run_id) where hold = 0;
create index rota_ready_due on rota_ready (run_at) where hold = 1;

create table rota_lease (
    run_id {id} primary key,
    fence integer not null,
    attempt smallint not null,
    worker_id text not null,
    claimed_at bigint not null,
    expires_at bigint not null,
    cancel_at bigint            -- cancelling: the end of its grace
) {hot_lease};

-- Attempts that did not succeed. The one that did ends the run, and is told by the run's own row.
create table rota_attempt (
    run_id {id} not null,
    fence integer not null,
    no smallint not null,
    worker_id text not null,
    claimed_at bigint not null,
    started_at bigint,
    ended_at bigint not null,
    outcome text not null check (outcome in
        ('failed', 'timed_out', 'cancelled', 'lost', 'snoozed', 'handed_back')),
    error text,
    measures text,
    primary key (run_id, fence)
) {keyed};

create table rota_unique (
    key text primary key,
    run_id {id} not null,
    held_until bigint not null, -- held until then even if the holder is final
    once smallint not null,     -- 1: held for ever once the holder has succeeded
    fingerprint text
) {keyed};
create index rota_unique_run on rota_unique (run_id);

create table rota_worker (
    id text primary key,
    name text not null,
    host text not null,
    pid integer not null,
    version text not null,
    queues text not null,
    jobs text not null,
    slots integer not null,
    started_at bigint not null,
    seen_at bigint not null
) {keyed};

create view rota_run_now as
select r.id, r.job, r.job_version, r.queue, r.priority, r.scope_kind, r.scope_id, r.key,
    case
        when r.state is not null then r.state
        when l.cancel_at is not null then 'cancelling'
        when l.run_id is not null then 'running'
        when w.hold = 0 then 'queued'
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
    r.state as final_state, l.cancel_at, w.hold
from rota_run r
left join rota_lease l on l.run_id = r.id
left join rota_ready w on w.run_id = r.id;
