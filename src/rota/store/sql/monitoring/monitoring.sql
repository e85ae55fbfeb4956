-- The overview, charts and the timeline: live tables and indexes only, and never all of a long queue.

-- name: backlog
-- One branch per hold, each in its own index and with its own limit.
select queue, job, count(*), min(run_at), sum(case when run_at < :now - :late then 1 else 0 end)
from (
    select * from (
        select w.queue, coalesce(s.job, w.job) as job, w.run_at
        from rota_ready w left join rota_stage s on s.run_id = w.run_id where w.hold = {open} limit :most
    ) as free
    union all
    select * from (
        select w.queue, coalesce(s.job, w.job), w.run_at
        from rota_ready w left join rota_stage s on s.run_id = w.run_id where w.hold = {limited} limit :most
    ) as limited
    union all
    select * from (
        select w.queue, coalesce(s.job, w.job), w.run_at
        from rota_ready w left join rota_stage s on s.run_id = w.run_id where w.hold = {restricted} limit :most
    ) as needed
) as queued
group by queue, job;

-- name: count_scheduled
select count(*) from (
    select * from (select 1 from rota_ready where hold = {open_later} limit :most) as delayed
    union all
    select * from (select 1 from rota_ready where hold = {blocked} limit :most) as following
    union all
    select * from (select 1 from rota_ready where hold = {limited_later} limit :most) as limited
    union all
    select * from (select 1 from rota_ready where hold = {parent} limit :most) as conducting
    union all
    select * from (select 1 from rota_ready where hold = {restricted_later} limit :most) as needed
) as scheduled;

-- name: count_begun
-- Number of leases; and of all begun runs, how many run, wait, and were asked to stop.
select coalesce(sum(leased), 0), count(case when leased = 1 and cancel_at is null then 1 end),
    count(case when leased = 0 and cancel_at is null then 1 end), count(cancel_at)
from (
    select 1 as leased, cancel_at from rota_lease
    union all
    select * from (select 0, cancel_at from rota_outside limit :most) as elsewhere
    union all
    select * from (select 0, cancel_at from rota_conduct limit :most) as conducting
) as begun;

-- name: lingering_runs
-- Not shielded runs: their grace period begins only when the shielded step ends.
select run_id, worker_id, cancel_at from rota_lease where cancel_at < :now - :late and shielded <= 0
union all
select run_id, worker_id, cancel_at from rota_outside where cancel_at < :now - :late
order by 3 limit :limit;

-- name: all_pauses
select kind, name, paused_at, paused_by, reason from rota_pause order by paused_at, kind, name limit :limit;

-- name: newest_breaches
select kind, subject, what, since, details from rota_breach order by since, kind, subject, what limit :limit;

-- name: next_fires
select s.name, s.job, s.definition, c.next_plan
from rota_cursor c join rota_schedule s on s.cursor_no = c.no
where c.next_at > :now - :late and c.next_plan is not null and s.deleted_at is null and s.enabled = 1
    and s.paused_at is null and s.job_paused = 0
order by c.next_at, c.no limit :limit;

-- name: counted_last_day
-- Whole hours, and before the first of them spans of five minutes.
select counted from rota_count where span = 3600 and at >= :whole
union all
select counted from rota_count where span = 300 and at >= :since and at < :whole;

-- name: definitions_by_name
select s.id, s.name, s.definition from {rows name text} join rota_schedule s on s.name = rows.name
where s.deleted_at is null;

-- name: save_counts
insert into rota_count (span, at, source, counted)
select rows.span, rows.at, cast(:source as text), rows.counted from {rows span int, at bigint, counted text}
where true
on conflict (span, at, source) do update set counted = excluded.counted;

-- name: measured
select :now, case when exists (
    select 1 from rota_count where span = 60 and at = (:now / :length) * :length and source = '') then 1 else 0 end;

-- name: anything_live
select 1 where exists (select 1 from rota_ready order by run_id limit 1)
    or exists (select 1 from rota_lease order by run_id limit 1)
    or exists (select 1 from rota_outside order by run_id limit 1)
    or exists (select 1 from rota_conduct order by run_id limit 1);

-- name: measure_queues
-- One branch per hold: each is counted in the index that claims use.
select queue, 'queued', count(*) from rota_ready where hold = {open} group by queue
union all
select queue, 'queued', count(*) from rota_ready where hold = {limited} group by queue
union all
select queue, 'queued', count(*) from rota_ready where hold = {restricted} group by queue
union all
select r.queue, 'running', count(*) from rota_lease l {then rota_run r | r.id = l.run_id} group by r.queue
union all
select r.queue, 'waiting', count(*) from rota_outside o {then rota_run r | r.id = o.run_id} group by r.queue
union all
select r.queue, 'waiting', count(*) from rota_conduct c {then rota_run r | r.id = c.run_id} group by r.queue;

-- name: begin_measuring
-- The primary key decides a race: only the process that inserts a span's row measures it.
insert into rota_count (span, at, source, counted)
select rows.span, rows.at, '', '{}' from {rows span int, at bigint}
where true
on conflict (span, at, source) do nothing
returning span, at;

