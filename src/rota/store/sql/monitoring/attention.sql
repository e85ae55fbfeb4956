-- What needs attention besides what is live: narrow tables and statistics, each statement with a limit.

-- name: failing_lanes
-- By an index of those that fail in a row.
select n.schedule_id, s.name, n.scope_kind, n.scope_id, n.failures, n.finished_at
from (
    select schedule_id, scope_kind, scope_id, failures, finished_at from rota_lane
    where failures >= 3 order by failures desc limit :limit
) as n
join rota_schedule s on s.id = n.schedule_id
where s.deleted_at is null and s.enabled = 1 and s.paused_at is null and s.job_paused = 0
order by n.failures desc, s.name, n.scope_kind, n.scope_id;

-- part: newest_of_lane
select p.id, p.plan_time, p.state, p.finished_at from rota_run p
where p.schedule_id = rows.schedule_id and p.scope_kind = rows.scope_kind and p.scope_id = rows.scope_id
    and p.plan_time is not null and p.retry_of is null
order by p.plan_time desc limit :walk

-- name: failures_of_lanes
-- When the failures in a row of each lane began, and the error of the last one, among the newest :walk runs of the lane.
select rows.schedule_id, rows.scope_kind, rows.scope_id, r.error, (
    select min(w.finished_at) from (
        {part newest_of_lane}) as w
    where w.state in ('failed', 'timed_out', 'expired') and w.plan_time > coalesce((
        select max(l.plan_time) from (
            {part newest_of_lane}) as l
        where l.state = 'succeeded'), 0))
from {rows schedule_id id, scope_kind text, scope_id text}
join rota_run r on r.id = (
    select w.id from (
        {part newest_of_lane}) as w
    where w.state in ('failed', 'timed_out', 'expired') order by w.plan_time desc limit 1);

-- name: missed_since
-- The columns of `MissedTimes`, in their order. By an index of their last plan times.
select s.name, max(g.reason), min(g.from_at), max(g.to_at), sum(g.count)
from (
    select schedule_id, reason, from_at, to_at, count from rota_range
    where kind = 'missed' and to_at >= :since order by to_at desc limit :limit
) as g
join rota_schedule s on s.id = g.schedule_id
where s.deleted_at is null
group by s.name order by max(g.to_at) desc, s.name;

-- name: skipped_since
-- Runs that were skipped are faults: the newest of them, by their ids.
select s.name, s.definition, max(coalesce(r.reason, '')), min(r.plan_time), max(r.plan_time), count(*)
from (
    select run_id from rota_fault
    where (state, run_id) >= ('skipped', :first) and (state, run_id) < ('skipped', :last)
    order by state desc, run_id desc limit :limit
) as f
{then rota_run r | r.id = f.run_id} join rota_schedule s on s.id = r.schedule_id
where s.deleted_at is null and r.plan_time is not null
group by s.name, s.definition order by max(r.plan_time) desc, s.name;

-- name: gone_workers
-- Silent workers of whose name none is alive, or that hold runs.
select w.id, w.seen_at from rota_worker w
where w.seen_at <= :now - :silence
    and not exists (select 1 from rota_worker o where o.name = w.name and o.seen_at > :now - :silence)
order by w.seen_at desc, w.id limit :limit;

-- name: leases_of_gone
select l.worker_id, l.run_id from {rows id text} join rota_lease l on l.worker_id = rows.id limit :limit;

-- name: losses_of_workers
-- By their subjects: in an order, all events might be walked along it.
select e.subject, e.details from {rows id text}
{then rota_event e | e.kind = 'worker' and e.subject = rows.id and e.type = 'lost_runs'}
limit :limit;

-- name: long_runs
-- Goes through leases, as counting them does: an index by time would be written by each claim.
select l.run_id, r.job, r.scope_kind, r.scope_id, l.worker_id, l.claimed_at
from (
    select run_id, worker_id, claimed_at from rota_lease where claimed_at < :now - :long and cancel_at is null
    order by claimed_at limit :limit
) as l
{then rota_run r | r.id = l.run_id}
order by l.claimed_at, l.run_id;

-- name: stats_of_week
select rows.job, s.stats from {rows job text, day int}
join rota_job_stats s on s.job = rows.job and s.day = rows.day;

-- name: queue_depths
select at, counted from rota_count where span = 300 and source = '' and at >= :since order by at desc limit :limit;

-- name: starved_limits
-- Runs that wait under limits, not all of a very long queue.
select limit_key, count(*), min(run_at)
from (select limit_key, run_at from rota_ready where hold = {limited} limit :most) as waiting
group by limit_key having min(run_at) < :now - :long order by min(run_at), limit_key limit :limit;

-- name: schedules_paused_before
select name, paused_at, paused_by, pause_reason from rota_schedule
where deleted_at is null and paused_at < :now - :long and resume_at is null order by paused_at, name limit :limit;

-- name: program_versions
select version, schema, count(*) from rota_worker where seen_at > :now - :silence group by version, schema
order by version, schema;

-- name: newest_deliveries
-- The newest runs of one job, by its index; of those that wait for a retry, the error of their last attempt.
select r.id, r.tags, r.created_at, r.state, coalesce(r.error, (
    select a.error from rota_attempt a where a.run_id = r.id order by a.fence desc limit 1))
from (
    select id, job, tags, created_at, state, error from rota_run
    where job >= :job and job <= :job order by job desc, id desc limit :limit
) as r
order by r.id desc;

-- name: snoozes
select kind, subject, until, weight, actor, reason from rota_snooze order by kind, subject limit :limit;

-- name: save_snooze
insert into rota_snooze (kind, subject, until, weight, actor, reason, made_at)
values (:kind, :subject, :until, :weight, :actor, :reason, :now)
on conflict (kind, subject) do update set until = excluded.until, weight = excluded.weight, actor = excluded.actor,
    reason = excluded.reason, made_at = excluded.made_at;

-- name: drop_snooze
delete from rota_snooze where kind = :kind and subject = :subject returning kind;

-- name: drop_old_snoozes
delete from rota_snooze where until < :now;

-- name: any_run_before
select id from rota_run where id < :first order by id limit 1;
