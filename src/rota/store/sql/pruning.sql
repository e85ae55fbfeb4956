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
select id from rota_run
where job = :job and id <= :newest and state is not null and finished_at < :now - :keep_for
order by id limit :limit
{for_update_skip};

-- name: drop_attempts
delete from rota_attempt where run_id in (select rows.id from {rows id id});

-- name: drop_runs
delete from rota_run where id in (select rows.id from {rows id id}) returning id;

-- name: drop_stale_keys
-- By key and holder: one that is taken over while this waits for its row has a new holder, and stays.
delete from rota_unique where (key, run_id) in (
    select u.key, u.run_id from rota_unique u left join rota_run r on r.id = u.run_id
    where u.held_until < :now
        and (u.once = 0 and (r.id is null or r.state is not null) or u.once = 1 and r.state <> 'succeeded')
    limit :limit)
returning key;

-- name: drop_silent_workers
delete from rota_worker where seen_at < :now - :silence;
