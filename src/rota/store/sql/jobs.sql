-- What is done to a job as a whole, and what is known of it.

-- name: pause_job
-- Paused twice, it is paused since the first time.
insert into rota_pause (kind, name, paused_at, paused_by, reason) values ('job', :job, :now, :actor, :reason)
on conflict (kind, name) do nothing;

-- name: resume_job
delete from rota_pause where kind = 'job' and name = :job returning name;

-- name: job_facts
-- One statement, so that a run that is being claimed is counted once.
with live(job, running, since, waiting, due) as (
    select job, 0, cast(null as bigint), count(*), min(run_at) from rota_ready group by job
    union all
    select r.job, count(*), max(l.claimed_at), 0, null
    from rota_lease l join rota_run r on r.id = l.run_id group by r.job),
counted as (
    select job, sum(running) as running, max(since) as since, sum(waiting) as waiting, min(due) as due
    from live group by job)
select rows.job, p.paused_at, p.paused_by, p.reason, c.running, c.since, c.waiting, c.due,
    (select min(s.next_plan) from rota_schedule s
     where s.job = rows.job and s.enabled = 1 and s.paused_at is null and s.job_paused = 0 and s.deleted_at is null)
from {rows job text}
left join rota_pause p on p.kind = 'job' and p.name = rows.job
left join counted c on c.job = rows.job;

-- name: newest_ended
select rows.job, r.state, r.started_at, r.finished_at
from {rows job text}
join rota_run r on r.id = (
    select n.id from rota_run n where n.job = rows.job and n.state is not null and n.state <> 'skipped'
    order by n.id desc limit 1);

-- name: newest_run
select id, state from rota_run where job = :job and (state is null or state <> 'skipped') order by id desc limit 1;

-- name: last_waiting
select run_id from rota_ready order by run_id desc limit 1;

-- name: waiting_of
select run_id from rota_ready where job = :job and run_id > :after and run_id <= :last order by run_id limit :limit;

-- name: running_of
select l.run_id from rota_lease l join rota_run r on r.id = l.run_id
where r.job = :job and l.cancel_at is null order by l.run_id;

-- name: job_counts
-- Retained runs, counted by state and by how long they took (its number of digits, and the first two of them), and what
-- pruned ones left behind. One statement, so that a run that is being pruned is counted once.
select state, length(digits), substr(digits, 1, 2), count(*), sum(busy), min(created_at), max(began), null as stats
from (
    select state, created_at, began, busy, cast(busy as text) as digits
    from (
        select state, created_at,
            case when finished_at > started_at then finished_at - started_at when started_at is not null then 0 end
                as busy,
            coalesce(started_at, case when state = 'expired' then finished_at end) as began
        from rota_run where job = :job and state is not null) as timed) as ended
group by state, length(digits), substr(digits, 1, 2)
union all
select null, null, null, null, null, null, null, stats from rota_job_stats where job = :job;

-- name: lock_stats
-- Janitors fold into a job's statistics one after the other: the row of its oldest days is their lock.
insert into rota_job_stats (job, day, stats) values (:job, :day, '{}')
on conflict (job, day) do update set stats = excluded.stats where false;

-- name: stats_days
select day from rota_job_stats where job = :job;

-- name: stats_of_days
select s.day, s.stats from {rows job text, day int} join rota_job_stats s on s.job = rows.job and s.day = rows.day;

-- name: stats_of_job
select stats from rota_job_stats where job = :job;

-- name: save_stats
insert into rota_job_stats (job, day, stats)
select rows.job, rows.day, rows.stats from {rows job text, day int, stats text} where true
on conflict (job, day) do update set stats = excluded.stats;

-- name: drop_stats
delete from rota_job_stats where (job, day) in (select rows.job, rows.day from {rows job text, day int});
