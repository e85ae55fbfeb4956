-- Runs with replicas: who conducts them, and whose each replica is.

-- name: lock_free_conducts
-- By a claim, which never waits. Whoever has this lock alone gives replicas of the parent to a name.
select c.run_id from {rows id id} join rota_conduct c on c.run_id = rows.id
where c.cancel_at is null order by c.run_id {for_update_skip c};

-- name: parents_of
select p.run_id, p.parent_id from {rows id id} join rota_replica p on p.run_id = rows.id;

-- name: served_parents
select p.parent_id from {rows id id} join rota_replica p on p.parent_id = rows.id
where p.worker = :name and p.cleared = 0;

-- name: lock_open_replicas
-- After their parents. `hold + 0`: by the ids, not by the index of what is ready (see pinned_plans.py).
select w.run_id from {rows id id} join rota_ready w on w.run_id = rows.id
where w.hold + 0 in ({limited}, {restricted}) and substr(w.need, 1, 1) = '*' order by w.run_id {for_update_skip w};

-- name: give_replicas
update rota_replica set worker = :name where run_id in (select rows.id from {rows id id}) and worker is null;

-- name: lock_conducts
-- In the order of ids: two reports of replicas of the same parents must not deadlock.
select c.run_id from {rows id id} join rota_conduct c on c.run_id = rows.id order by c.run_id {for_update c};

-- name: look_at_conducts
update rota_conduct set look = 1 where run_id in (select rows.id from {rows id id});

-- name: free_replicas
update rota_replica set worker = null where run_id in (select rows.id from {rows id id}) and bound = 0;

-- name: lock_conduct
-- A parent that conducts is in this table alone: its lock stands where the lease of another run would.
select cancel_at, fence from rota_conduct where run_id = :id {for_update};

-- name: conduct_policy
select policy from rota_conduct where run_id = :id;

-- name: cancel_conduct
update rota_conduct set cancel_at = :now, look = 1 where run_id = :id;

-- name: work_to_conduct
-- How soon the next one is due (µs), whether something happened to replicas, and whether there are any. The order makes the
-- partial index the cheapest way: without it, PostgreSQL may read the whole table to learn that nothing happened.
select (select run_at from rota_ready where hold = {parent} order by run_at limit 1) - :now,
    (select count(*) from (select 1 from rota_conduct where look = 1 order by run_id limit 1) as looks),
    (select count(*) from (select 1 from rota_conduct limit 1) as conducts);

-- name: lock_due_conducts
-- Any number of processes begin replicas at once: what one of them is at, the others pass over.
select w.run_id, w.fence, w.attempt, w.run_at, r.job, r.queue, r.scope_kind, r.scope_id
from rota_ready w join rota_run r on r.id = w.run_id
where w.hold = {parent} and w.run_at <= :now and (w.run_at, w.run_id) > (:after_at, :after_id)
    and not exists (select 1 from rota_pause p
        where p.kind = 'job' and p.name = w.job or p.kind = 'queue' and p.name = w.queue)
order by w.run_at, w.run_id limit :limit {for_update_skip w};

-- name: insert_conduct
insert into rota_conduct (run_id, fence, attempt, policy, since, look)
values (:id, :fence, :attempt, :policy, :now, 0);

-- name: insert_replica_runs
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, tags, metadata, overrides,
    max_attempts, on_lost, created_at, run_at, parent_id, followed, need)
select rows.id, p.job, p.job_version, p.queue, p.priority, p.scope_kind, p.scope_id, p.payload, p.tags, p.metadata,
    p.overrides, p.max_attempts, p.on_lost, :now, :now, p.id, 1, '*' || substr(p.need, 2)
from {rows id id, parent_id id} join rota_run p on p.id = rows.parent_id
where true;

-- name: insert_replica_readies
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key, need)
select r.id, r.queue, -r.priority, r.run_at, {hold_of rows.limit_key | r.need | 1 = 0},
    case when r.on_lost = 'fail' then 1 else 0 end, 0, 0, r.job,
    r.job_version, rows.limit_key, coalesce('@' || rows.worker, r.need)
from {rows id id, worker text, limit_key text} join rota_run r on r.id = rows.id
where true;

