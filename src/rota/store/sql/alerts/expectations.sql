-- Expectations of jobs and schedules, their breaches, and the facts that decide about them. Of ended runs, only some of
-- the newest are read.

-- name: expectations
-- The columns of `StoredExpectation`, in their order; as below.
select kind, subject, definition, owner, since, rests from rota_expectation order by kind, subject;

-- name: lock_expectation
-- One watchman at a time opens and closes the breaches of a subject.
select kind, subject, definition, owner, since, rests from rota_expectation
where kind = :kind and subject = :subject
{for_update};

-- name: save_expectation
insert into rota_expectation (kind, subject, definition, owner, since, rests)
values (:kind, :subject, :definition, :owner, :now, :rests)
on conflict (kind, subject) do update set definition = excluded.definition, owner = excluded.owner;

-- name: declare_expectation
-- A declaration does not replace what a person has set.
insert into rota_expectation (kind, subject, definition, owner, since)
values (:kind, :subject, :definition, :owner, :now)
on conflict (kind, subject) do update set definition = excluded.definition
where rota_expectation.owner = excluded.owner and rota_expectation.definition <> excluded.definition;

-- name: drop_expectation
delete from rota_expectation where kind = :kind and subject = :subject and owner = coalesce(:owner, owner)
returning subject;

-- name: expect_anew
update rota_expectation set since = :now where kind = :kind and subject = :subject;

-- name: rest_expectation
-- A disabled job is not late. When it is enabled again, the clock starts from then.
update rota_expectation set rests = :rests, since = case when rests = 1 then :now else since end
where kind = :kind and subject = :subject and rests <> :rests;

-- name: all_breaches
select kind, subject, what, since, details from rota_breach order by kind, subject, what;

-- name: breaches_of
select what from rota_breach where kind = :kind and subject = :subject;

-- name: open_breaches
-- The primary key decides a race: only the transaction that inserts a breach gets it back, and signals it.
insert into rota_breach (kind, subject, what, since, details)
select cast(:kind as text), cast(:subject as text), rows.what, rows.since, rows.details
from {rows what text, since bigint, details text} where true
on conflict (kind, subject, what) do nothing
returning what;

-- name: close_breaches
delete from rota_breach
where kind = :kind and subject = :subject and what in (select rows.what from {rows what text})
returning what, since, details;

-- name: signal_breaches
insert into rota_signal (at, type, kind, subject, job, schedule, details)
select :now, rows.type, rows.kind, rows.subject, rows.job, rows.schedule, rows.details
from {rows type text, kind text, subject text, job text, schedule text, details text}
where exists (select 1 from rota_listener n where n.job = rows.job or n.job = '*')
returning no;

-- name: paused_of_jobs
select rows.job from {rows job text} join rota_pause p on p.kind = 'job' and p.name = rows.job;

-- name: expected_schedules
select s.name, s.id, s.job, s.definition, s.enabled, s.paused_at, s.job_paused, c.next_plan, c.awaits
from {rows name text} join rota_schedule s on s.name = rows.name and s.deleted_at is null
join rota_cursor c on c.no = s.cursor_no;

-- name: job_of_schedule
select job from rota_schedule where name = :name and deleted_at is null;

-- name: late_to_begin
-- The runs of each job that have been due longest. A run that waited for others is due since its release.
-- Pinned plan: the joins here and below are crossed so that SQLite takes the tables in this order, live runs first,
-- never the history of a job.
with asked as materialized (select rows.job, rows.before from {rows job text, before bigint})
select job, run_id, run_at, (
    select max(e.at) from rota_event e
    where e.kind = 'run' and e.subject = cast(late.run_id as text) and e.type = 'released')
from (
    select asked.job, w.run_id, w.run_at,
        row_number() over (partition by asked.job order by w.run_at, w.run_id) as place
    from rota_ready w left join rota_stage s on s.run_id = w.run_id cross join asked
    where asked.job = coalesce(s.pipeline, w.job) and w.run_at < asked.before and w.hold <> {blocked}
        and coalesce(s.no, 1) = 1) as late
where place <= :most;

-- name: late_to_end
-- Runs that nobody works on: not begun yet, or waiting for a retry.
with asked as materialized (select rows.job, rows.before from {rows job text, before bigint})
select job, run_id, run_at, (
    select max(e.at) from rota_event e
    where e.kind = 'run' and e.subject = cast(late.run_id as text) and e.type = 'released')
from (
    select asked.job, w.run_id, r.run_at,
        row_number() over (partition by asked.job order by r.run_at, w.run_id) as place
    from rota_ready w left join rota_stage s on s.run_id = w.run_id cross join asked
    {then rota_run r | r.id = w.run_id}
    where asked.job = coalesce(s.pipeline, w.job) and (w.run_at < asked.before or w.fence > 0) and w.hold <> {blocked}
        and r.run_at < asked.before) as late
