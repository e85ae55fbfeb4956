-- Old rows away. Every statement takes a bounded bite, so that no janitor holds locks for long.

-- name: jobs_with_runs
-- One index probe per job, however many runs there are.
with recursive names(job) as (
    select min(job) from rota_run
    union all
    select (select min(job) from rota_run where job > names.job) from names where names.job is not null)
select job from names where job is not null;

-- name: newest_kept
select id from rota_run where job = :job order by id desc limit 1 offset :keep;

-- name: prunable
-- Not while a key still leads to the run: whoever repeats the enqueue gets an answer that names it.
select r.id from rota_run r
where r.job = :job and r.id <= :newest and r.state is not null and r.finished_at < :now - :keep_for
    and not exists (select 1 from rota_unique u where u.run_id = r.id and u.held_until > :now)
order by r.id limit :limit;

-- name: lock_prunable
-- Skips what another janitor is at. Still final: a run that was pruned meanwhile may have been enqueued anew.
select r.id from {rows id id} join rota_run r on r.id = rows.id where r.state is not null {for_update_skip r};

-- name: drop_attempts
delete from rota_attempt where run_id in (select rows.id from {rows id id});

-- name: drop_runs
delete from rota_run where id in (select rows.id from {rows id id}) returning id;

-- name: stale_keys
select u.key, u.run_id from rota_unique u left join rota_run r on r.id = u.run_id
where u.held_until < :now
    and (u.once = 0 and (r.id is null or r.state is not null) or u.once = 1 and r.state <> 'succeeded')
limit :limit;

-- name: drop_keys
-- By key and holder: one that was taken over meanwhile has a new holder, and stays. Waits for nobody, and so cannot
-- deadlock with an enqueue that holds some of these keys.
delete from rota_unique where key in (
    select u.key from {rows key text, run_id id} join rota_unique u on u.key = rows.key and u.run_id = rows.run_id
    where not exists (select 1 from rota_run r where r.id = u.run_id and r.state is null)
    {for_update_skip u})
returning key;

-- name: silent_workers
select id from rota_worker where seen_at < :now - :silence limit 1;

-- name: drop_silent_workers
delete from rota_worker where seen_at < :now - :silence;
