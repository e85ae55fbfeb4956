-- Old rows away. Every statement takes a bounded bite, so that no janitor holds locks for long.

-- name: jobs_with_runs
-- One index probe per job, however many runs there are. It begins before all names, of which none is empty; after the last
-- one comes a null.
with recursive names(job) as (
    select cast('' as text)
    union all
    select (select r.job from rota_run r where r.job > names.job order by r.job limit 1)
    from names where names.job is not null)
select job from names where job > '';

-- name: newest_kept
-- Replicas go with their parent.
select id from rota_run where job >= :job and job <= :job and parent_id is null
order by job desc, id desc limit 1 offset :keep;

-- part: unneeded
-- Not what is still needed: see `KEPT` in databases/statements. `limit 1` keeps each look a probe: PostgreSQL may answer an
-- `exists` beside an `or` from a hash of the whole table.
r.state is not null and r.finished_at < :now - :keep_for
    and (r.parent_id is null or (select 1 from rota_run p where p.id = r.parent_id limit 1) is null)
    and not {kept_by_key}
    and not {kept_by_follower}
    and {replaced_in_lane}
    and not {kept_by_lane}
    and not {kept_by_cursor}

-- name: prunable
select r.id from rota_run r
where r.job >= :job and (r.job, r.id) <= (:job, :newest) and {part unneeded}
order by r.job, r.id limit :limit;

-- name: prunable_among
-- Those of these, which are locked, that are prunable still: by the conditions of the look that found them. How many newer
-- runs there are is not asked again: they become fewer only by being deleted, which might have been later.
select r.id from {rows id id} join rota_run r on r.id = rows.id where {part unneeded};

-- name: kept_runs
-- Runs that are to be purged: of each, why it is kept, if it is. By the same conditions as `prunable`, and the newest
-- success of a job and of a lane stay, from which expectations count. The next success is mostly the next run in the index.
-- And those that ended since the oldest signal that waits, or up to a minute before it, because signals may be numbered in
-- another order than they were written: whoever is told of an end reads the run.
select r.id, r.parent_id, case
    when r.state is null then 'live'
    when r.finished_at > :now - :keep_for then 'young'
    when (select 1 from rota_run p where p.id = r.parent_id limit 1) is not null then 'replica'
    when r.finished_at > (select at from rota_signal order by no limit 1) - 60000000
        and (select 1 from rota_listener l where l.job in (r.job, '*') limit 1) is not null then 'signal'
    when {kept_by_key} then 'key'
    when {kept_by_follower} then 'follower'
    when {replaced_in_lane} is not true or {kept_by_lane} or {kept_by_cursor} then 'schedule' -- it may be null
    when r.state = 'succeeded' and (select 1 from rota_run n
        where n.job >= r.job and n.job <= r.job and n.id > r.id and n.state = 'succeeded'
        order by n.job, n.id limit 1) is null then 'success'
    when r.state = 'succeeded' and r.plan_time is not null and r.retry_of is null
        and (select 1 from rota_schedule s where s.id = r.schedule_id and s.deleted_at is null limit 1) is not null
        and (select 1 from rota_run n where n.schedule_id = r.schedule_id and n.scope_kind = r.scope_kind
            and n.scope_id = r.scope_id and n.retry_of is null and n.plan_time > r.plan_time and n.state = 'succeeded'
            limit 1) is null then 'success'
    end
from {rows id id} join rota_run r on r.id = rows.id
order by r.id;

-- name: lock_prunable
-- Skips what another janitor, or somebody who comes to follow it, is at.
select r.id, r.need from {rows id id} join rota_run r on r.id = rows.id where r.state is not null {for_update_skip r};

-- name: drop_attempts
delete from rota_attempt where run_id in (select rows.id from {rows id id});

-- name: drop_runs
-- Returns what counts for the statistics of their job, and what the ledger of their schedule has to know.
delete from rota_run where id in (select rows.id from {rows id id})
returning job, state, created_at, started_at, finished_at,
    schedule_id, scope_kind, scope_id, plan_time, covers_from, missed_count, state, reason,
    backfilled, retry_of, id;

-- name: keys_after
-- In turn, and whether nobody holds it any more: mostly somebody does, who waits.
select u.key, u.run_id, case when u.held_until < :now
    and (u.once = 0 and (r.id is null or r.state is not null) or u.once = 1 and r.state <> 'succeeded') then 1 else 0 end
from (select key, run_id, held_until, once from rota_unique where key > :after order by key limit :limit) as u
left join rota_run r on r.id = u.run_id
order by u.key;

-- name: drop_keys
-- By key and holder: one that was taken over meanwhile has a new holder, and stays. Waits for nobody, and so cannot
-- deadlock with an enqueue that holds some of these keys.
-- unlocked: it skips those that somebody has, and their holders are looked at again when they are locked.
delete from rota_unique where key in (
    select u.key from {rows key text, run_id id} join rota_unique u on u.key = rows.key and u.run_id = rows.run_id
    where not exists (select 1 from rota_run r where r.id = u.run_id and r.state is null)
    {for_update_skip u})
returning key;

-- name: silent_workers
select id from rota_worker where seen_at < :now - :silence limit 1;

-- name: drop_silent_workers
delete from rota_worker where seen_at < :now - :silence;
