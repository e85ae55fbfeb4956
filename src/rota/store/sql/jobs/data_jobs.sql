-- Jobs that are made by a command and not by code.

-- name: data_jobs_seen
-- A change is a new version, a drop is a mark. By the time alone, one that is committed late would not be seen.
select count(*), count(dropped_at), coalesce(max(declared_at), 0) from rota_job where owner <> 'code';

-- name: data_job_versions
-- Runs of one that was dropped, enqueued at the same moment, are done all the same.
select name, version from rota_job
where owner <> 'code' and kind in ('http', 'command') and (dropped_at is null or dropped_at > :now - :dropped_since);

-- name: data_job_definitions
select j.definition from {rows name text, version int}
join rota_job j on j.name = rows.name and j.version = rows.version;

-- name: job_versions
select version, owner, dropped_at, definition from rota_job where name = :job order by version desc;

-- name: taken_jobs
select j.name from {rows name text} join rota_job j on j.name = rows.name
where j.owner <> 'code' and j.dropped_at is null limit 1;

-- name: add_data_job
insert into rota_job (name, version, definition, declared_at, kind, owner)
values (:job, :version, :definition, :now, :kind, :owner)
on conflict (name, version) do nothing
returning version;

-- name: hold_jobs
-- Those of the jobs that are there; none of them is dropped before this transaction has ended. One that is being dropped
-- is waited for, and looked at again: `lock_job_to_drop` has all its rows.
select j.name from {rows name text} join rota_job j on j.name = rows.name
where j.dropped_at is null
    and j.version = (select max(version) from rota_job where name = rows.name and dropped_at is null)
order by j.name
{for_key_share j};

-- name: lock_job_to_drop
-- Stronger than `lock_job`: whoever enqueues a run of it (`hold_jobs`) has committed, or waits.
select version from rota_job where name = :job order by version
{for_update};

-- name: drop_data_job
update rota_job set dropped_at = :now where name = :job and dropped_at is null;

-- name: job_uses
-- A run of a pipeline needs the job of the part that it is at.
select (select count(*) from rota_schedule where job = :job and deleted_at is null),
    (select count(*) from rota_ready where job = :job)
    + (select count(*) from rota_lease l join rota_run r on r.id = l.run_id left join rota_stage s on s.run_id = r.id
        where coalesce(s.job, r.job) = :job)
    + (select count(*) from rota_outside o join rota_run r on r.id = o.run_id left join rota_stage s on s.run_id = r.id
        where coalesce(s.job, r.job) = :job)
    + (select count(*) from rota_conduct c join rota_run r on r.id = c.run_id where r.job = :job);
