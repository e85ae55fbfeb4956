-- Schedules: create, change, read. A transaction that changes one holds the lock of its cursor's row.

-- name: insert_schedule
insert into rota_schedule (id, cursor_no, name, job, definition, declared, owner, revision, enabled, job_paused,
    zoned, created_at, updated_at)
values (:id, :cursor_no, :name, :job, :definition, :declared, :owner, 1, :enabled,
    case when exists (select 1 from rota_pause where kind = 'job' and name = :job) then 1 else 0 end,
    :zoned, :now, :now)
on conflict (name) where deleted_at is null do nothing
returning job_paused;

-- name: insert_cursor
insert into rota_cursor (cursor_at, next_plan, next_at, tzdata, provider)
values (:cursor_at, :next_plan, :next_at, :tzdata, :provider)
returning no;

-- name: drop_cursors
delete from rota_cursor where no in (select rows.no from {rows no bigint});

-- name: lock_schedule
-- The cursor is the schedule's lock: after its job, before runs, limits and keys.
select no from rota_cursor
where no = (select cursor_no from rota_schedule where name = :name and deleted_at is null)
{for_update};

-- name: read_locked
-- A statement of its own: the one that waited for the lock may return the row as it was before the wait.
select {schedule_row} from rota_schedule_now where cursor_no = :no and deleted_at is null;

-- name: deleted_schedule
-- The one that was deleted last: of several with one name, only the newest can be live again. Deleted schedules are few,
-- and are not in the index of names.
select id, cursor_no, job from rota_schedule where name = :name and deleted_at is not null
order by created_at desc, id desc limit 1;

-- name: deleted_names
select distinct name from rota_schedule where deleted_at is not null order by name limit 1000;

-- name: lock_cursor
select no from rota_cursor where no = :no
{for_update};

-- name: read_deleted
-- A statement of its own, as `read_locked`: it may have been restored, or dropped for good, during the wait.
select {schedule_row} from rota_schedule_now where id = :id and deleted_at is not null;

-- name: lock_schedules_of_job
-- By id, the order of all statements that lock several cursors and wait.
select c.no, s.id from rota_schedule s join rota_cursor c on c.no = s.cursor_no
where s.job = :job and s.deleted_at is null and s.id > :after
    and s.job_paused = coalesce(:job_paused, s.job_paused) and s.enabled = coalesce(:enabled, s.enabled)
order by s.id limit :limit
{for_update c};

-- name: lock_schedules_by_name
-- By id, the order of all statements that lock several cursors and wait.
select c.no from {rows name text} join rota_schedule s on s.name = rows.name join rota_cursor c on c.no = s.cursor_no
where s.deleted_at is null
order by s.id
{for_update c};

-- name: read_locked_schedules
-- A statement of its own: the one that waited for the locks may return rows as they were before the wait.
select {schedule_row} from {rows no bigint} join rota_schedule_now on cursor_no = rows.no where deleted_at is null
order by id;

-- name: read_locked_of_job
select {schedule_row} from {rows no bigint} join rota_schedule_now on cursor_no = rows.no
where job = :job and deleted_at is null
    and job_paused = coalesce(:job_paused, job_paused) and enabled = coalesce(:enabled, enabled)
order by id;

-- name: lock_job
-- Serializes pausing and resuming a job with giving it a schedule. Otherwise neither transaction sees the other's row,
-- and the schedule goes on though its job is paused, or rests for ever. Does not block transactions that enqueue its
-- runs (`hold_jobs`).
-- The order of locks: jobs, cursors, runs, limits, keys. A job without a row cannot be locked, but only one that code
-- has not declared yet has none, and that cannot be dropped.
select version from rota_job where name = :job order by version
{for_no_key_update};

-- name: job_is_dropped
-- Read after the job's lock: the job may have been dropped, or created again, during the wait.
select 1 from (select count(*) as made, count(dropped_at) as dropped from rota_job where name = :job) as versions
where made > 0 and dropped = made;

