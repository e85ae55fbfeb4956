-- What happened and somebody wants to know: noted with what happened, told by the messenger.

-- name: signal_ends
-- Of the success of a run on PostgreSQL, the statement that completes it does the same.
insert into rota_signal (at, type, kind, subject, job, schedule)
select :now, r.state, 'run', cast(r.id as text), r.job, (select s.name from rota_schedule s where s.id = r.schedule_id)
from {rows id id} join rota_run r on r.id = rows.id
where r.job in (select job from rota_listener) or exists (select 1 from rota_listener where job = '*')
returning no;