-- name: insert_replicas
insert into rota_replica (parent_id, run_id, worker, bound)
select rows.parent_id, rows.run_id, rows.worker, rows.bound
from {rows parent_id id, run_id id, worker text, bound int}
where true;

-- name: insert_replica_waits
insert into rota_wait (run_id, after_id, kind)
select rows.run_id, rows.after_id, 4 from {rows run_id id, after_id id}
where true
on conflict (after_id, run_id) do nothing;

-- name: lock_looks
-- Decided under the lock of the parent; what another process is at is passed over.
select c.run_id, c.fence, c.attempt, c.policy, c.since, c.cancel_at, r.job, r.queue, r.scope_kind, r.scope_id
from rota_conduct c join rota_run r on r.id = c.run_id
where c.look = 1 order by c.run_id limit :limit {for_update_skip c};

-- name: looked_at
update rota_conduct set look = 0 where run_id in (select rows.id from {rows id id});

-- name: replicas_of
select p.run_id, p.worker, n.state, n.attempt, n.error, n.reason, n.result, n.finished_at, p.bound, p.cleared
from rota_replica p join rota_run_now n on n.id = p.run_id
where p.parent_id = :id order by p.run_id;

-- name: end_conduct
delete from rota_conduct where run_id = :id;

-- name: end_conducted
update rota_run set state = :state, attempt = :attempt, fence = :fence, started_at = :since, finished_at = :now,
    result = :result, error = :error
where id = :id and state is null;

-- name: clear_replicas
-- locked by: lock_conduct
update rota_replica set cleared = 1 where run_id in (
    select p.run_id from rota_replica p join rota_run r on r.id = p.run_id
    where p.parent_id = :id and p.cleared = 0
        and (:failed = 1 and r.state in ('failed', 'timed_out', 'expired', 'cancelled', 'skipped')
            or :succeeded = 1 and r.state = 'succeeded'))
returning run_id;

-- name: conducts_after
-- In turn: so many that to look after one takes no longer if there are others.
select run_id from rota_conduct where run_id > :after order by run_id limit :limit;

-- name: absent_replicas
-- Those that wait for their worker, and when it was heard of last.
select p.run_id, p.worker, p.bound, c.policy, c.since,
    (select max(k.seen_at) from rota_worker k where k.name = p.worker),
    (select max(a.ended_at) from rota_attempt a where a.run_id = p.run_id)
from {rows id id} join rota_conduct c on c.run_id = rows.id
join rota_replica p on p.parent_id = c.run_id and p.worker is not null and p.cleared = 0
join rota_ready w on w.run_id = p.run_id
order by p.run_id;

-- name: lock_replica_of_absent
-- Fenced by the name: if another worker has it by now, no row is found.
select w.queue, r.need from rota_ready w join rota_replica p on p.run_id = w.run_id join rota_run r on r.id = w.run_id
where w.run_id = :id and p.worker = :worker {for_update w};

-- name: live_replicas
select p.run_id, p.parent_id, p.worker, p.bound, r.queue
from {rows id id} join rota_replica p on p.parent_id = rows.id
{then rota_run r | r.id = p.run_id and r.state is null}
order by p.run_id;

-- name: disown_replica
-- Nobody is to have it, and it counts no more; it stays, because its run ends after it.
update rota_replica set worker = null, cleared = 1 where run_id = :id;

-- name: replica_of
select p.worker from rota_replica p where p.run_id = :id;

-- name: drop_replicas_of
delete from rota_replica where parent_id in (select rows.id from {rows id id});

-- name: lock_replicas_of
-- After their parents. One that somebody has at this moment goes with the next bite.
select r.id from {rows id id} join rota_run r on r.parent_id = rows.id where r.state is not null {for_update_skip r};

-- name: unneeded_replicas
-- Those of these, which are locked, that nothing else needs. The others are pruned by themselves, once nothing does and
-- their job has newer runs.
select r.id from {rows id id} join rota_run r on r.id = rows.id where not {kept_by_key} and not {kept_by_follower};

-- name: was_cleared_by
select 1 from rota_event where kind = 'run' and subject = cast(:id as text) and type = 'cleared'
    and strpos(details, cast(:act as text)) > 0;
