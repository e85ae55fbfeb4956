-- Runs in other hands: handed over by their handler, or claimed by somebody who is no worker of ours.

-- name: hand_over
insert into rota_outside (run_id, fence, attempt, worker_id, claimed_at, began_at, since, deadline, step)
select rows.id, rows.fence, rows.attempt, rows.worker_id, rows.claimed_at, :now - rows.busy, :now, :now + rows.timeout,
    rows.step
from {rows id id, fence int, attempt int, worker_id text, claimed_at bigint, busy bigint, timeout bigint, step text}
where true
returning run_id, deadline;

-- name: handed_over_before
-- A hand-over repeated after an unknown commit, whatever became of the run since.
select rows.id, rows.fence from {rows id id, fence int}
join rota_event e on e.kind = 'run' and e.subject = cast(rows.id as text) and e.type = 'handed_over'
    and e.fence = rows.fence;

-- name: lock_fenced
-- Fenced, as a report is.
select l.run_id, l.fence, l.attempt, l.worker_id, l.claimed_at, l.cancel_at, r.max_attempts, r.on_lost, r.queue,
    r.job, r.overrides, j.definition, :now - l.claimed_at, null, s.step
from rota_lease l join rota_run r on r.id = l.run_id
left join rota_stage s on s.run_id = r.id
left join rota_job j on j.name = coalesce(s.job, r.job) and j.version = coalesce(s.job_version, r.job_version)
where l.run_id = :id and l.fence = :fence
{for_update l};

-- name: lock_outside
-- Fenced: whoever says something of a run that was taken from them finds no row.
select o.run_id, o.fence, o.attempt, o.worker_id, o.claimed_at, o.cancel_at, r.max_attempts, r.on_lost, r.queue,
    r.job, r.overrides, j.definition, :now - coalesce(o.began_at, o.claimed_at), o.step, s.step
from rota_outside o join rota_run r on r.id = o.run_id
left join rota_stage s on s.run_id = r.id
left join rota_job j on j.name = coalesce(s.job, r.job) and j.version = coalesce(s.job_version, r.job_version)
where o.run_id = :id and o.fence = :fence
{for_update o};

-- name: lock_overdue
-- By one index each, so that those which are not due are not read; and locked there, so that a look which meets another one
-- goes on behind what that has. What is said of a row is taken from there, too: read a second time, it would be as it was
-- when the statement began, without a cancel that has come since.
with late as materialized (
    select run_id, fence, attempt, worker_id, claimed_at, cancel_at, began_at, step, deadline, since from rota_outside
    where deadline < :now order by deadline limit :limit {for_update_skip}),
stopped as materialized (
    select run_id, fence, attempt, worker_id, claimed_at, cancel_at, began_at, step, deadline, since from rota_outside
    where cancel_at < :now and deadline >= :now order by cancel_at limit :limit {for_update_skip})
select o.run_id, o.fence, o.attempt, o.worker_id, o.claimed_at, o.cancel_at, r.max_attempts, r.on_lost, r.queue,
    r.job, r.overrides, j.definition, :now - coalesce(o.began_at, o.claimed_at), o.step, null, o.deadline - o.since,
    case when o.cancel_at < :now then 1 else 0 end
from (select * from late union all select * from stopped) as o
join rota_run r on r.id = o.run_id
left join rota_job j on j.name = r.job and j.version = r.job_version
order by o.deadline;

-- name: lease_again
-- For the length of a transaction: what ends it is what ends a lease.
insert into rota_lease (run_id, fence, attempt, worker_id, claimed_at, expires_at, cancel_at)
select o.run_id, o.fence, o.attempt, o.worker_id, o.claimed_at, o.deadline, o.cancel_at from rota_outside o
where o.run_id = :id and o.fence = :fence;

-- name: drop_outside
delete from rota_outside where (run_id, fence) in (select rows.id, rows.fence from {rows id id, fence int});

-- name: lock_noted_outside
-- Fenced, and in the order of ids: notes of many runs are written at once.
select o.run_id, o.fence
from {rows id id, fence int} join rota_outside o on o.run_id = rows.id and o.fence = rows.fence
order by o.run_id
{for_key_share o};

