-- Gauges: live rows only, and not all of a very long queue.

-- name: queue_levels
select queue, state, count(*), :now - min(at)
from (
    select * from (
        select queue, case when hold in ({open}, {limited}, {restricted}) then 'queued' else 'scheduled' end as state, run_at as at
        from rota_ready limit :most
    ) as waiting
    union all
    select r.queue, case when l.cancel_at is null then 'running' else 'cancelling' end, l.claimed_at
    from rota_lease l {then rota_run r | r.id = l.run_id}
    union all
    select r.queue, case when o.cancel_at is null then 'waiting' else 'cancelling' end, o.since
    from rota_outside o {then rota_run r | r.id = o.run_id}
    union all
    select r.queue, case when c.cancel_at is null then 'waiting' else 'cancelling' end, c.since
    from rota_conduct c {then rota_run r | r.id = c.run_id}
) as live
group by queue, state order by queue, state;

-- name: worker_levels
-- A process that serves nothing but the queue of notifications is a server: it does nobody's work, and is counted apart.
select coalesce(sum(alive * (1 - is_server)), 0), coalesce(sum((1 - alive) * (1 - is_server)), 0),
    coalesce(sum(alive * (1 - is_server) * slots), 0), coalesce(sum(alive * is_server), 0)
from (
    select slots, case when seen_at > :now - :silence then 1 else 0 end as alive,
        case when queues = '["rota"]' then 1 else 0 end as is_server
    from rota_worker) as workers;

-- name: schedule_levels
select
    case
        when s.enabled = 0 then 'disabled'
        when s.paused_at is not null then 'paused'
        when s.job_paused = 1 then 'job_paused'
        when c.next_plan is null and c.awaits is null then 'ended'
        else 'active'
    end as state,
    count(*)
from rota_schedule s join rota_cursor c on c.no = s.cursor_no
where s.deleted_at is null
group by 1;

-- name: count_overdue
select count(*) from (
    select 1 from rota_schedule_now where next_at < :now - :late and deleted_at is null limit :most
) as late;

-- name: breach_levels
select kind, subject, what from rota_breach order by kind, subject, what limit :most;

-- name: standing
select e.epoch, e.since, e.is_copy, e.accepted_at, e.accepted_by, (
    select count(*) from rota_event v
    where v.kind = 'database' and v.subject = 'database' and v.type = 'run_lost' and v.at >= e.since)
from rota_epoch e order by e.epoch desc limit 1;

-- name: epoch_floor
select coalesce((select floor from rota_epoch order by epoch desc limit 1), 0);

-- name: unknown_runs
-- Claims whose runs a failover or a restore has lost: they are not there, were claimed before this epoch began (a claim of
-- this one was in the database, and deleted with its run), and were not deleted since. None in the first epoch.
select rows.id
from {rows id id, fence int}
join (select floor from rota_epoch where epoch > 0 order by epoch desc limit 1) as e on rows.fence < e.floor
where not exists (select 1 from rota_run r where r.id = rows.id)
    and not exists (
        select 1 from rota_event v
        where v.kind = 'database' and v.subject = cast(rows.id as text) and v.type = 'run_deleted');

-- name: note_outlived
-- Of runs that are to be deleted, those that somebody had when this epoch began. A worker that slept may tell of one later:
-- nothing else shows then that it was deleted, and not lost. They are as many as there were leases at that moment.
insert into rota_event (at, kind, subject, type)
select :now, 'database', cast(r.id as text), 'run_deleted'
from {rows id id} join rota_run r on r.id = rows.id
join (select floor, since from rota_epoch where epoch > 0 order by epoch desc limit 1) as e on r.finished_at >= e.since
where r.claimed_at is not null and r.fence < e.floor
    or exists (select 1 from rota_attempt a where a.run_id = r.id and a.fence < e.floor and a.ended_at >= e.since);

-- name: accept_epoch
update rota_epoch set accepted_at = :now, accepted_by = :actor
where epoch = :epoch and is_copy <> 0 and accepted_at is null
returning epoch;
