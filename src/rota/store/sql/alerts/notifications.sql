-- Notifications, and the windows that limit how often each is sent.

-- name: notifications
select name, definition, owner, enabled, created_at, updated_at from rota_notification order by name;

-- name: get_notification
select name, definition, owner, enabled, created_at, updated_at from rota_notification where name = :name;

-- name: lock_notification
select definition, owner, enabled from rota_notification where name = :name
{for_update};

-- name: insert_notification
insert into rota_notification (name, definition, owner, enabled, created_at, updated_at)
values (:name, :definition, :owner, :enabled, :now, :now)
on conflict (name) do nothing
returning name;

-- name: change_notification
update rota_notification set definition = :definition, enabled = :enabled, owner = :owner, updated_at = :now
where name = :name;

-- name: drop_notification
delete from rota_notification where name = :name returning name;

-- name: heed_schedules
-- A notification of a schedule listens to the schedule's job: signals are written per job.
insert into rota_listener (job, what, subject, since)
select distinct s.job, 'notification', rows.name, :now
from {rows name text, schedule text} join rota_schedule s on s.name = rows.schedule and s.deleted_at is null
where true
on conflict (job, what, subject) do nothing;

-- name: told
-- Windows of budgets (`job` holds their key), locked in key order: two messengers lock several.
select notification, job, since, told, held from rota_told
where (notification, job) in (select rows.notification, rows.job from {rows notification text, job text})
order by notification, job
{for_update};

-- name: tell
insert into rota_told (notification, job, since, told, held)
select rows.notification, rows.job, rows.since, rows.told, rows.held
from {rows notification text, job text, since bigint, told int, held int}
where true
on conflict (notification, job) do update set since = excluded.since, told = excluded.told, held = excluded.held;

-- name: lock_old_told
-- Budgets whose hour is over. Rows that a messenger counts in are skipped: they are not old any more.
select notification, job, since, held from rota_told where since <= :now - :length
order by notification, job
{for_update_skip};

-- name: drop_told
delete from rota_told
where (notification, job) in (select rows.notification, rows.job from {rows notification text, job text});

-- name: forget_told
delete from rota_told where notification = :name;

-- name: drop_listeners_but
delete from rota_listener
where what = :what and subject = :subject and job not in (select rows.job from {rows job text, kind text, name text});
