-- Retention of schedules: ranges instead of runs.

-- name: lock_schedules
select s.id from {rows id id} join rota_schedule s on s.id = rows.id order by s.id {for_update s};

-- name: name_and_cursor
select name, cursor_at from rota_schedule where id = :id;

-- name: extend_ranges
update rota_range set
    from_at = case when rows.from_at < rota_range.from_at then rows.from_at else rota_range.from_at end,
    to_at = case when rows.to_at > rota_range.to_at then rows.to_at else rota_range.to_at end,
    count = rota_range.count + rows.count
from {rows id id, from_at bigint, to_at bigint, scope_kind text, scope_id text, kind text, reason text, count bigint}
where rota_range.schedule_id = rows.id and rota_range.scope_kind = rows.scope_kind
    and rota_range.scope_id = rows.scope_id and rota_range.kind = rows.kind and rota_range.reason = rows.reason
returning schedule_id, rota_range.scope_kind, rota_range.scope_id, rota_range.kind, rota_range.reason;

-- name: surplus_skips
select id from (
    select r.id, row_number() over (
        partition by r.schedule_id, r.scope_kind, r.scope_id order by r.plan_time desc) as place
    from rota_run r
    where r.job = :job and r.schedule_id is not null and r.retry_of is null and r.plan_time is not null
        and r.state = 'skipped'
        and not exists (
            select 1 from rota_lane_run m where m.schedule_id = r.schedule_id and m.scope_kind = r.scope_kind
                and m.scope_id = r.scope_id and m.run_id = r.id)) as skips
where place > :keep
order by id limit :limit;

-- name: old_missed
select g.schedule_id, g.from_at, g.to_at, g.scope_kind, g.scope_id, g.kind, g.reason
from rota_schedule s join rota_range g on g.schedule_id = s.id
where s.job = :job and g.kind = 'missed' and g.to_at < :now - :keep_for
limit :limit;

-- name: jobs_of_schedules
select distinct job from rota_schedule;

-- name: long_deleted
select s.id from rota_schedule s
where s.deleted_at < :now - :deleted_for
    and not exists (select 1 from rota_run r where r.schedule_id = s.id and r.retry_of is null)
limit :limit;

-- name: drop_schedules
delete from rota_schedule where id in (select rows.id from {rows id id}) and deleted_at is not null returning id;

-- name: drop_revisions_of
delete from rota_revision where schedule_id in (select rows.id from {rows id id});

-- name: drop_ranges_of
delete from rota_range where schedule_id in (select rows.id from {rows id id});

-- name: drop_scope_spans_of
delete from rota_scope_span where schedule_id in (select rows.id from {rows id id});

-- name: drop_lanes_of
delete from rota_lane where schedule_id in (select rows.id from {rows id id});

-- name: drop_lane_runs_of
delete from rota_lane_run where schedule_id in (select rows.id from {rows id id});
