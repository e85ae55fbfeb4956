-- Data jobs: created by a command, not declared in code.

-- name: data_jobs_seen
-- A change is a new version, a drop sets dropped_at. Counted, because the time alone would miss a late commit.
select count(*), count(dropped_at), coalesce(max(declared_at), 0) from rota_job where owner <> 'code';

-- name: data_job_versions
-- Includes recently dropped jobs: workers still do runs that were enqueued at the same moment.
select name, version from rota_job
where owner <> 'code' and kind in ('http', 'command') and (dropped_at is null or dropped_at > :now - :dropped_since);

-- name: data_job_definitions
select j.definition from {rows name text, version int}
join rota_job j on j.name = rows.name and j.version = rows.version;

-- name: newest_of_kind
select j.definition from rota_job j
where j.kind = :kind
    and j.version = (select max(version) from rota_job where name = j.name and dropped_at is null);

-- name: job_versions
-- The columns of `_Version` in store/jobs/data_jobs.py, in their order.
select version, owner, dropped_at, definition from rota_job where name = :job order by version desc;

-- name: dropped_jobs
select name from rota_job group by name having count(dropped_at) = count(*) order by name limit 1000;

-- name: taken_jobs
select j.name from {rows name text} join rota_job j on j.name = rows.name
where j.owner <> 'code' and j.dropped_at is null limit 1;

-- name: add_data_job
insert into rota_job (name, version, definition, declared_at, kind, owner)
values (:job, :version, :definition, :now, :kind, :owner)
on conflict (name, version) do nothing
returning version;

-- name: hold_jobs
-- The jobs that exist, locked (jobs come first in the order of locks) so that none is dropped before this transaction
-- ends. Waits for a concurrent drop, which holds all rows (`lock_job_to_drop`), and then checks dropped_at again. Does
-- not wait for a cancel: a run that it does not see is not begun until the job is resumed.
select j.name, p.cancelled_at from {rows name text} join rota_job j on j.name = rows.name
left join rota_pause p on p.kind = 'job' and p.name = rows.name
where j.dropped_at is null
    and j.version = (select max(version) from rota_job where name = rows.name and dropped_at is null)
order by j.name
{for_key_share j};

-- name: lock_job_to_drop
-- Stronger than `lock_job`: transactions that enqueue runs of it (`hold_jobs`) have committed, or wait.
select version from rota_job where name = :job order by version
{for_update};

-- name: drop_data_job
update rota_job set dropped_at = :now where name = :job and dropped_at is null;

-- name: job_uses
-- A run of a pipeline uses the job of the part that it is at.
select (select count(*) from rota_schedule where job = :job and deleted_at is null),
    (select count(*) from rota_ready where job = :job)
    + (select count(*) from rota_lease l {then rota_run r | r.id = l.run_id} left join rota_stage s on s.run_id = r.id
        where coalesce(s.job, r.job) = :job)
    + (select count(*) from rota_outside o {then rota_run r | r.id = o.run_id} left join rota_stage s on s.run_id = r.id
        where coalesce(s.job, r.job) = :job)
    + (select count(*) from rota_conduct c {then rota_run r | r.id = c.run_id} where r.job = :job);

-- name: pipeline_uses
-- And the pipeline, which is not the job that its ready row or its lease is of.
select count(*) from rota_stage s {then rota_run r | r.id = s.run_id}
where s.pipeline = :job and r.state is null;
