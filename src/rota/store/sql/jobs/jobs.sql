-- Operations on a job as a whole, its facts, and its statistics.

-- name: pause_job
-- Idempotent: a second pause keeps the time, actor and reason of the first.
insert into rota_pause (kind, name, paused_at, paused_by, reason) values ('job', :job, :now, :actor, :reason)
on conflict (kind, name) do nothing
returning name;

-- name: cancel_job
-- A cancel holds the job as a pause does, so that older programs keep to it, too. Of a job that is paused, the time,
-- actor and reason of the pause are kept beside it.
insert into rota_pause (kind, name, paused_at, paused_by, reason, cancelled_at, cancelled_by, cancel_reason, cancel_act)
values ('job', :job, :now, :actor, :reason, :now, :actor, :reason, :act)
on conflict (kind, name) do update set cancelled_at = excluded.cancelled_at, cancelled_by = excluded.cancelled_by,
    cancel_reason = excluded.cancel_reason, cancel_act = excluded.cancel_act;

-- name: cancel_of_job
select cancel_act from rota_pause where kind = 'job' and name = :job and cancelled_at is not null;

-- name: resume_job
delete from rota_pause where kind = 'job' and name = :job returning name;

-- name: job_facts
-- One statement, and so one snapshot: a run that is being claimed is counted once.
with live(job, running, since, waiting, due) as (
    select coalesce(s.pipeline, w.job), 0, cast(null as bigint), count(*), min(w.run_at)
    from rota_ready w left join rota_stage s on s.run_id = w.run_id group by coalesce(s.pipeline, w.job)
    union all
    select r.job, count(*), max(l.claimed_at), 0, null
    from rota_lease l {then rota_run r | r.id = l.run_id} group by r.job
    union all
    select r.job, count(*), max(o.claimed_at), 0, null
    from rota_outside o {then rota_run r | r.id = o.run_id} group by r.job),
counted as (
    select job, sum(running) as running, max(since) as since, sum(waiting) as waiting, min(due) as due
    from live group by job)
select rows.job, p.paused_at, p.paused_by, p.reason, p.cancelled_at, p.cancelled_by, p.cancel_reason,
    (select min(j.declared_at) from rota_job j where j.name = rows.job and j.dropped_at is null),
    (select max(j.declared_at) from rota_job j where j.name = rows.job and j.dropped_at is null), q.definition, :now,
    c.running, c.since, c.waiting, c.due,
    (select min(s.next_plan) from rota_schedule_now s
     where s.job = rows.job and s.enabled = 1 and s.paused_at is null and s.job_paused = 0 and s.deleted_at is null)
from {rows job text}
left join rota_pause p on p.kind = 'job' and p.name = rows.job
left join rota_quota q on q.scope_kind = '' and q.scope_id = 'job:' || rows.job
left join counted c on c.job = rows.job;

-- part: newest_of
-- A job's newest runs. Pinned plan: the job is bounded from both sides instead of being equal. With equality PostgreSQL
-- would drop the job from the order, and might walk the runs of all jobs by their id. So only the index on (job, id) has
-- the order.
select n.id, n.job, n.state, n.parent_id, n.started_at, n.scope_kind, n.scope_id from rota_run n
where n.job >= rows.job and n.job <= rows.job
order by n.job desc, n.id desc limit :walk

-- name: newest_ended
-- The newest ended run among the newest :walk.
select rows.job, r.state, r.started_at, r.finished_at
from {rows job text}
join rota_run r on r.id = (
    select w.id from (
        {part newest_of}) as w
    where w.state is not null and w.state <> 'skipped' and w.parent_id is null
    order by w.job desc, w.id desc limit 1);

-- name: newest_begun
-- For jobs whose newest run ended before it began: when an older one began, among as many as above.
select rows.job, (
    select max(w.started_at) from (
        {part newest_of}) as w
    where w.parent_id is null)
from {rows job text};

-- name: newest_run
select id, state from rota_run
where job >= :job and job <= :job and (state is null or state <> 'skipped') and parent_id is null
order by job desc, id desc limit 1;

