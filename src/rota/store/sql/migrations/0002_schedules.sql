-- Schedules and their ledger; what holds a run back besides time: limits, and runs that it follows.

-- How far each schedule is planned, apart from what it says: planning writes this row for every plan time, so it is
-- narrow. It is also the lock of its schedule.
create table rota_cursor (
    no {numbered_key},
    cursor_at bigint not null,      -- plan times up to here are decided
    next_plan bigint,               -- the first plan time after the cursor
    next_at bigint,                 -- when planning has to look at it again; null: not before somebody changes it
    open_plan bigint,               -- the plan time of its run that was not final when planning last looked, if it has
                                    -- a single scope; such runs besides this one are in rota_lane_run
    fired bigint not null default 0,
    tzdata text not null,
    awaits {id},                    -- trigger `after`: the run whose end it follows
    provider text,                  -- the scope provider that planning needs, if any
    trouble text                    -- why it could not be planned the last time
) {hot_cursor};
create index rota_cursor_due on rota_cursor (next_at, no) where next_at is not null;
create index rota_cursor_provider on rota_cursor (provider) where provider is not null;
create index rota_cursor_awaits on rota_cursor (awaits) where awaits is not null;

create table rota_schedule (
    id {id} not null primary key,
    cursor_no bigint not null,
    name text not null,
    job text not null,
    definition text not null,       -- as it is in force
    declared text,                  -- fingerprint of what code or a file last declared; it changes nothing twice
    owner text not null,            -- who declares it: 'code', 'file:…', or a person
    revision integer not null,
    enabled smallint not null,
    paused_at bigint,
    paused_by text,
    pause_reason text,
    resume_at bigint,               -- paused until then
    job_paused smallint not null default 0,
    zoned smallint not null default 1, -- its plan times depend on time zone data
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
) {wide};
create unique index rota_schedule_name on rota_schedule (name) where deleted_at is null;
create unique index rota_schedule_cursor on rota_schedule (cursor_no);
create index rota_schedule_job on rota_schedule (job);

-- What a schedule named from `valid_from` on, until the next revision. While not active, it named its plan times, and
-- they were not run: `note` says why.
create table rota_revision (
    schedule_id {id} not null,
    no integer not null,
    valid_from bigint not null,
    definition text not null,
    tzdata text not null,
    active smallint not null,
    note text,
    actor text,
    made_at bigint not null,
    primary key (schedule_id, no)
) {keyed};

-- Plan times that have no run of their own. An empty scope means all of the schedule's.
create table rota_range (
    schedule_id {id} not null,
    from_at bigint not null,        -- the first plan time
    to_at bigint not null,          -- the last one
    scope_kind text not null,
    scope_id text not null,
    kind text not null check (kind in ('missed', 'skipped', 'pruned')),
    reason text not null,
    count bigint not null,
    primary key (schedule_id, from_at, to_at, scope_kind, scope_id, kind, reason)
) {keyed};

-- From when to when a scope provider named a scope.
create table rota_scope_span (
    schedule_id {id} not null,
    scope_kind text not null,
    scope_id text not null,
    since bigint not null,
    until bigint,
    primary key (schedule_id, scope_kind, scope_id, since)
) {keyed};
create index rota_scope_span_closed on rota_scope_span (schedule_id, until) where until is not null;
create index rota_scope_span_open on rota_scope_span (schedule_id) where until is null;

-- A lane is a schedule's runs for one scope. Here is how its last run ended, unless that was well.
create table rota_lane (
    schedule_id {id} not null,
    scope_kind text not null,
    scope_id text not null,
    failed smallint not null,
    failures integer not null,      -- in a row
    attempt smallint not null,
    finished_at bigint not null,
    skips integer not null,         -- plan times skipped because of it
    primary key (schedule_id, scope_kind, scope_id)
) {keyed};

-- Runs of a lane that were not final when planning last looked: it need not search its history. An ordinary schedule
-- has at most one, at its `open_plan`, and needs no row here.
create table rota_lane_run (
    schedule_id {id} not null,
    scope_kind text not null,
    scope_id text not null,
    run_id {id} not null,
    primary key (schedule_id, scope_kind, scope_id, run_id)
) {keyed};

-- A schedule whole, and whether there is anything to know of its lanes but its open run.
create view rota_schedule_now as
select s.id, s.name, s.job, s.definition, s.declared, s.owner, s.revision, c.provider, s.enabled, s.paused_at,
    s.paused_by, s.pause_reason, s.resume_at, s.job_paused, s.cursor_no, c.cursor_at, c.next_plan, c.next_at,
    c.open_plan, c.awaits, c.fired, c.tzdata, s.zoned, c.trouble, s.created_at, s.updated_at, s.deleted_at,
    case when exists (select 1 from rota_lane n where n.schedule_id = s.id)
        or exists (select 1 from rota_lane_run m where m.schedule_id = s.id) then 1 else 0 end as has_lanes
