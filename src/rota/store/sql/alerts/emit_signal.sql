-- Signals of ended runs, written in the transaction of the end and delivered by the messenger.

-- name: signal_ends
-- On PostgreSQL, the statement that completes runs writes the signals of successes itself.
insert into rota_signal (at, type, kind, subject, job, schedule)
select :now, r.state, 'run', cast(r.id as text), r.job, (select s.name from rota_schedule s where s.id = r.schedule_id)
from {rows id id} {then rota_run r | r.id = rows.id}
where r.job in (select job from rota_listener) or exists (select 1 from rota_listener where job = '*')
returning no;