where place <= :most;

-- name: held_of_jobs
-- Claimed and external runs that have been going on for long, or are overdue. Crossed joins: a pinned plan, as above.
with asked as materialized (
    select rows.job, rows.began, rows.before from {rows job text, began bigint, before bigint})
select r.job, r.id, h.began, r.run_at, (
    select max(e.at) from rota_event e
    where e.kind = 'run' and e.subject = cast(r.id as text) and e.type = 'released')
from (
    select run_id, claimed_at as began from rota_lease
    union all
    select run_id, coalesce(began_at, claimed_at) from rota_outside
    union all
    select run_id, since from rota_conduct) as h
{then rota_run r | r.id = h.run_id}
cross join asked
where asked.job = r.job and (h.began < asked.began or r.run_at < asked.before);

-- name: open_of_schedules
-- The runs that planning last saw open, in whichever table they are now. The columns of `_OpenRun`, in their order.
with asked as (select rows.id, rows.kind, rows.name from {rows id id, kind text, name text}),
open as (
    select m.schedule_id, m.run_id from asked join rota_lane_run m on m.schedule_id = asked.id
    union
    select s.id, p.id from asked join rota_schedule s on s.id = asked.id join rota_cursor c on c.no = s.cursor_no
    {then rota_run p | p.schedule_id = s.id and p.scope_kind = asked.kind and p.scope_id = asked.name
        and p.plan_time = c.open_plan and p.retry_of is null})
select open.schedule_id, r.id, r.run_at, w.run_at, w.hold, coalesce(l.claimed_at, x.began_at, x.claimed_at, k.since), (
    select max(e.at) from rota_event e
    where e.kind = 'run' and e.subject = cast(r.id as text) and e.type = 'released')
from open
{then rota_run r | r.id = open.run_id and r.state is null}
left join rota_ready w on w.run_id = r.id
left join rota_lease l on l.run_id = r.id
left join rota_outside x on x.run_id = r.id
left join rota_conduct k on k.run_id = r.id;

-- name: first_waiting
select w.run_id from rota_ready w left join rota_stage s on s.run_id = w.run_id
where coalesce(s.pipeline, w.job) = :job order by w.run_id limit 1;

-- name: last_ends_of_job
-- Pinned plan: the job is bounded from both sides so that its index is walked, as in newest_ended; and from a pair on,
-- because a great many waiting runs may be above it. The columns of `_EndedRun`, in their order; as below.
select id, state, finished_at from (
    select n.id, n.job, n.state, n.finished_at from rota_run n
    where (n.job, n.id) < (:job, :below) and n.job >= :job
    order by n.job desc, n.id desc limit :walk) as w
where w.state in ('succeeded', 'failed', 'timed_out', 'expired')
order by w.job desc, w.id desc limit :count;

-- name: last_success_of_job
select id, state, finished_at from (
    select n.id, n.job, n.state, n.finished_at from rota_run n
    where (n.job, n.id) < (:job, :below) and n.job >= :job
    order by n.job desc, n.id desc limit :walk) as w
where w.state = 'succeeded'
order by w.job desc, w.id desc limit :count;

-- name: last_ends_by_hand
-- Ended runs of a schedule among the newest of its job: also triggered ones, which have no plan time, and retries.
select id, state, finished_at from (
    select n.id, n.job, n.state, n.finished_at, n.schedule_id from rota_run n
    where n.job >= :job and n.job <= :job
    order by n.job desc, n.id desc limit :walk) as w
where w.state in ('succeeded', 'failed', 'timed_out', 'expired') and w.schedule_id = :id
order by w.job desc, w.id desc limit :count;

-- name: last_success_by_hand
select id, state, finished_at from (
    select n.id, n.job, n.state, n.finished_at, n.schedule_id from rota_run n
    where n.job >= :job and n.job <= :job
    order by n.job desc, n.id desc limit :walk) as w
where w.state = 'succeeded' and w.schedule_id = :id
order by w.job desc, w.id desc limit :count;

-- name: last_ends_of_lane
select id, state, finished_at from (
    select n.id, n.plan_time, n.state, n.finished_at from rota_run n
    where n.schedule_id = :id and n.scope_kind = :kind and n.scope_id = :name and n.plan_time is not null
        and n.retry_of is null
    order by n.plan_time desc limit :walk) as w
where w.state in ('succeeded', 'failed', 'timed_out', 'expired')
order by w.plan_time desc limit :count;

-- name: last_success_of_lane
select id, state, finished_at from (
    select n.id, n.plan_time, n.state, n.finished_at from rota_run n
    where n.schedule_id = :id and n.scope_kind = :kind and n.scope_id = :name and n.plan_time is not null
        and n.retry_of is null
    order by n.plan_time desc limit :walk) as w
where w.state = 'succeeded'
order by w.plan_time desc limit :count;