-- name: old_counts
select * from (
    select span, at, source from rota_count where span = 60 and at < :now - :minutes
    union all
    select span, at, source from rota_count where span = 300 and at < :now - :minutes
    union all
    select span, at, source from rota_count where span = 3600 and at < :now - :hours
) as old limit :limit;

-- name: drop_counts
delete from rota_count where (span, at, source) in (
    select rows.span, rows.at, rows.source from {rows span int, at bigint, source text}
);

-- name: counted_between
select at, counted from rota_count where span = :span and at >= :first and at < :last order by at desc limit :most;

-- name: attempts_going_on
select l.run_id, l.attempt, l.state, l.worker_id, l.began, cast(null as bigint), r.job, r.queue, s.name
from (
    select run_id, attempt, worker_id, claimed_at as began,
        case when cancel_at is null then 'running' else 'cancelling' end as state
    from rota_lease
    union all
    select run_id, attempt, worker_id, coalesce(began_at, claimed_at),
        case when cancel_at is null then 'waiting' else 'cancelling' end
    from rota_outside
) as l
{then rota_run r | r.id = l.run_id} left join rota_schedule s on s.id = r.schedule_id
where l.began <= :to_at and (:scheduled = 0 or r.schedule_id is not null)
order by l.began desc limit :limit;

-- name: ended_between
-- Runs that succeeded or were skipped, by id, which tells roughly when a run was created; reads at most :looked runs. A
-- run that was skipped is at its plan time.
select r.id, r.attempt, r.state, r.worker_id, r.began, r.finished_at, r.job, r.queue, s.name, r.reason
from (
    select * from (
        select id, attempt, state, worker_id, finished_at, job, queue, schedule_id, reason,
            case when state = 'skipped' then coalesce(plan_time, finished_at) else coalesce(started_at, claimed_at)
                end as began
        from rota_run where id >= :first and id < :last order by id desc limit :looked
    ) as newest
    where state in ('succeeded', 'skipped') and began <= :to_at
        and case when state = 'skipped' then began else finished_at end >= :from_at
        and (:scheduled = 0 or schedule_id is not null)
    order by began desc limit :limit
) as r
left join rota_schedule s on s.id = r.schedule_id;

-- name: attempts_between
select a.run_id, a.no,
    case when a.outcome = 'snoozed' and exists (
        select 1 from rota_event e where e.kind = 'run' and e.subject = cast(a.run_id as text)
            and e.type = 'advanced' and e.fence = a.fence) then 'succeeded' else a.outcome end,
    a.worker_id, a.began, a.ended_at, r.job, r.queue, s.name
from (
    select run_id, fence, no, outcome, worker_id, coalesce(started_at, claimed_at) as began, ended_at
    from rota_attempt where run_id >= :first and run_id < :last order by run_id desc, fence desc limit :looked
) as a
join rota_run r on r.id = a.run_id left join rota_schedule s on s.id = r.schedule_id
where a.began <= :to_at and a.ended_at >= :from_at and (:scheduled = 0 or r.schedule_id is not null)
order by a.began desc limit :limit;

-- name: unrun_ranges
-- The columns of `UnrunRange`, in their order. Of the ranges that began before the period only the last of a schedule is
-- looked at: ranges follow each other.
select s.name, s.job, g.from_at, g.to_at, g.kind, g.reason, g.count
from (select id, name, job from rota_schedule where deleted_at is null order by name limit :schedules) as s
cross join rota_range g
where g.schedule_id = s.id and g.kind <> 'pruned' and g.from_at <= :to_at and g.to_at >= :from_at
    and g.from_at >= coalesce(
        (select max(b.from_at) from rota_range b where b.schedule_id = s.id and b.from_at <= :from_at), :from_at)
limit :limit;

-- name: more_runs
select id from rota_run where id >= :first and id < :last order by id desc limit 1 offset :looked;

-- name: more_attempts
select run_id from rota_attempt where run_id >= :first and run_id < :last order by run_id desc, fence desc
limit 1 offset :looked;

-- name: upcoming_schedules
select s.name, s.job, s.definition, c.next_plan, c.fired
from rota_cursor c join rota_schedule s on s.cursor_no = c.no
where c.next_at <= :to_at and c.next_plan is not null and s.deleted_at is null and s.enabled = 1
    and s.paused_at is null and s.job_paused = 0
order by c.next_at, c.no limit :limit;

-- name: upcoming_runs
-- The columns of `WaitingRun`, in their order. One branch per hold, each in its own index and with its own limit.
select w.run_at, w.run_id, w.attempt, r.job, r.queue, s.name
from (
    select * from (
        select run_id, run_at, attempt from rota_ready where hold = {open_later} and run_at <= :to_at
        order by run_at limit :limit) as delayed
    union all
    select * from (
        select run_id, run_at, attempt from rota_ready where hold = {limited_later} and run_at <= :to_at
        order by run_at limit :limit) as limited
    union all
    select * from (
        select run_id, run_at, attempt from rota_ready where hold = {restricted_later} and run_at <= :to_at
        order by run_at limit :limit) as needed
    union all
    select * from (
        select run_id, run_at, attempt from rota_ready where hold = {parent} and run_at > :now and run_at <= :to_at
        order by run_at limit :limit) as conducting
) as w
{then rota_run r | r.id = w.run_id} left join rota_schedule s on s.id = r.schedule_id
order by w.run_at limit :limit;