from rota_schedule s join rota_cursor c on c.no = s.cursor_no;

-- One row per limit, locked while its slots are given out or come back.
create table rota_limit (
    key text primary key,
    job text,                       -- whose runs it holds; null: of more than one
    max integer not null,
    shut smallint not null,         -- 0: may have a free slot and a run that waits for one, 1: nobody waits, 2: full
    blocked_by text,                -- the wider limit that its next run waits for
    served_at bigint not null       -- least recently served first: fair turns
) {hot_limit};
create index rota_limit_open on rota_limit (served_at, key) where shut = 0;
create index rota_limit_blocked on rota_limit (blocked_by, served_at) where blocked_by is not null;

-- The limits that a live run is under. `fence` is the lease's that holds a slot: slots are these rows, counted.
create table rota_gate (
    run_id {id} not null,
    key text not null,
    place smallint not null,        -- 0: the narrowest, by which it is found
    max integer not null,           -- for the limit's row, should it not be there yet
    fence integer,
    primary key (run_id, key)
) {keyed};
create index rota_gate_key on rota_gate (key, run_id);
create index rota_gate_held on rota_gate (key) where fence is not null;

-- `run_id` may not be claimed before `after_id` is final.
create table rota_wait (
    run_id {id} not null,
    after_id {id} not null,
    primary key (after_id, run_id)
) {keyed};
create index rota_wait_run on rota_wait (run_id);

-- What operators hold: the planning and claims of a job, the claims of a queue.
create table rota_pause (
    kind text not null check (kind in ('job', 'queue')),
    name text not null,
    paused_at bigint not null,
    paused_by text,
    reason text,
    primary key (kind, name)
) {keyed};

-- Facts about the whole database: which time zone data its plans were made with.
create table rota_setting (
    name text primary key,
    value text not null
) {keyed};

-- Runs that have ended, counted: per job and day of their end. What counts of them outlasts them.
create table rota_job_stats (
    job text not null,
    day integer not null,           -- since the epoch
    stats text not null,
    primary key (job, day)
) {keyed};

-- Up to which id the runs of a job are counted, as far as they had ended by then.
create table rota_job_mark (
    job text primary key,
    counted {id} not null
) {keyed};

-- Runs up to that id that are not counted yet.
create table rota_uncounted (
    job text not null,
    run_id {id} not null,
    late smallint not null,         -- 1: made long after its id; it is counted when it is pruned
    primary key (job, run_id)
) {keyed};

-- Skipped runs of lanes, noted when they are counted: only the newest of a lane are kept.
create table rota_skip (
    schedule_id {id} not null,
    scope_kind text not null,
    scope_id text not null,
    run_id {id} not null,
    job text not null,
    surplus smallint not null default 0,
    primary key (schedule_id, scope_kind, scope_id, run_id)
) {keyed};
create index rota_skip_surplus on rota_skip (job, run_id) where surplus = 1;

alter table rota_run add column schedule_id {id};
alter table rota_run add column plan_time bigint;
alter table rota_run add column covers_from bigint;
alter table rota_run add column missed_count bigint;
alter table rota_run add column backfilled smallint not null default 0; -- 1: its plan time may not have been named then
alter table rota_run add column followed smallint not null default 0;   -- 1: a run waits for its end

-- For ever one run per plan time; only what was derived from that run, by a retry, shares it.
create unique index rota_run_plan on rota_run (schedule_id, scope_kind, scope_id, plan_time)
where schedule_id is not null and retry_of is null;

-- hold: 0 may be claimed, 1 waits for run_at, 2 may be claimed within its limits, 3 waits for other runs,
-- 4 waits for run_at and then comes under its limits; a program that knows of no limits makes a 0 of every 1
alter table rota_ready add column limit_key text;
create index rota_ready_limit on rota_ready (limit_key, queue, rank, run_at, run_id) where hold = 2;
create index rota_ready_due_limited on rota_ready (run_at) where hold = 4;
create index rota_ready_waiting on rota_ready (run_id) where hold = 3;

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
    r.schedule_id, s.name as schedule, r.plan_time, r.covers_from, r.missed_count
from rota_run r
left join rota_lease l on l.run_id = r.id
left join rota_ready w on w.run_id = r.id
left join rota_schedule s on s.id = r.schedule_id;