-- name: newest_run_within
-- Of one scope, among the job's newest :walk.
select r.id, r.state
from {rows job text}
join rota_run r on r.id = (
    select w.id from (
        {part newest_of}) as w
    where w.scope_kind = :kind and w.scope_id = :name and (w.state is null or w.state <> 'skipped')
        and w.parent_id is null
    order by w.job desc, w.id desc limit 1);

-- name: last_waiting
select run_id from rota_ready order by run_id desc limit 1;

-- name: waiting_of
select w.run_id from rota_ready w left join rota_stage s on s.run_id = w.run_id
where coalesce(s.pipeline, w.job) = :job and w.run_id > :after and w.run_id <= :last order by w.run_id limit :limit;

-- name: running_of
-- Crossed: SQLite would otherwise begin with all runs that the job ever had, here and below.
select l.run_id from rota_lease l {then rota_run r | r.id = l.run_id}
where r.job = :job and l.cancel_at is null
union all
select o.run_id from rota_outside o {then rota_run r | r.id = o.run_id}
where r.job = :job and o.cancel_at is null
union all
select c.run_id from rota_conduct c {then rota_run r | r.id = c.run_id}
where r.job = :job and c.cancel_at is null
order by 1;

-- name: live_of
-- Runs of the job that nobody has asked to stop, claimed ones first. One statement, and so one snapshot.
select run_id, claimed from (
    select l.run_id, 1 as claimed from rota_lease l {then rota_run r | r.id = l.run_id}
    where r.job = :job and l.cancel_at is null
    union all
    select o.run_id, 1 from rota_outside o {then rota_run r | r.id = o.run_id}
    where r.job = :job and o.cancel_at is null
    union all
    select c.run_id, 1 from rota_conduct c {then rota_run r | r.id = c.run_id}
    where r.job = :job and c.cancel_at is null
    union all
    select w.run_id, 0 from rota_ready w left join rota_stage s on s.run_id = w.run_id
    where coalesce(s.pipeline, w.job) = :job) as live
order by claimed desc, run_id limit :limit;

-- part: older_tries
-- Attempts of the newest :walk of a job's runs before one: by the index on (job, id), and for each run by the key of its
-- attempts. A success under the first fence had no attempt before it; only live runs have leases.
with older as materialized (
    select id, state, fence, claimed_at from rota_run
    where (job, id) < (:job, :before) and job >= :job order by job desc, id desc limit :walk),
tries as (
    select a.run_id, a.fence
    from older {then rota_attempt a | a.run_id = older.id}
    where older.state is null or older.state <> 'succeeded' or older.fence > 1
    union all
    select id, fence from older where state = 'succeeded' and claimed_at is not null
    union all
    select l.run_id, l.fence from older {then rota_lease l | l.run_id = older.id} where older.state is null
    union all
    select o.run_id, o.fence from older {then rota_outside o | o.run_id = older.id} where older.state is null)

-- name: executions
{part older_tries}
select run_id, fence from tries order by run_id desc, fence desc limit :limit offset :offset;

-- name: count_executions
-- How many there are, and the run that the next ones come after, if there may be any.
{part older_tries}
select (select count(*) from tries), (select id from older order by id desc limit 1 offset :walk - 1);

-- name: count_between
-- Runs of the job after one, up to another.
select count(*) from rota_run where (job, id) > (:job, :after) and (job, id) <= (:job, :last);

-- name: newest_until
select id from rota_run where (job, id) <= (:job, :until) and job >= :job order by job desc, id desc limit 1;

-- name: is_kept
select 1 from rota_run where id = :id;

-- name: ids_of_job_between
select id from rota_run where (job, id) >= (:job, :first) and (job, id) <= (:job, :last) order by job, id;

-- name: pruned_runs
select up_to, runs from rota_pruned where job = :job and up_to >= :after and up_to <= :last;

-- name: next_kept
-- The job's next run after each of these, which are gone.
select rows.id, (select k.id from rota_run k where k.job = :job and k.id > rows.id order by k.job, k.id limit 1)
from {rows id id};

-- name: first_kept
select id from rota_run where job >= :job and job <= :job order by job, id limit 1;

