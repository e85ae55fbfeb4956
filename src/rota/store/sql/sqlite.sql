-- The hot statements in SQLite's own form: one row each, run many times in one transaction.

-- name: claim_candidates
select w.run_id, w.fence + 1, w.attempt + 1, r.job, r.job_version, r.payload, r.queue, w.rank, w.run_at,
    r.scope_kind, r.scope_id, r.key, r.overrides, r.origin_id, r.max_attempts, r.on_lost, r.created_at
from rota_ready w join rota_run r on r.id = w.run_id
where w.hold = 0 and w.queue = :queue and (w.rank, w.run_at, w.run_id) > (:rank, :run_at, :id) and w.solo <= :solo
    and exists (select 1 from json_each(:known) as known where known.key = w.job and known.value >= w.job_version)
order by w.rank, w.run_at, w.run_id
limit :wanted;

-- name: take
delete from rota_ready where run_id = ?;

-- name: lease
insert into rota_lease (run_id, fence, attempt, worker_id, claimed_at, expires_at) values (?, ?, ?, ?, ?, ?);

-- name: insert_run
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, key, payload, tags, metadata,
    overrides, max_attempts, on_lost, retry_of, origin_id, created_at, run_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id) do nothing
returning id;

-- name: insert_ready
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version)
values (?, ?, ?, ?, ?, ?, 0, 0, ?, ?);

-- name: release
-- Fenced: a zombie's late answer finds no row.
delete from rota_lease where run_id = ? and fence = ? returning run_id, fence, attempt, worker_id, claimed_at;

-- name: record_success
insert into rota_attempt (run_id, fence, no, worker_id, claimed_at, started_at, ended_at, outcome, measures)
values (?, ?, ?, ?, ?, ?, ?, 'succeeded', ?);

-- name: end_success
update rota_run set state = 'succeeded', attempt = ?, fence = ?, started_at = ?, finished_at = ?, worker_id = ?,
    result = ?
where id = ?;
