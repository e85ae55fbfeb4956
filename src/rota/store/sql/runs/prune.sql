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

-- name: prunable
-- Not while a key still leads to the run: whoever repeats the enqueue gets an answer that names it. Nor the newest
-- finished run of a schedule's lane, unless its provider has not named the scope for long, or one that planning has
-- not looked at since it ended; nor one that a live run follows, and may ask for its result; nor one that failed at what is
-- to be done once, before its key is free: without the run, the key would say that it was done. `limit 1` keeps each look
-- a probe: PostgreSQL may answer an `exists` beside an `or` from a hash of the whole table.
select r.id from rota_run r
where r.job >= :job and (r.job, r.id) <= (:job, :newest) and r.state is not null and r.finished_at < :now - :keep_for
    and (r.parent_id is null or (select 1 from rota_run p where p.id = r.parent_id limit 1) is null)
    and not exists (select 1 from rota_unique u where u.run_id = r.id
        and (u.held_until > :now or u.once = 1 and r.state <> 'succeeded'))
    and not exists (
        select 1 from rota_followed f join rota_run c on c.id = f.run_id where f.after_id = r.id and c.state is null)
    and (r.schedule_id is null or r.retry_of is not null or r.state = 'skipped'
        or (select 1 from rota_schedule s where s.id = r.schedule_id and s.deleted_at is null limit 1) is null
        or exists (
            select 1 from rota_run n where n.schedule_id = r.schedule_id and n.scope_kind = r.scope_kind
                and n.scope_id = r.scope_id and n.retry_of is null
                and n.plan_time > coalesce(r.plan_time, r.created_at) and n.state is not null and n.state <> 'skipped')
        or (r.plan_time is null and exists (
            select 1 from rota_run n where n.schedule_id = r.schedule_id and n.scope_kind = r.scope_kind
                and n.scope_id = r.scope_id and n.retry_of is null and n.plan_time is null and n.id > r.id
                and n.state is not null and n.state <> 'skipped'))
        or (1 = (
                select 1 from rota_scope_span p
                join rota_schedule_now s on s.id = p.schedule_id and s.provider is not null
                where p.schedule_id = r.schedule_id and p.scope_kind = r.scope_kind and p.scope_id = r.scope_id limit 1)
            and not exists (
                select 1 from rota_scope_span p where p.schedule_id = r.schedule_id and p.scope_kind = r.scope_kind
                    and p.scope_id = r.scope_id and (p.until is null or p.until >= :now - :keep_for))))
    and not exists (
        select 1 from rota_lane_run m join rota_schedule s on s.id = m.schedule_id and s.deleted_at is null
        where m.schedule_id = r.schedule_id and m.scope_kind = r.scope_kind and m.scope_id = r.scope_id
            and m.run_id = r.id)
    and not exists (
        select 1 from rota_schedule_now s where s.id = r.schedule_id and s.deleted_at is null
            and s.open_plan = r.plan_time and r.retry_of is null)
order by r.job, r.id limit :limit;

-- name: lock_prunable
-- Skips what another janitor is at. Still final: a run that was pruned meanwhile may have been enqueued anew.
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