-- name: note_pruned
insert into rota_pruned (job, up_to, runs) select :job, rows.up_to, rows.runs from {rows up_to id, runs bigint} where true
on conflict (job, up_to) do update set runs = rota_pruned.runs + excluded.runs;

-- name: forget_pruned
delete from rota_pruned where job = :job and up_to > :nil and up_to <= :first returning runs;

-- name: newest_heartbeat
select :now, max(seen_at) from rota_worker;

-- name: taken_away
select :now, (select cast(value as bigint) from rota_setting where name = 'leases_taken_away');

-- name: note_taken_away
insert into rota_setting (name, value) values ('leases_taken_away', cast(cast(:leases as bigint) as text))
on conflict (name) do update
set value = cast(cast(rota_setting.value as bigint) + cast(excluded.value as bigint) as text);

-- name: marks_of_jobs
-- Of all jobs that have runs, as `jobs_with_runs` finds them.
with recursive names(job) as (
    select cast('' as text)
    union all
    select (select r.job from rota_run r where r.job > names.job order by r.job limit 1)
    from names where names.job is not null)
select names.job, coalesce(m.counted, :nil) from names left join rota_job_mark m on m.job = names.job where names.job > '';

-- name: uncounted_of_jobs
-- As `job_counts`, of all jobs at once: runs that are not counted yet, by the index on (job, id). Crossed: the jobs come
-- first.
select state, length(digits), substr(digits, 1, 2), count(*), sum(busy), min(created_at), max(began)
from (
    select state, created_at, began, busy, cast(busy as text) as digits
    from (
        select state, created_at,
            case when finished_at > started_at then finished_at - started_at when started_at is not null then 0 end
                as busy,
            coalesce(started_at, case when state = 'expired' then finished_at end) as began
        from (
            select r.state, r.created_at, r.started_at, r.finished_at
            from {rows job text, mark id} cross join rota_run r where r.job = rows.job and r.id > rows.mark
            union all
            select r.state, r.created_at, r.started_at, r.finished_at
            from rota_uncounted u cross join rota_run r where r.id = u.run_id) as uncounted
        where state is not null) as timed) as ended
group by state, length(digits), substr(digits, 1, 2);

-- name: all_stats
select stats from rota_job_stats;

-- name: job_names
select distinct name from rota_job where dropped_at is null order by name;

-- name: jobs_after
-- Stored jobs, and those that the caller declares (without a definition), in the order of the database.
select name, max(definition) from (
    select * from (
        select j.name, j.definition from rota_job j
        where j.name > :after
            and j.version = (select max(version) from rota_job where name = j.name and dropped_at is null)
        order by j.name, j.version limit :limit) as stored
    union all
    select rows.name, null from {rows name text} where rows.name > :after) as known
group by name order by name limit :limit;

-- name: job_marks
-- Without definitions, which are long: whoever knows a mark knows what it stood for.
select name, version, declared_at from rota_job where dropped_at is null order by name, version;

-- name: queues_of_jobs
select rows.name, rows.version, {queue_of_job} from {rows name text, version int}
join rota_job j on j.name = rows.name and j.version = rows.version;

-- name: job_counts
-- Of each of these jobs, runs that are not counted yet, grouped by state and duration (its number of digits, and the first
-- two of them), and the stored statistics of those that are. Crossed: the jobs come first.
with asked(job, mark) as (
    select rows.job, coalesce(m.counted, :nil) from {rows job text} left join rota_job_mark m on m.job = rows.job)
select job, state, length(digits), substr(digits, 1, 2), count(*), sum(busy), min(created_at), max(began), null as stats
from (
    select job, state, created_at, began, busy, cast(busy as text) as digits
    from (
        select job, state, created_at,
            case when finished_at > started_at then finished_at - started_at when started_at is not null then 0 end
                as busy,
            coalesce(started_at, case when state = 'expired' then finished_at end) as began
        from (
            select r.job, r.state, r.created_at, r.started_at, r.finished_at
            from asked cross join rota_run r where r.job = asked.job and r.id > asked.mark
            union all
            select asked.job, r.state, r.created_at, r.started_at, r.finished_at
            from asked cross join rota_uncounted u cross join rota_run r
            where u.job = asked.job and r.id = u.run_id) as uncounted
        where state is not null) as timed) as ended
