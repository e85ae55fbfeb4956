-- Pipelines: the part that a run is at, and the job that does it.

-- name: put_stages
insert into rota_stage (run_id, pipeline, plan, no, step, job, job_version, queue)
select r.id, r.job, rows.plan, rows.no, rows.step, rows.job, rows.job_version, rows.queue
from {rows id id, plan text, no int, step text, job text, job_version int, queue text}
join rota_run r on r.id = rows.id
where true
on conflict (run_id) do update set no = excluded.no, step = excluded.step, job = excluded.job,
    job_version = excluded.job_version, queue = excluded.queue;

-- name: ready_for_parts
-- Workers that know the part's job may claim it. While the pipeline is paused, it waits under the pipeline's own name,
-- and nobody claims it.
-- unlocked: the rows are new, or of leases that this transaction holds; nobody else has them.
update rota_ready set queue = s.queue,
    job = case when p.name is null then s.job else s.pipeline end,
    job_version = case when p.name is null then s.job_version else rota_ready.job_version end
from {rows id id} join rota_stage s on s.run_id = rows.id
left join rota_pause p on p.kind = 'job' and p.name = s.pipeline
where rota_ready.run_id = s.run_id
returning rota_ready.queue;

-- name: plans_of
select s.run_id, s.plan from {rows id id} join rota_stage s on s.run_id = rows.id;

-- name: untouched_plan
-- Fence 0: a repetition must not move a run back that was claimed since.
select s.plan from rota_stage s join rota_ready w on w.run_id = s.run_id and w.fence = 0 where s.run_id = :id;

-- name: stages_of
-- The columns of `_Stage` in store/jobs/pipeline_claims.py, in their order.
select s.run_id, s.plan, s.step, s.job, s.job_version, s.pipeline
from {rows id id} join rota_stage s on s.run_id = rows.id;

-- name: lock_pauses
-- A resume waits for this lock until the runs that were claimed meanwhile are put back.
select p.name from {rows name text} join rota_pause p on p.kind = 'job' and p.name = rows.name {for_key_share p};

-- name: unpark
-- unlocked: the part that a run is at does not change while it is in rota_ready.
update rota_ready set job = s.job, job_version = s.job_version from rota_stage s
where s.pipeline = :job and rota_ready.run_id = s.run_id and rota_ready.job = :job;

-- name: stage_now
select s.step, s.job, s.queue, s.no, s.plan from rota_stage s where s.run_id = :id;

-- name: advanced_before
-- Recognizes a repeated end of a part after an unknown commit, whatever became of the run since.
select rows.id, rows.fence from {rows id id, fence int}
join rota_event e on e.kind = 'run' and e.subject = cast(rows.id as text) and e.type = 'advanced'
    and e.fence = rows.fence;

-- name: pipelines_with
-- Versions of pipelines whose definition may name a job, in their order.
select name, dropped_at, definition from rota_job
where kind = 'pipeline' and definition like :pattern order by name, version;

-- name: live_stages_with
select s.run_id, s.plan, s.no, case when w.run_id is null then 1 else 0 end
from rota_stage s {then rota_run r | r.id = s.run_id} left join rota_ready w on w.run_id = s.run_id
where r.state is null and s.plan like :pattern order by s.run_id;

-- name: drop_stages
delete from rota_stage where run_id in (select rows.id from {rows id id});
