-- From schedules to runs, in one transaction.

-- name: look
-- When the next one is due, of those that can be planned: one whose scopes nobody here can tell stays due. And whether
-- any follows a run that has ended.
select (
        select next_at from rota_cursor
        where next_at is not null and (provider is null or provider in (select rows.name from {rows name text}))
        order by next_at, no limit 1
    ), :now,
    case when :followers = 1 then exists (
        select 1 from rota_cursor c left join rota_run r on r.id = c.awaits
        where c.awaits is not null and c.next_at is null and (r.id is null or r.state is not null)) else false end;

-- name: due_providers
select rows.name from {rows name text}
where exists (select 1 from rota_cursor c where c.next_at <= :now and c.provider = rows.name);

-- name: coming
-- Those that will be due next.
select no, cast(schedule_id as text), said, said_at, next_at, next_plan from rota_cursor
where next_at <= :until and (next_at, no) > (:after_at, :after_no)
order by next_at, no
limit :limit;

-- name: foresee
-- The rows of the same, and of each its newest run: that of the next comes beside it.
select count((
    select r.state from rota_run r where r.schedule_id = c.schedule_id and r.retry_of is null
    order by r.scope_kind desc, r.scope_id desc, r.plan_time desc limit 1))
from (
    select schedule_id from rota_cursor where next_at <= :until and (next_at, no) > (:after_at, :after_no)
    order by next_at, no limit :limit) as c;

-- name: say
-- With the mark that stands for it at the same moment. One that is deleted says nothing.
select cast(c.schedule_id as text), c.said, c.said_at, {schedule_says} from {rows no bigint}
join rota_cursor c on c.no = rows.no join rota_schedule s on s.cursor_no = rows.no
where s.deleted_at is null;

-- name: put_off
-- Cursors that are due, and should not be: of a deleted schedule, which never is, or of a pause that goes on.
update rota_cursor set next_at = rows.next_at
from {rows no bigint, next_at bigint} where rota_cursor.no = rows.no;

-- name: lane_runs
-- One snapshot of where each run is, so that one which is just being claimed is seen once. Last, of one that was
-- cancelled while it waited: how its last attempt had ended.
select m.schedule_id, m.scope_kind, m.scope_id, m.run_id, r.id, r.state, r.attempt, r.finished_at, r.cancelled_by,
    case when r.followed = 1 and 1 = (
        select 1 from rota_wait a join rota_ready b on b.run_id = a.run_id where a.after_id = m.run_id
            and a.kind = 0 limit 1) then 1 else 0 end,
    coalesce(l.run_id, c.run_id, case when r.state is null and w.run_id is null then (
        select o.run_id from rota_outside o where o.run_id = m.run_id) end), w.fence, null,
    case when r.state = 'cancelled' and r.attempt > 0 then (
        select case when a.left_as in ('scheduled', 'queued') then a.outcome end
        from rota_attempt a where a.run_id = r.id order by a.fence desc limit 1) end
from {rows id id}
join rota_lane_run m on m.schedule_id = rows.id
left join rota_run r on r.id = m.run_id
left join rota_lease l on l.run_id = m.run_id
left join rota_conduct c on c.run_id = m.run_id
left join rota_ready w on w.run_id = m.run_id;

-- name: open_runs
-- The same of runs that are found by their plan time. One that ended well tells nothing of a lane that was well before.
select r.schedule_id, r.scope_kind, r.scope_id, r.id, r.id, r.state, r.attempt, r.finished_at, r.cancelled_by,
    case when r.followed = 1 and 1 = (
        select 1 from rota_wait a join rota_ready b on b.run_id = a.run_id where a.after_id = r.id
            and a.kind = 0 limit 1) then 1 else 0 end,
    coalesce(l.run_id, c.run_id, case when r.state is null and w.run_id is null then (
        select o.run_id from rota_outside o where o.run_id = r.id) end), w.fence, r.plan_time,
    case when r.state = 'cancelled' and r.attempt > 0 then (
        select case when a.left_as in ('scheduled', 'queued') then a.outcome end
        from rota_attempt a where a.run_id = r.id order by a.fence desc limit 1) end
from {many id id, kind text, name text, plan_time bigint, well int}
{then rota_run r | r.schedule_id = rows.id and r.scope_kind = rows.kind and r.scope_id = rows.name
    and r.plan_time = rows.plan_time and r.retry_of is null
    and (rows.well = 0 or r.state is null or r.state <> 'succeeded')}
left join rota_lease l on l.run_id = case when r.state is null then r.id end
left join rota_conduct c on c.run_id = case when r.state is null then r.id end
left join rota_ready w on w.run_id = case when r.state is null then r.id end;

-- name: lanes
select n.schedule_id, n.scope_kind, n.scope_id, n.failed, n.failures, n.attempt, n.finished_at, n.skips
from {rows id id} join rota_lane n on n.schedule_id = rows.id;

-- name: save_lanes
insert into rota_lane (schedule_id, scope_kind, scope_id, failed, failures, attempt, finished_at, skips)
select rows.id, rows.kind, rows.name, rows.failed, rows.failures, rows.attempt, rows.finished_at, rows.skips
from {rows id id, kind text, name text, failed int, failures int, attempt int, finished_at bigint, skips int}
where true
on conflict (schedule_id, scope_kind, scope_id) do update set failed = excluded.failed, failures = excluded.failures,
    attempt = excluded.attempt, finished_at = excluded.finished_at, skips = excluded.skips;

