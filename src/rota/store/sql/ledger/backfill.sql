-- Runs for plan times of the past.

-- name: insert_backfilled
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, tags, metadata, overrides,
    max_attempts, on_lost, created_at, run_at, schedule_id, plan_time, retry_of, origin_id, backfilled)
select rows.id, rows.job, rows.job_version, rows.queue, rows.priority, rows.scope_kind, rows.scope_id, rows.payload,
    rows.tags, rows.metadata, rows.overrides, rows.max_attempts, rows.on_lost, :now, :now, rows.schedule_id,
    rows.plan_time, rows.retry_of, rows.origin_id, 1
from {rows id id, job text, job_version int, queue text, priority int, scope_kind text, scope_id text, payload text,
    tags text, metadata text, overrides text, max_attempts int, on_lost text, schedule_id id, plan_time bigint,
    retry_of id, origin_id id}
where true;

-- name: insert_backfilled_ready
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key)
select r.id, r.queue, -r.priority, r.run_at, rows.hold, case when r.on_lost = 'fail' then 1 else 0 end, 0, 0, r.job,
    r.job_version, rows.limit_key
from {rows id id, hold int, limit_key text} join rota_run r on r.id = rows.id
where true;

-- name: derived_runs
-- States of retries, oldest first. No retry is older than its origin, so the walk may begin at the oldest origin.
select n.origin_id, n.state from rota_run_now n
where n.job = :job and n.id > :first and n.origin_id is not null
order by n.id;

-- name: drop_ranges
-- The caller holds the locks of the cursors (lock_schedule or lock_schedules).
delete from rota_range
where (schedule_id, from_at, to_at, scope_kind, scope_id, kind, reason) in (
    select rows.id, rows.from_at, rows.to_at, rows.scope_kind, rows.scope_id, rows.kind, rows.reason
    from {rows id id, from_at bigint, to_at bigint, scope_kind text, scope_id text, kind text, reason text})
returning schedule_id, from_at, to_at, scope_kind, scope_id, kind, reason, count;

-- name: put_ranges
insert into rota_range (schedule_id, from_at, to_at, scope_kind, scope_id, kind, reason, count)
select rows.id, rows.from_at, rows.to_at, rows.scope_kind, rows.scope_id, rows.kind, rows.reason, rows.count
from {rows id id, from_at bigint, to_at bigint, scope_kind text, scope_id text, kind text, reason text, count bigint}
where true;
