-- Statements of a run's life that both databases share. `{rows …}` stands for a set of bound rows.

-- name: now
select :now;

-- name: which_exist
select r.id, r.created_at, r.run_at from {rows id id} join rota_run r on r.id = rows.id;

-- name: lock_keys
-- New keys are inserted, those that are there only locked: `do update … where false` waits for a row and leaves it as
-- it is. Row locks, unlike advisory ones, take no room in the server's memory, however many a bulk enqueue needs.
insert into rota_unique (key, run_id, held_until, once, fingerprint)
select rows.key, rows.run_id, coalesce(:now + rows.period, 0), rows.once, rows.fingerprint
from {rows key text, run_id id, period bigint, once int, fingerprint text}
where true
on conflict (key) do update set fingerprint = excluded.fingerprint where false
returning key;

-- name: hold_key
insert into rota_unique (key, run_id, held_until, once, fingerprint)
values (:key, :run_id, coalesce(:now + :period, 0), :once, :fingerprint);

-- name: free_key
delete from rota_unique where key = :key;

-- name: free_keys
delete from rota_unique where key in (select rows.key from {rows key text});

-- name: key_holders
select u.key, u.run_id, u.held_until, u.once, u.fingerprint, r.state, r.id is not null, :now, w.fence
from {rows key text} join rota_unique u on u.key = rows.key
left join rota_run r on r.id = u.run_id left join rota_ready w on w.run_id = u.run_id;

-- name: take_over_key
update rota_unique set run_id = :run_id, held_until = coalesce(:now + :period, 0), once = :once, fingerprint = :fingerprint
where key = :key;

-- name: take_over_keys
update rota_unique set run_id = rows.run_id, held_until = coalesce(:now + rows.period, 0), once = rows.once,
    fingerprint = rows.fingerprint
from {rows key text, run_id id, period bigint, once smallint, fingerprint text}
where rota_unique.key = rows.key;

-- name: pass_key_on
update rota_unique set run_id = :run_id where key = :key;

-- name: lock_ready
-- The ready row before the run, as a cancel and a claim take them. None: somebody has the run by now.
select w.fence, w.hold, r.run_at from rota_ready w join rota_run r on r.id = w.run_id where w.run_id = :id {for_update w};

-- name: replace_run
update rota_run set payload = :payload, priority = :priority, queue = :queue, job_version = :job_version,
    tags = :tags, metadata = :metadata, overrides = :overrides, max_attempts = :max_attempts, on_lost = :on_lost,
    run_at = coalesce(:run_at, :now + :delay), need = cast(:need as text)
where id = :id;

-- name: replace_ready
-- It was never begun: an attempt that it was to set out from, as a retry by its schedule, belonged to what it was.
update rota_ready set queue = :queue, attempt = 0, rank = -cast(:priority as int), job_version = :job_version,
    run_at = coalesce(:run_at, :now + :delay), need = cast(:need as text),
    limit_key = case when substr(cast(:need as text), 1, 1) = '+' then null else cast(:limit_key as text) end,
    hold = case when hold = {blocked} then {blocked} else {hold_of cast(:limit_key as text) | cast(:need as text) |
        coalesce(:run_at, :now + :delay) > :now} end,
    solo = case when :on_lost = 'fail' then 1 else 0 end
where run_id = :id
returning hold, run_at;

-- name: lock_leases
-- Fenced: a zombie's report finds no row.
select l.run_id, l.fence, l.attempt, l.worker_id, l.claimed_at, l.cancel_at, r.max_attempts, r.on_lost, r.queue,
    r.job, r.need
from {rows id id, fence int}
join rota_lease l on l.run_id = rows.id and l.fence = rows.fence
join rota_run r on r.id = l.run_id
order by l.run_id
{for_update l};

