-- Facts for explanations and for `doctor`.

-- name: schedule_due
select next_at from rota_schedule_now where id = :id;

-- name: newest_planned
select max(plan_time) from rota_run
where schedule_id = :id and scope_kind = :kind and scope_id = :name and retry_of is null;

-- name: runs_at
select n.id, n.scope_kind, n.scope_id, n.plan_time, n.covers_from, n.missed_count, n.state, n.reason, n.run_at,
    n.started_at, n.finished_at, n.cancelled_by, n.error
from rota_run_now n
where n.schedule_id = :id and n.retry_of is null and n.plan_time = :at
order by n.scope_kind, n.scope_id limit :limit;

-- name: runs_covering
select n.id, n.scope_kind, n.scope_id, n.plan_time, n.covers_from, n.missed_count, n.state, n.reason
from rota_run_now n
where n.schedule_id = :id and n.retry_of is null and n.plan_time > :at and n.covers_from <= :at
order by n.scope_kind, n.scope_id limit :limit;

-- name: live_workers
select id, queues, jobs, state, coalesce(labels, '[]'), coalesce(app_version, version) from rota_worker
where seen_at > :now - :silence order by id;

-- name: run_details
select r.cancelled_by, w.hold, l.expires_at, coalesce(l.cancel_at, o.cancel_at), l.shielded, o.step
from rota_run r left join rota_ready w on w.run_id = r.id left join rota_lease l on l.run_id = r.id
left join rota_outside o on o.run_id = r.id
where r.id = :id;

-- name: awaited_runs
select a.after_id, r.state, a.kind from rota_wait a left join rota_run r on r.id = a.after_id
where a.run_id = :id order by a.after_id;

-- name: inputs_of
select after_id, input from rota_followed where run_id = :id and input is not null order by no;

-- name: runs_waiting_for
select a.run_id from rota_wait a join rota_ready w on w.run_id = a.run_id
where a.after_id = :id order by a.run_id limit :limit;

-- name: limits_of_run
select g.key, coalesce(l.max, g.max), case when g.period is null
    then (select count(*) from rota_gate h where h.key = g.key and h.fence is not null and (
            1 = (select 1 from rota_lease e where e.run_id = h.run_id and e.fence = h.fence limit 1)
            or 1 = (select 1 from rota_outside o where o.run_id = h.run_id and o.fence = h.fence limit 1)))
    else (select coalesce(sum(n.count), 0) from rota_begun n
        where n.key = g.key and n.at > :now - coalesce(l.period, g.period)) end,
    coalesce(l.period, g.period), l.opens_at
from rota_gate g left join rota_limit l on l.key = g.key
where g.run_id = :id and substr(g.key, 1, 5) <> 'line:' order by g.place;

-- name: pauses_of_run
select p.kind, p.name, coalesce(p.cancelled_at, p.paused_at),
    case when p.cancelled_at is null then p.paused_by else p.cancelled_by end,
    case when p.cancelled_at is null then p.reason else p.cancel_reason end,
    case when p.cancelled_at is null then 'paused' else 'cancelled' end
from rota_run r left join rota_stage s on s.run_id = r.id
join rota_pause p on p.kind = 'job' and p.name in (r.job, s.job)
    or p.kind = 'queue' and p.name = coalesce(s.queue, r.queue)
where r.id = :id;

-- name: count_before
select count(*) from rota_ready w join rota_ready o on o.queue = w.queue and o.hold = {open}
    and (o.rank, o.run_at, o.run_id) < (w.rank, w.run_at, w.run_id)
where w.run_id = :id;

-- name: count_own_before
-- Like count_before, for a caller who may see only the run's own scope.
select count(*) from rota_run m join rota_ready w on w.run_id = m.id
join rota_ready o on o.queue = w.queue and o.hold = {open}
    and (o.rank, o.run_at, o.run_id) < (w.rank, w.run_at, w.run_id)
join rota_run r on r.id = o.run_id and r.scope_kind = m.scope_kind and r.scope_id = m.scope_id
where m.id = :id;

-- name: overdue_schedules
select name, next_at, trouble, provider from rota_schedule_now
where next_at < :now - :late and deleted_at is null
order by next_at limit :limit;

-- name: schedules_with_jobs
select s.name, s.definition, j.definition from rota_schedule s join rota_job j on j.name = s.job
where s.deleted_at is null and s.enabled = 1 and s.paused_at is null
    and j.version = (select max(version) from rota_job where name = s.job and dropped_at is null)
order by s.name limit :limit;

-- name: stuck_leases
select run_id, worker_id, expires_at from rota_lease where expires_at < :now - :late
union all
select run_id, worker_id, deadline from rota_outside where deadline < :now - :late
order by 3 limit :limit;

-- name: claimable_by_queue
select queue, count(*) from rota_ready where hold in ({open}, {limited}, {restricted}) group by queue;

-- name: claimable_by_job
select coalesce(s.job, w.job), count(*) from rota_ready w left join rota_stage s on s.run_id = w.run_id
where w.hold in ({open}, {limited}, {restricted}) group by coalesce(s.job, w.job);

-- name: orphaned_waits
-- Waits of a run that has ended itself are not orphans: they go when the run ends that it waited for.
select count(*) from rota_wait a left join rota_run p on p.id = a.after_id where p.id is null or p.state is not null;

-- name: orphaned_limits
select count(*) from rota_gate g left join rota_run r on r.id = g.run_id where r.id is null or r.state is not null;

-- name: begun_and_skipped
-- Only runs with the newest attempts: older ones were checked when theirs were the newest.
select r.id from (
    select distinct run_id from (
        select run_id from rota_attempt order by run_id desc, fence desc limit :looked) as newest) as a
join rota_run r on r.id = a.run_id
where r.state = 'skipped'
order by r.id limit :limit;

-- name: newest_zone_data
select max(tzdata) from rota_cursor;