-- name: digest_lane_runs
delete from rota_lane_run
where (schedule_id, scope_kind, scope_id, run_id) in (
    select rows.id, rows.kind, rows.name, rows.run_id from {rows id id, kind text, name text, run_id id});

-- name: insert_planned_ready
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key)
select rows.id, rows.queue, rows.rank, rows.run_at, rows.hold, rows.solo, rows.attempt, 0, rows.job, rows.job_version,
    rows.limit_key
from {many id id, queue text, rank int, run_at bigint, hold int, solo int, attempt int, job text, job_version int,
    limit_key text}
where true;

-- name: insert_lane_runs
insert into rota_lane_run (schedule_id, scope_kind, scope_id, run_id)
select rows.id, rows.kind, rows.name, rows.run_id from {many id id, kind text, name text, run_id id}
where true;

-- name: insert_ranges
insert into rota_range (schedule_id, from_at, to_at, scope_kind, scope_id, kind, reason, count)
select rows.id, rows.from_at, rows.to_at, '', '', 'missed', rows.reason, rows.count
from {rows id id, from_at bigint, to_at bigint, reason text, count bigint}
where true;

-- name: advance_cursors
update rota_cursor set cursor_at = rows.cursor_at, next_plan = rows.next_plan, next_at = rows.next_at,
    open_plan = rows.open_plan, fired = rows.fired, awaits = rows.awaits, tzdata = rows.tzdata, trouble = null
from {rows no bigint, cursor_at bigint, next_plan bigint, next_at bigint, open_plan bigint, fired bigint, awaits id,
    tzdata text}
where rota_cursor.no = rows.no;

-- name: close_plan
update rota_cursor set open_plan = null where no = :no;

-- name: unfold_open_run
-- Its scope may be none of the schedule's from now on.
insert into rota_lane_run (schedule_id, scope_kind, scope_id, run_id)
select schedule_id, scope_kind, scope_id, id from rota_run
where schedule_id = :id and scope_kind = :kind and scope_id = :name and plan_time = :plan_time and retry_of is null;

-- name: inherit_plans
-- A manual retry does the work of the plan time that the first run was for.
-- unlocked: the runs are new, and what they repeat has ended.
update rota_run set schedule_id = o.schedule_id, plan_time = o.plan_time, covers_from = o.covers_from,
    missed_count = o.missed_count
from {rows id id} join rota_run n on n.id = rows.id join rota_run o on o.id = n.retry_of
where rota_run.id = n.id and o.schedule_id is not null;

-- name: inherit_lanes
insert into rota_lane_run (schedule_id, scope_kind, scope_id, run_id)
select n.schedule_id, n.scope_kind, n.scope_id, n.id from {rows id id} join rota_run n on n.id = rows.id
where n.schedule_id is not null;

-- name: note_trouble
update rota_cursor set trouble = rows.trouble, next_at = :now + rows.rest
from {rows no bigint, trouble text, rest bigint}
where rota_cursor.no = rows.no;

-- name: note_provider_trouble
update rota_cursor set trouble = :trouble where provider = :provider;

-- name: trouble_of
select trouble from rota_cursor where no = :no;

-- name: ended_awaited
-- Schedules that follow a run which has ended, or is not there: pruned, or never made because its key was taken.
select c.no from rota_cursor c left join rota_run r on r.id = c.awaits
where c.awaits is not null and c.next_at is null and (r.id is null or r.state is not null)
limit :limit;

-- name: wake_followers
-- The row says when its plan time is; planning computes it under the row's lock.
update rota_cursor set next_at = :now where no in (select rows.no from {rows no bigint}) and awaits is not null
returning no;

-- name: now_and_live_limits
select :now, (select 1 from rota_quota where scope_kind = '' limit 1);

-- name: job_definitions
select j.name, j.definition from {rows name text} join rota_job j on j.name = rows.name
where j.version = (select max(version) from rota_job where name = j.name and dropped_at is null);

-- name: pause_planned
update rota_schedule set paused_at = :now, paused_by = 'planner', pause_reason = :reason, resume_at = null
where id = :id;

-- name: revise_schedule
update rota_schedule set revision = :revision, updated_at = :now where id = :id;

-- name: standing_runs
-- Live runs, wherever they are, as a simulation begins with them.
select r.id, r.scope_kind, r.scope_id, r.plan_time, r.max_attempts, coalesce(w.attempt, l.attempt, r.attempt), w.run_at,
    w.fence, l.claimed_at, case when l.cancel_at is not null or o.cancel_at is not null then 1 else 0 end
from {rows id id} join rota_run r on r.id = rows.id and r.state is null
left join rota_ready w on w.run_id = r.id
left join rota_lease l on l.run_id = r.id
left join rota_outside o on o.run_id = r.id;

-- name: standing_limits
select l.key, l.max, l.period, l.shut, l.served_at, l.blocked_by, l.opens_at
from {rows key text} join rota_limit l on l.key = rows.key;

-- name: last_durations
-- How long the last runs of a job took that ended by themselves. It looks at few: most of a job's may have been skipped.
select took from (
    select id, case when finished_at > started_at then finished_at - started_at when started_at is not null then 0 end
        as took, state
    from rota_run where job >= :job and job <= :job order by job desc, id desc limit :looked_at) as last
where state in ('succeeded', 'failed', 'timed_out') and took is not null order by id desc limit :limit;