group by job, state, length(digits), substr(digits, 1, 2)
union all
select s.job, null, null, null, null, null, null, null, s.stats
from asked cross join rota_job_stats s where s.job = asked.job;

-- name: get_mark
select counted from rota_job_mark where job = :job;

-- name: set_mark
insert into rota_job_mark (job, counted) values (:job, :mark)
on conflict (job) do update set counted = excluded.counted;

-- name: next_to_count
-- Pinned plan: the pair is compared as a row value, so that only the index on (job, id) has this order.
select id, state, created_at, started_at, finished_at, schedule_id, scope_kind, scope_id, plan_time, retry_of
from rota_run where (job, id) > (:job, :mark) and (job, id) <= (:job, :until)
order by job, id limit :limit;

-- name: uncounted_after
-- In turn, not only those that have ended: to search for these would walk over a great many that have not. Late runs
-- are counted when they are pruned.
select u.run_id, r.state, r.created_at, r.started_at, r.finished_at, r.schedule_id, r.scope_kind, r.scope_id, r.plan_time,
    r.retry_of, u.late
from (
    select job, run_id, late from rota_uncounted where (job, run_id) > (:job, :after) and job <= :job
    order by job, run_id limit :limit) as u
left join rota_run r on r.id = u.run_id
order by u.run_id;

-- name: note_uncounted
insert into rota_uncounted (job, run_id, late)
select rows.job, rows.id, rows.late from {rows job text, id id, late int} where true
on conflict (job, run_id) do nothing;

-- name: forget_uncounted
delete from rota_uncounted where (job, run_id) in (select rows.job, rows.id from {rows job text, id id})
returning run_id;

-- name: note_skips
insert into rota_skip (schedule_id, scope_kind, scope_id, run_id, job)
select rows.schedule_id, rows.kind, rows.name, rows.id, rows.job
from {rows schedule_id id, kind text, name text, id id, job text} where true
on conflict (schedule_id, scope_kind, scope_id, run_id) do nothing;

-- name: mark_surplus
-- locked by: lock_stats
update rota_skip set surplus = 1
where surplus = 0 and (schedule_id, scope_kind, scope_id, run_id) in (
    select schedule_id, scope_kind, scope_id, run_id from (
        select k.schedule_id, k.scope_kind, k.scope_id, k.run_id, row_number() over (
            partition by k.schedule_id, k.scope_kind, k.scope_id order by k.run_id desc) as place
        from {rows schedule_id id, kind text, name text}
        join rota_skip k on k.schedule_id = rows.schedule_id and k.scope_kind = rows.kind and k.scope_id = rows.name
        ) as skips
    where place > :keep);

-- name: forget_skips
delete from rota_skip where (schedule_id, scope_kind, scope_id, run_id) in (
    select rows.schedule_id, rows.kind, rows.name, rows.id from {rows schedule_id id, kind text, name text, id id});

-- name: lock_stats
-- A lock: janitors fold into a job's statistics one after the other. The row of its oldest days is what they lock; the
-- update changes nothing (where false), but on PostgreSQL it locks the row.
insert into rota_job_stats (job, day, stats) values (:job, :day, '{}')
on conflict (job, day) do update set stats = excluded.stats where false;

-- name: stats_days
select day from rota_job_stats where job = :job;

-- name: stats_of_days
select s.day, s.stats from {rows job text, day int} join rota_job_stats s on s.job = rows.job and s.day = rows.day;

-- name: stats_of_jobs
select s.job, s.stats from {rows job text} join rota_job_stats s on s.job = rows.job;

-- name: save_stats
insert into rota_job_stats (job, day, stats)
select rows.job, rows.day, rows.stats from {rows job text, day int, stats text} where true
on conflict (job, day) do update set stats = excluded.stats;

-- name: drop_stats
delete from rota_job_stats where (job, day) in (select rows.job, rows.day from {rows job text, day int});
