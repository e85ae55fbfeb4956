-- The hot statements in SQLite's own form. Sets travel as JSON, in and out, so that one step does a whole batch: the
-- interpreter's lock is released for its length, and handlers go on meanwhile.

-- name: claim_candidates
select json_group_array(json_array(run_id, fence, attempt, job, job_version, payload, queue, rank, run_at, scope_kind,
    scope_id, key, overrides, origin_id, max_attempts, on_lost, created_at))
from (
    select w.run_id, w.fence + 1 as fence, w.attempt + 1 as attempt, r.job, r.job_version, r.payload, r.queue, w.rank,
        w.run_at, r.scope_kind, r.scope_id, r.key, r.overrides, r.origin_id, r.max_attempts, r.on_lost, r.created_at
    from rota_ready w join rota_run r on r.id = w.run_id
    where w.hold = 0 and w.queue = :queue and (w.rank, w.run_at, w.run_id) > (:rank, :run_at, :id) and w.solo <= :solo
        and w.job_version <= coalesce((select value from json_each(:known) where key = w.job), 0)
    order by w.rank, w.run_at, w.run_id
    limit :wanted);

-- name: lease
insert into rota_lease (run_id, fence, attempt, worker_id, claimed_at, expires_at)
select value ->> 0, value ->> 1, value ->> 2, :worker_id, :now, :now + :lease from json_each(:claims);

-- name: take
delete from rota_ready where run_id in (select value ->> 0 from json_each(:claims));

-- name: end_successes
-- Fenced: a zombie's late answer finds no lease.
update rota_run set state = 'succeeded', attempt = l.attempt, fence = l.fence, claimed_at = l.claimed_at,
    started_at = :now - rows.busy, finished_at = :now, worker_id = l.worker_id, result = rows.result,
    measures = rows.measures
from {rows id id, fence int, busy bigint, result text, measures text}
join rota_lease l on l.run_id = rows.id and l.fence = rows.fence
where rota_run.id = l.run_id;

-- name: release
delete from rota_lease where run_id in (select value from json_each(:current));

-- name: current_leases
select json_group_array(l.run_id)
from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence;

-- name: insert_run
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, key, payload, tags, metadata,
    overrides, max_attempts, on_lost, retry_of, origin_id, created_at, run_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_ready
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version)
values (?, ?, ?, ?, ?, ?, 0, 0, ?, ?);
