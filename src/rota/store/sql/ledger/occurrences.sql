-- The ledger of a schedule's plan times. A retry shares the plan time of the run it repeats, and does not count.

-- name: look_at_schedule
select {schedule_row} from rota_schedule_now where name = :name and deleted_at is null;

-- name: revisions
select no, valid_from, definition, tzdata, active, note, actor, made_at from rota_revision
where schedule_id = :id order by no;

-- name: newest_note
select note, actor from rota_revision where schedule_id = :id order by no desc limit 1;

-- name: spans
select scope_kind, scope_id, since, until from rota_scope_span where schedule_id = :id
order by scope_kind, scope_id, since;

-- name: ranges
select from_at, to_at, scope_kind, scope_id, kind, reason, count from rota_range where schedule_id = :id
order by from_at;

-- name: ranges_between
select from_at, to_at, scope_kind, scope_id, kind, reason, count from rota_range
where schedule_id = :id and to_at >= :from_at and from_at <= :to_at and from_at >= :past
order by from_at, scope_kind, scope_id, kind limit :limit;

-- name: runs_between
-- In the order in which pages list them: the older plan times that a run covers may be on the page before.
select n.id, n.scope_kind, n.scope_id, n.plan_time, n.covers_from, n.missed_count, n.state, n.reason
from rota_run_now n
where n.schedule_id = :id and n.retry_of is null and n.plan_time >= :from_at
    and n.plan_time >= :past and coalesce(n.covers_from, n.plan_time) <= :to_at
order by case when n.covers_from >= :past then n.covers_from else n.plan_time end, n.scope_kind, n.scope_id
limit :limit;

-- name: planned_in
select scope_kind, scope_id, plan_time from rota_run
where schedule_id = :id and retry_of is null and plan_time > :after and plan_time <= :until;

-- name: made_again
-- Runs made in place of these, by retries and backfills; the newest last.
select n.retry_of, n.id, n.state from {rows id id} join rota_run_now n on n.retry_of = rows.id order by n.id;

-- name: tally_runs
-- Each row is one range scan of the index of plan times.
select rows.no, rows.kind, rows.name, rows.after, count(r.id), coalesce(sum(r.missed_count), 0)
from {rows no int, kind text, name text, after bigint, until bigint}
join rota_run r on r.schedule_id = :id and r.scope_kind = rows.kind and r.scope_id = rows.name
    and r.retry_of is null and r.plan_time > rows.after and r.plan_time <= rows.until
where r.backfilled = 0
group by rows.no, rows.kind, rows.name, rows.after;

-- name: count_planned
select count(*) from rota_run
where schedule_id = :id and retry_of is null and plan_time is not null
    and backfilled = 0;

-- name: backfilled_runs
select scope_kind, scope_id, plan_time from rota_run
where schedule_id = :id and retry_of is null and plan_time is not null and backfilled = 1;

-- name: covers
select distinct covers_from, plan_time, missed_count from rota_run
where schedule_id = :id and retry_of is null and missed_count > 0;

-- name: runs_in_missed
-- `+ 0`: the index of missed ranges of all schedules (by to_at) must not serve this join, whatever statistics say.
select r.id, r.scope_kind, r.scope_id, r.plan_time
from rota_range g join rota_run r on r.schedule_id = g.schedule_id and r.retry_of is null
    and r.plan_time >= g.from_at and r.plan_time <= g.to_at + 0
    and (g.scope_kind = '' or g.scope_kind = r.scope_kind and g.scope_id = r.scope_id)
where g.schedule_id = :id and g.kind = 'missed'
limit :limit;

-- name: runs_in_covers
select r.id, r.scope_kind, r.scope_id, r.plan_time
from rota_run c join rota_run r on r.schedule_id = c.schedule_id and r.retry_of is null
    and r.scope_kind = c.scope_kind and r.scope_id = c.scope_id
    and r.plan_time >= c.covers_from and r.plan_time < c.plan_time
where c.schedule_id = :id and c.retry_of is null and c.missed_count > 0
limit :limit;

-- name: planned_after
select id, scope_kind, scope_id, plan_time from rota_run
where schedule_id = :id and retry_of is null and plan_time is not null
    and backfilled = 0
    and (scope_kind, scope_id, plan_time) > (:kind, :scope, :plan_time)
order by scope_kind, scope_id, plan_time limit :limit;

-- name: distinct_plan_times
select plan_time, min(cast(id as text)) from rota_run
where schedule_id = :id and retry_of is null and plan_time > :after
    and backfilled = 0
group by plan_time order by plan_time limit :limit;

-- name: plan_times_of
select coalesce(covers_from, plan_time), plan_time from rota_run
where schedule_id = :id and retry_of is null and scope_kind = :kind and scope_id = :scope
    and plan_time > :after and plan_time <= :until;