-- name: lock_expired
-- Only leases are locked, and what a report has at this moment is left to it: it counts. They are chosen before their runs
-- are looked at, and `cross join`, here and elsewhere, keeps that order on SQLite: else the planner of either database,
-- while it knows little of the tables, goes through all runs that ever were.
-- Overdue is a lease that lasted until its deadline. One that ended before is a loss, however late the reaper comes.
with taken as materialized (
    select l.run_id, l.fence, l.attempt, l.worker_id, l.claimed_at, l.cancel_at, l.expires_at, l.deadline
    from rota_lease l
    where l.expires_at < :now or (l.cancel_at < :now and l.shielded <= 0)
    order by l.expires_at limit :limit {for_update_skip l})
select t.run_id, t.fence, t.attempt, t.worker_id, t.claimed_at, t.cancel_at, r.max_attempts, r.on_lost, r.queue,
    r.job, r.need, case when t.deadline < :now and t.expires_at >= t.deadline then 1 else 0 end
from taken t {then rota_run r | r.id = t.run_id}
order by t.expires_at;

-- name: job_and_queue
select job, queue from rota_run where id = :id;

-- name: drop_leases
delete from rota_lease
where (run_id, fence) in (select rows.id, rows.fence from {rows id id, fence int})
returning run_id;

-- name: record_attempts
insert into rota_attempt (run_id, fence, no, worker_id, claimed_at, started_at, ended_at, outcome, error, measures,
    left_as, due_at)
select rows.id, rows.fence, rows.no, rows.worker_id, rows.claimed_at, :now - rows.busy, :now, rows.outcome,
    rows.error, rows.measures, rows.left_as, :now + rows.delay
from {rows id id, fence int, no int, worker_id text, claimed_at bigint, busy bigint, outcome text, error text,
    measures text, left_as text, delay bigint}
where true;

-- name: requeue
-- A run with two lost attempts is a suspect. The limit keeps that a probe.
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key, need)
select r.id, coalesce(s.queue, r.queue), -r.priority, case when rows.keeps_place = 1 then r.run_at else :now + rows.delay end,
    {hold_of g.key | r.need | rows.delay > 0},
    case when r.on_lost = 'fail' then 1
        when (select count(*) from (select 1 from rota_attempt a where a.run_id = r.id and a.outcome = 'lost' limit 2)
            as lost) = 2 then 2
        else 0 end,
    rows.attempt, rows.fence, case when s.job is null or exists (
        select 1 from rota_pause p where p.kind = 'job' and p.name = r.job) then r.job else s.job end,
    coalesce(s.job_version, r.job_version), g.key,
    case when substr(r.need, 1, 1) = '*'
        then coalesce((select '@' || p.worker from rota_replica p where p.run_id = r.id), r.need)
        else r.need end
from {rows id id, delay bigint, attempt int, fence int, keeps_place int} join rota_run r on r.id = rows.id
left join rota_gate g on g.run_id = rows.id and g.place = 0
left join rota_stage s on s.run_id = rows.id
where true
returning queue;

-- name: end_runs
update rota_run set state = rows.state, attempt = rows.attempt, fence = rows.fence, started_at = :now - rows.busy,
    finished_at = :now, worker_id = rows.worker_id, result = rows.result, error = rows.error
from {rows id id, state text, attempt int, fence int, busy bigint, worker_id text, result text, error text}
where rota_run.id = rows.id and rota_run.state is null;

-- name: attempt_outcomes
-- A report repeated after an unknown commit finds what it did the first time.
select rows.id, rows.fence, coalesce(a.outcome, 'succeeded')
from {rows id id, fence int}
left join rota_attempt a on a.run_id = rows.id and a.fence = rows.fence
left join rota_run r on r.id = rows.id and r.fence = rows.fence and r.state = 'succeeded'
where a.run_id is not null or r.id is not null;

-- name: extend
-- The answer names the leases that were still there, and those that are asked to stop.
update rota_lease set expires_at = :now + :lease
where (run_id, fence) in (select rows.id, rows.fence from {rows id id, fence int})
returning run_id, case when cancel_at is null then 0 else 1 end;

-- name: still_leased
select l.run_id from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence;

-- name: cancelling
-- Who asked is looked up run by run: a join might scan all runs.
select l.run_id, l.fence, (select r.cancelled_by from rota_run r where r.id = l.run_id) from rota_lease l
where l.worker_id = :worker_id and l.cancel_at is not null order by l.run_id;

