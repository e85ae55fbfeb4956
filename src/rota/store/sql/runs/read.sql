-- Questions about runs, attempts and jobs.

-- name: get_run
select {run_columns} from rota_run_now where id = :id;

-- name: copies_of
select r.id, r.job, r.job_version, r.queue, r.priority, r.scope_kind, r.scope_id, r.key, r.payload, r.tags, r.metadata,
    r.overrides, r.max_attempts, r.on_lost, r.retry_of, r.origin_id
from {rows id id} join rota_run r on r.id = rows.id;

-- name: metadata_of
select r.id, r.metadata from {rows id id} join rota_run r on r.id = rows.id;

-- name: runs_by_prefix
select id from rota_run where id >= :low and id <= :high order by id limit 6;

-- name: own_runs_by_prefix
-- The limit inside bounds the work, whoever's runs those are.
select near.id from (
    select id, scope_kind, scope_id from rota_run where id >= :low and id <= :high order by id desc limit :looked_at
) as near
where near.scope_kind = :scope_kind and near.scope_id = :scope_id limit :most;

-- name: newest_ids
select id from rota_run order by id desc limit :limit;

-- name: attempts
-- A success is told by the run's own row. One that several workers did was claimed by nobody: its replicas have attempts.
select no, fence, worker_id, claimed_at, cast(null as bigint), started_at, ended_at,
    case when outcome = 'snoozed' and exists (
        select 1 from rota_event e where e.kind = 'run' and e.subject = cast(a.run_id as text)
            and e.type = 'advanced' and e.fence = a.fence) then 'succeeded' else outcome end,
    error, measures
from rota_attempt a where run_id = :id
union all
select attempt, fence, worker_id, claimed_at, cast(null as bigint), started_at, finished_at, state, null, measures
from rota_run where id = :id and state = 'succeeded' and claimed_at is not null
union all
select attempt, fence, worker_id, claimed_at, expires_at, null, null, null, null, null
from rota_lease where run_id = :id
union all
select attempt, fence, worker_id, claimed_at, deadline, began_at, null, null, null, null
from rota_outside where run_id = :id
order by 2;

-- name: attempts_of
-- As above, of several runs. Crossed, here and below: each run's own rows are looked up.
with asked(id) as (select rows.id from {rows id id})
select a.run_id, a.no, a.fence, a.worker_id, a.claimed_at, cast(null as bigint), a.started_at, a.ended_at,
    case when a.outcome = 'snoozed' and exists (
        select 1 from rota_event e where e.kind = 'run' and e.subject = cast(a.run_id as text)
            and e.type = 'advanced' and e.fence = a.fence) then 'succeeded' else a.outcome end,
    a.error, a.measures
from asked cross join rota_attempt a where a.run_id = asked.id
union all
select r.id, r.attempt, r.fence, r.worker_id, r.claimed_at, cast(null as bigint), r.started_at, r.finished_at, r.state,
    null, r.measures
from asked cross join rota_run r where r.id = asked.id and r.state = 'succeeded' and r.claimed_at is not null
union all
select l.run_id, l.attempt, l.fence, l.worker_id, l.claimed_at, l.expires_at, null, null, null, null, null
from asked cross join rota_lease l where l.run_id = asked.id
union all
select o.run_id, o.attempt, o.fence, o.worker_id, o.claimed_at, o.deadline, o.began_at, null, null, null, null
from asked cross join rota_outside o where o.run_id = asked.id;

-- name: cancel_facts
select r.job, r.state, j.definition
from rota_run r left join rota_job j on j.name = r.job and j.version = r.job_version
where r.id = :id;

-- name: cancel_policies
select r.id, j.definition from {rows id id} join rota_run r on r.id = rows.id
left join rota_job j on j.name = r.job and j.version = r.job_version;

-- name: save_job
-- A version that was made by a command and dropped is free to be used.
insert into rota_job (name, version, definition, declared_at, kind) values (:name, :version, :definition, :now, :kind)
on conflict (name, version) do update set definition = excluded.definition, declared_at = excluded.declared_at,
    kind = excluded.kind, owner = 'code', dropped_at = null
where (rota_job.owner = 'code' and rota_job.definition <> excluded.definition) or rota_job.dropped_at is not null
returning name;

-- name: newest_job
select definition from rota_job where name = :name and dropped_at is null order by version desc limit 1;

-- name: newest_jobs
select j.definition from rota_job j
where j.version = (select max(version) from rota_job where name = j.name and dropped_at is null)
order by j.name;

-- name: queue_counts
-- And since when the oldest queued run of each waits. One statement, so that a run that is being claimed is counted once; one
-- branch per hold, each in its own index: the rows themselves are seven times as large.
select queue, sum(running), sum(queued), sum(scheduled), min(oldest)
from (
    select queue, 0 as running, count(*) as queued, 0 as scheduled, min(run_at) as oldest
    from rota_ready where hold = {open} group by queue
    union all
    select queue, 0, count(*), 0, min(run_at) from rota_ready where hold = {limited} group by queue
    union all
    select queue, 0, count(*), 0, min(run_at) from rota_ready where hold = {restricted} group by queue
    union all
    select queue, 0, 0, count(*), null from rota_ready where hold = {open_later} group by queue
    union all
    select queue, 0, 0, count(*), null from rota_ready where hold = {blocked} group by queue
    union all
    select queue, 0, 0, count(*), null from rota_ready where hold = {limited_later} group by queue
    union all
    select queue, 0, 0, count(*), null from rota_ready where hold = {parent} group by queue
    union all
    select queue, 0, 0, count(*), null from rota_ready where hold = {restricted_later} group by queue
    union all
    select r.queue, count(*), 0, 0, null from rota_lease l {then rota_run r | r.id = l.run_id} group by r.queue
    union all
    select r.queue, count(*), 0, 0, null from rota_outside o {then rota_run r | r.id = o.run_id} group by r.queue
) as counts
group by queue order by queue;
