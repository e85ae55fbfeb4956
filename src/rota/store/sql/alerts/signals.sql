-- Signals, as the messenger takes them, and listeners.

-- name: anything_to_tell
-- Polled all day: these tables are small, and mostly empty. The third tells of budgets whose hour is over.
select case when exists (select 1 from rota_signal) then 1 else 0 end,
    case when exists (select 1 from rota_notification) then 1 else 0 end,
    case when exists (select 1 from rota_told where since <= :now - 3600000000) then 1 else 0 end;

-- name: take_signals
-- Oldest first. Skips those that another messenger holds at this moment, instead of waiting for it.
select no, at, type, kind, subject, job, schedule, details from rota_signal
where no not in (select rows.no from {rows no bigint})
order by no limit :limit
{for_update_skip};

-- name: drop_signals
delete from rota_signal where no in (select rows.no from {rows no bigint}) returning no;

-- name: listeners_of
-- `since`, because a listener does not get signals from before it was registered.
select job, what, subject, since from rota_listener
where job = '*' or job in (select rows.job from {rows job text});

-- name: add_listeners
insert into rota_listener (job, what, subject, since)
select rows.job, rows.what, rows.subject, :now from {rows job text, what text, subject text}
where true
on conflict (job, what, subject) do nothing;

-- name: drop_listeners
delete from rota_listener where what = :what and subject = :subject and job <> :but;

-- name: lock_followings
-- A lock: transactions that let a schedule follow a job look for rings one after the other. Otherwise two that close a
-- ring together would not see each other's listener.
insert into rota_setting (name, value) values ('following', :name)
on conflict (name) do update set value = excluded.value;

-- name: followings
select l.job, s.job, s.name, s.id from rota_listener l join rota_schedule s on cast(s.id as text) = l.subject
where l.what = 'schedule' and s.deleted_at is null;

-- name: lock_schedules_by_id
-- Cursors before runs, limits and keys; by id, the order of all statements that lock several cursors and wait.
select c.no from {rows id id} join rota_schedule s on s.id = rows.id join rota_cursor c on c.no = s.cursor_no
where s.deleted_at is null
order by s.id
{for_update c};

-- name: ended_runs
select id, state, scope_kind, scope_id, result from rota_run where id in (select rows.id from {rows id id});

-- name: count_fired
update rota_cursor set fired = rows.fired, trouble = null
from {rows no bigint, fired bigint} where rota_cursor.no = rows.no;

-- name: signal_missed
insert into rota_signal (at, type, kind, subject, job, schedule, details)
select :now, 'missed', 'schedule', rows.schedule, rows.job, rows.schedule, rows.details
from {rows schedule text, job text, details text}
where rows.job in (select job from rota_listener) or exists (select 1 from rota_listener where job = '*')
returning no;

-- name: signal
insert into rota_signal (at, type, kind, subject, job, schedule, details)
values (:now, :type, :kind, :subject, :job, :schedule, :details)
returning no;

-- name: untold_signals
select count(*) from rota_signal where at < :now - :late;
