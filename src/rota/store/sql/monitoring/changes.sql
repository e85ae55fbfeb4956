-- Cheap checks for changes.

-- name: change_mark
-- A value that differs each time: PostgreSQL does not tell of commits, so anything may have changed. SQLite does tell,
-- without a statement.
select random();

-- name: watched_runs
select n.id, n.state, n.fence, n.attempt, n.run_at, n.cancel_at, n.progress_at,
    (select max(coalesce(s.finished_at, s.started_at)) from rota_step s where s.run_id = n.id),
    (select l.at from rota_log l where l.run_id = n.id order by l.fence desc, l.no desc limit 1)
from {rows id id} join rota_run_now n on n.id = rows.id;

-- name: newest_leases
-- By the primary key, which runs share: those that came first are seldom those that changed last.
select run_id from rota_lease order by run_id desc limit :limit;

-- name: newest_outside
select run_id from rota_outside order by run_id desc limit :limit;

-- name: newest_conducts
select run_id from rota_conduct order by run_id desc limit :limit;

-- name: places_of_runs
select n.id, n.state, n.fence, n.attempt from {rows id id} join rota_run_now n on n.id = rows.id;