-- name: leases_of_worker
select run_id, fence from rota_lease where worker_id = :worker_id;

-- name: schedules_of_retries
select r.id, s.name, s.definition, :now from {rows id id} join rota_run r on r.id = rows.id
join rota_schedule s on s.id = r.schedule_id;

-- name: promote
-- Taken once, as in `unblock_limits`.
with taken as materialized (
    select run_id from rota_ready where hold = {open_later} and run_at <= :now order by run_at limit :limit {for_update_skip})
update rota_ready set hold = case when limit_key is null then {open} else {limited} end
where run_id in (select run_id from taken)
returning run_id, queue, limit_key, rank;

-- name: promote_limited
-- Taken first, then updated: the walk along the index stops at the limit, however many wait.
with taken as materialized (
    select run_id from rota_ready where hold = {limited_later} and run_at <= :now order by run_at limit :limit {for_update_skip})
update rota_ready set hold = {limited}
where run_id in (select run_id from taken)
returning run_id, queue, limit_key, rank;

-- name: next_due
-- One look into each of the indexes; and whether any of those that are due have needs. By its order: a `min`, PostgreSQL may
-- take from all rows if it expects a few.
select min(due.at) - :now, max(case when due.needed = 1 and due.at <= :now then 1 else 0 end),
    (select opens_at from rota_limit where opens_at is not null order by opens_at limit 1) - :now
from (
    select (select run_at from rota_ready where hold = {open_later} order by run_at limit 1) as at, 0 as needed
    union all
    select (select run_at from rota_ready where hold = {limited_later} order by run_at limit 1), 0
    union all
    select (select run_at from rota_ready where hold = {restricted_later} order by run_at limit 1), 1) as due;

-- name: drop_ready
delete from rota_ready where run_id = :id returning attempt, fence, hold;

-- name: drop_ready_each
-- The rows are locked, in the order of ids.
delete from rota_ready where run_id in (select rows.id from {rows id id}) returning run_id, attempt, fence, hold;

-- name: end_unclaimed
-- A run that was waiting for its next attempt keeps the error of the last one. Attempts end with a lease, and whoever has
-- deleted the ready row knows that there is none.
-- locked by: drop_ready
update rota_run set state = :state, attempt = :attempt, fence = :fence + 1, finished_at = :now, reason = :reason,
    cancelled_by = :actor, error = coalesce(cast(:error as text),
        (select a.error from rota_attempt a where a.run_id = :id order by a.fence desc limit 1))
where id = :id;

-- name: lock_lease
-- The lease before the run: a report that ends it holds the lease first.
select cancel_at, fence, worker_id from rota_lease where run_id = :id {for_update};

-- name: ask_to_cancel
update rota_lease set cancel_at = coalesce(cancel_at, :now + :grace) where run_id = :id;

-- name: note_cancel
-- Whoever asked first stays who it was.
update rota_run set reason = coalesce(reason, :reason), cancelled_by = coalesce(cancelled_by, :actor) where id = :id;

-- name: lock_leases_of
-- First of all places of a run, and in the order of ids: reports take leases so.
select l.run_id from {rows id id} join rota_lease l on l.run_id = rows.id order by l.run_id {for_update l};

-- name: lock_runs
-- After leases and ready rows, before limits; in the order of ids.
select r.id from {rows id id} join rota_run r on r.id = rows.id order by r.id {for_update r};

-- name: lock_free_runs
-- By whoever holds a limit, and so must not wait for a run: its end waits for that limit.
select r.id from {rows id id} join rota_run r on r.id = rows.id order by r.id {for_update_skip r};

-- name: lock_free_lease
-- By whoever holds a ready row or a limit: to wait for a lease would be out of order.
select run_id from rota_lease where run_id = :id {for_update_skip};

-- name: lock_free_ready
-- By whoever holds a limit, and so must not wait.
select run_id from rota_ready where run_id = :id {for_update_skip};

-- name: skipped_among
select r.reason from {rows id id} join rota_run r on r.id = rows.id where r.state = 'skipped' order by r.id;