-- name: job_is_paused
select 1 from rota_pause where kind = 'job' and name = :job;

-- name: change_schedule
update rota_schedule set job = :job, definition = :definition, declared = :declared, owner = :owner,
    revision = :revision, enabled = :enabled, paused_at = :paused_at, paused_by = :paused_by,
    pause_reason = :pause_reason, resume_at = :resume_at, job_paused = :job_paused, zoned = :zoned,
    updated_at = :now, deleted_at = case when :deleted = 1 then :now end
where id = :id;

-- name: move_cursor
update rota_cursor set cursor_at = :cursor_at, next_plan = :next_plan, next_at = :next_at, open_plan = :open_plan,
    awaits = :awaits, fired = :fired, tzdata = :tzdata, provider = :provider, trouble = null
where no = :no;

-- name: last_planned
select id, state, finished_at from rota_run
where schedule_id = :id and scope_kind = :kind and scope_id = :name and plan_time is not null and retry_of is null
order by plan_time desc
limit 1;

-- name: pause_facts
select paused_by, pause_reason from rota_schedule where id = :id;

-- name: insert_revision
insert into rota_revision (schedule_id, no, valid_from, definition, tzdata, active, note, actor, made_at)
values (:id, :no, :valid_from, :definition, :tzdata, :active, :note, :actor, :now);

-- name: reopen_revisions
-- A pause that is caught up with counts as active: its plan times belong to the schedule after all.
update rota_revision set active = 1, note = :note
where schedule_id = :id and active = 0 and valid_from >= :valid_from;

-- name: get_schedule
select {schedule_columns} from rota_schedule_now where name = :name and deleted_at is null;

-- name: schedules_of_owner
select {schedule_columns} from rota_schedule_now where owner = :owner and deleted_at is null order by name;

-- name: schedule_names
select name from rota_schedule where deleted_at is null order by name limit 1000;

-- name: declared_schedules
select s.name, s.declared, s.owner from {rows name text} join rota_schedule s on s.name = rows.name
where s.deleted_at is null;

-- name: open_spans
select scope_kind, scope_id, since from rota_scope_span where schedule_id = :id and until is null;

-- name: insert_spans
insert into rota_scope_span (schedule_id, scope_kind, scope_id, since)
select rows.id, rows.kind, rows.name, rows.since from {rows id id, kind text, name text, since bigint}
where true;

-- name: close_spans
update rota_scope_span set until = rows.until
from {rows id id, kind text, name text, until bigint}
where rota_scope_span.schedule_id = rows.id and rota_scope_span.scope_kind = rows.kind
    and rota_scope_span.scope_id = rows.name and rota_scope_span.until is null;

-- name: get_setting
select value from rota_setting where name = :name;

-- name: save_setting
insert into rota_setting (name, value) values (:name, :value)
on conflict (name) do update set value = excluded.value;

-- name: lock_older_zones
-- A batch of those planned with older time zone data; by id, the order of all statements that lock several cursors and
-- wait.
select c.no, s.id from rota_schedule s join rota_cursor c on c.no = s.cursor_no
where s.id > :after and s.zoned = 1 and s.paused_at is null and s.deleted_at is null
    and c.tzdata < :tzdata and c.next_at is not null
order by s.id limit :limit
{for_update c};

-- name: look_again_at_zones
-- Makes them due now. A statement of its own: the transaction that held a cursor during the wait may have paused or
-- deleted the schedule, and the statement that waited rechecked the cursor alone. Not a schedule that is paused until a
-- certain time: that would end its pause; it is replanned when it is resumed.
-- locked by: lock_older_zones
update rota_cursor set next_at = :now
where no in (
    select s.cursor_no from {rows no bigint} join rota_schedule s on s.cursor_no = rows.no
    where s.zoned = 1 and s.paused_at is null and s.deleted_at is null)
    and next_at is not null and tzdata < :tzdata;
