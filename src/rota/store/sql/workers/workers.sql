-- Workers: their own word with each heartbeat, and what operators ask of them.

-- name: save_worker
-- A worker forgotten as silent that returns brings along what it was asked.
insert into rota_worker (id, name, host, pid, version, queues, jobs, slots, started_at, seen_at,
    state, weights, settings, asked, labels, app_version, schema)
values (:id, :name, :host, :pid, :version, :queues, :jobs, :slots, :now, :now, :state, :weights, :settings, :asked,
    :labels, :app_version, :schema)
on conflict (id) do update set seen_at = excluded.seen_at, queues = excluded.queues, slots = excluded.slots,
    state = excluded.state, weights = excluded.weights, settings = excluded.settings, jobs = excluded.jobs
returning asked;

-- name: worker_gone
delete from rota_worker where id = :id;

-- name: worker_names
select id, name from rota_worker order by name, id;

-- name: list_workers
select w.id, w.name, w.host, w.pid, w.version, w.state, w.queues, w.weights, w.jobs, w.slots, w.started_at, w.seen_at,
    w.settings, w.asked, w.asked_by, w.labels, w.app_version
from {rows id text} join rota_worker w on w.id = rows.id
order by w.name, w.id;

-- name: runs_of_workers
-- Some of each, and how many there are: a fast worker's buffer holds thousands.
select held.worker_id, held.run_id, r.job, held.attempt, held.claimed_at, held.count
from (
    select l.worker_id, l.run_id, l.attempt, l.claimed_at, count(*) over (partition by l.worker_id) as count,
        row_number() over (partition by l.worker_id order by l.claimed_at, l.run_id) as place
    from rota_lease l
    -- `is true`: the leases are gone through once, and not once for each worker.
    where (l.worker_id in (select rows.id from {rows id text})) is true
) as held
{then rota_run r | r.id = held.run_id}
where held.place <= :most
order by held.worker_id, held.place;

-- name: lock_workers
-- In the order of ids, so that two operators who ask the same workers do not deadlock.
select w.id, w.settings, w.asked from {rows id text} join rota_worker w on w.id = rows.id order by w.id {for_update w};

-- name: ask_workers
update rota_worker set asked = rows.asked, asked_by = :actor from {rows id text, asked text}
where rota_worker.id = rows.id;