-- name: lock_cancel_outside
-- It stands where the lease of another run would: before the run.
select cancel_at, fence from rota_outside where run_id = :id {for_update};

-- name: ask_outside_to_cancel
update rota_outside set cancel_at = coalesce(cancel_at, :now + :grace) where run_id = :id;

-- name: lock_outside_of
-- After leases, before what is ready; in the order of ids.
select o.run_id from {rows id id} join rota_outside o on o.run_id = rows.id order by o.run_id {for_update o};

-- name: lock_free_outside
-- By whoever holds a limit, and so must not wait.
select run_id from rota_outside where run_id = :id {for_update_skip};

-- name: pace_of_lease
select l.worker_id, w.settings from rota_lease l left join rota_worker w on w.id = l.worker_id
where l.run_id = :id and l.fence = :fence;

-- name: beat
-- One that was asked for longer keeps what it has, but none goes beyond its deadline. A step that must not be cancelled hides
-- a cancel until it has ended.
update rota_lease set expires_at = case when deadline < :now + :lease then deadline
    when expires_at > :now + :lease then expires_at else :now + :lease end
where run_id = :id and fence = :fence
returning expires_at, case when cancel_at is null or shielded > 0 then 0 else 1 end;

-- name: definitions_of
select j.name, j.version, j.definition
from {rows name text, version int} join rota_job j on j.name = rows.name and j.version = rows.version;

-- name: limit_leases
-- Fenced: a lease that was lost since it was claimed is another's.
update rota_lease set deadline = claimed_at + rows.timeout,
    expires_at = case when expires_at < claimed_at + rows.timeout then expires_at else claimed_at + rows.timeout end
from {rows id id, fence int, timeout bigint}
where rota_lease.run_id = rows.id and rota_lease.fence = rows.fence;

-- name: guard_lease
-- The row is locked. Refused (no shield) if the run was asked to stop before; when the last shield goes, the grace of a cancel
-- that came meanwhile begins. Numbered like those of our own workers, see `shield`.
update rota_lease set deadline = :now + cast(:left as bigint),
    cancel_at = case when cancel_at is null then null
        when cast(:shield as int) = 0 and shielded > 0 then :now + :grace else cancel_at end,
    shielded = case when cast(:shield as int) = 1 and shielded <= 0 and cancel_at is null then 1 - shielded
        when cast(:shield as int) = 0 and shielded > 0 then -shielded else shielded end
where run_id = :id and fence = :fence
returning shielded;

-- name: shield_of
select shielded from rota_lease where run_id = :id and fence = :fence;

-- name: seen_worker
update rota_worker set seen_at = :now where id = :id;

-- name: beat_outside
select deadline, case when cancel_at is null then 0 else 1 end from rota_outside
where run_id = :id and fence = :fence;

-- name: recorded_end
select a.outcome, a.left_as, r.state, r.fence, case when exists (
    select 1 from rota_event e where e.kind = 'run' and e.subject = cast(r.id as text) and e.fence = :fence
        and e.type in ('handed_over', 'advanced')) then 1 else 0 end
from rota_run r left join rota_attempt a on a.run_id = r.id and a.fence = :fence
where r.id = :id;

-- name: payload_of_run
select payload from rota_run where id = :id;

-- name: said_progress
select done, summary from rota_progress where run_id = :id and fence = :fence;

-- name: opened_steps
select id, no, state, fence, :now - started_at from rota_step where run_id = :id order by no;

-- name: log_sizes
select no, length(lines) from rota_log where run_id = :id and fence = :fence order by no;

-- name: leases_until
select l.run_id, l.expires_at from {rows id id, fence int}
join rota_lease l on l.run_id = rows.id and l.fence = rows.fence;

-- name: done_steps
select s.run_id, s.id, s.result from {rows id id} join rota_step s on s.run_id = rows.id
where s.state = 'succeeded' order by s.run_id, s.no;

-- name: describe_worker
-- One of the same name and boot may have other labels by now.
update rota_worker set labels = :labels, app_version = :app_version where id = :id;

-- name: external_jobs
select j.name, j.version from rota_job j
where j.kind = 'external' and j.dropped_at is null
    and j.version = (select max(version) from rota_job where name = j.name and dropped_at is null)
order by j.name;
