-- Retention of schedules: ranges instead of runs.

-- name: lock_schedules
-- By id, the order of all statements that lock several cursors and wait.
select s.id from {rows id id} join rota_schedule s on s.id = rows.id join rota_cursor c on c.no = s.cursor_no
order by s.id {for_update c};

-- name: name_and_cursor
select name, cursor_at from rota_schedule_now where id = :id;

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
-- Not those that a lane still holds: planning reads them.
select k.run_id from rota_skip k
where k.job = :job and k.surplus = 1
    and not exists (
        select 1 from rota_lane_run m where m.schedule_id = k.schedule_id and m.scope_kind = k.scope_kind
            and m.scope_id = k.scope_id and m.run_id = k.run_id)
order by k.run_id limit :limit;

-- name: surplus_among
-- Those of these, which are locked, that are surplus still.
select k.run_id from {rows id id} join rota_run r on r.id = rows.id and r.state = 'skipped'
join rota_skip k on k.job = r.job and k.run_id = r.id and k.surplus = 1
where not exists (
        select 1 from rota_lane_run m where m.schedule_id = k.schedule_id and m.scope_kind = k.scope_kind
            and m.scope_id = k.scope_id and m.run_id = k.run_id);

-- name: old_missed
select g.schedule_id, g.from_at, g.to_at, g.scope_kind, g.scope_id, g.kind, g.reason
from rota_schedule s join rota_range g on g.schedule_id = s.id
where s.job = :job and g.kind = 'missed' and g.to_at < :now - :keep_for
limit :limit;

-- name: gone_scopes
-- Scopes that their provider has not named for long, and that have no runs left.
select distinct p.schedule_id, p.scope_kind, p.scope_id
from rota_schedule s join rota_scope_span p on p.schedule_id = s.id
where s.job = :job and p.until < :now - :keep_for
    and not exists (
        select 1 from rota_scope_span o where o.schedule_id = p.schedule_id and o.scope_kind = p.scope_kind
            and o.scope_id = p.scope_id and (o.until is null or o.until >= :now - :keep_for))
    and not exists (
        select 1 from rota_run r where r.schedule_id = p.schedule_id and r.scope_kind = p.scope_kind
            and r.scope_id = p.scope_id and r.retry_of is null)
    and not exists (
        select 1 from rota_lane_run m where m.schedule_id = p.schedule_id and m.scope_kind = p.scope_kind
            and m.scope_id = p.scope_id)
    and not exists (
        select 1 from rota_range g where g.schedule_id = p.schedule_id and g.scope_kind = p.scope_kind
            and g.scope_id = p.scope_id and g.to_at >= :now - :keep_for)
limit :limit;

-- name: drop_spans
-- Checked again under the lock: the provider may have named the scope again meanwhile.
-- locked by: lock_schedules
delete from rota_scope_span where (schedule_id, scope_kind, scope_id) in (
    select rows.id, rows.kind, rows.name from {rows id id, kind text, name text}
    where not exists (
        select 1 from rota_scope_span o where o.schedule_id = rows.id and o.scope_kind = rows.kind
            and o.scope_id = rows.name and o.until is null)
    and (
        select 1 from rota_run r where r.schedule_id = rows.id and r.scope_kind = rows.kind
            and r.scope_id = rows.name and r.retry_of is null limit 1) is null)
returning schedule_id, scope_kind, scope_id;

-- name: drop_ranges_of_scopes
delete from rota_range where (schedule_id, scope_kind, scope_id) in (
    select rows.id, rows.kind, rows.name from {rows id id, kind text, name text});

-- name: drop_lanes_of_scopes
delete from rota_lane where (schedule_id, scope_kind, scope_id) in (
    select rows.id, rows.kind, rows.name from {rows id id, kind text, name text});

-- name: jobs_of_schedules
-- A loose index scan: one probe per job, however many schedules there are.
with recursive names(job) as (
    select (select job from rota_schedule order by job limit 1)
    union all
    select (select s.job from rota_schedule s where s.job > names.job order by s.job limit 1)
    from names where names.job is not null)
select job from names where job is not null;

-- name: long_deleted
select s.id from rota_schedule s
where s.deleted_at < :now - :deleted_for
    and (select 1 from rota_run r where r.schedule_id = s.id and r.retry_of is null limit 1) is null
limit :limit;

-- name: drop_schedules
delete from rota_schedule where id in (select rows.id from {rows id id}) and deleted_at is not null
returning id, cursor_no;

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
