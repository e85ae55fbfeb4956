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

-- name: unknown_runs
-- Those of these runs that are not there. None in the first epoch: then they were deleted, and not lost.
select rows.id from {rows id id} where (select max(epoch) from rota_epoch) > 0
    and not exists (select 1 from rota_run r where r.id = rows.id);

-- name: accept_epoch
update rota_epoch set accepted_at = :now, accepted_by = :actor
where epoch = :epoch and is_copy <> 0 and accepted_at is null
returning epoch;
