-- The audit trail: events that are written, and the facts from which the other events are derived.

-- name: note_event
insert into rota_event (at, kind, subject, type, actor, fence, details)
values (:now, :kind, :subject, :type, :actor, :fence, :details);

-- name: note_event_once
-- For acts that take several transactions, or cannot recognize their own repetition: `act` is a unique id in details.
insert into rota_event (at, kind, subject, type, actor, fence, details)
select :now, cast(:kind as text), cast(:subject as text), cast(:type as text), cast(:actor as text),
    cast(:fence as int), cast(:details as text)
where not exists (
    select 1 from rota_event where kind = cast(:kind as text) and subject = cast(:subject as text)
        and type = cast(:type as text) and strpos(details, cast(:act as text)) > 0);

-- name: note_events
insert into rota_event (at, kind, subject, type, actor, fence, details)
select :now, cast(:kind as text), rows.subject, cast(:type as text), rows.actor, rows.fence, rows.details
from {rows subject text, actor text, fence int, details text}
where true;

-- name: events_of
-- Descending with a limit: the newest, if there are very many.
select seq, at, kind, subject, type, actor, fence, details from rota_event
where kind = :kind and subject = :subject order by seq desc limit :limit;

-- name: run_facts
select r.created_at, r.run_at, r.state, r.fence, r.attempt, r.claimed_at, r.finished_at, r.worker_id, r.reason,
    r.cancelled_by, r.retry_of, r.metadata, r.schedule_id, s.name, r.plan_time, r.backfilled, w.hold,
    r.parent_id
from rota_run r
left join rota_ready w on w.run_id = r.id
left join rota_schedule s on s.id = r.schedule_id
where r.id = :id;

-- name: tried_facts
select fence, no, worker_id, claimed_at, ended_at, outcome, left_as, due_at, error
from rota_attempt where run_id = :id
union all
select fence, attempt, worker_id, claimed_at, null, null, null, null, null from rota_lease where run_id = :id
union all
select fence, attempt, worker_id, claimed_at, null, null, null, null, null from rota_outside where run_id = :id;

-- name: triggered_by
select actor from rota_event
where kind = 'schedule' and subject = :name and type = 'triggered' and strpos(details, :id) > 0;

-- name: newest_of_name
-- Includes deleted schedules: their trail tells who deleted them. Only they are looked for among all schedules.
select id from (select coalesce(
    (select id from rota_schedule where name = :name and deleted_at is null),
    (select id from rota_schedule where name = :name and deleted_at is not null order by created_at desc limit 1)
) as id) as named where id is not null;

-- name: revisions_told
select no, made_at, note, actor from rota_revision where schedule_id = :id order by no desc limit :limit;

-- name: drop_events_of_runs
delete from rota_event where kind = 'run' and subject in (select cast(rows.id as text) from {rows id id});

-- name: old_events
select seq from rota_event where kind <> 'run' and at < :now - :age order by at limit :limit;

-- name: drop_events
delete from rota_event where seq in (select rows.seq from {rows seq bigint});
