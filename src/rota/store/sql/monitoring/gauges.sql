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
select coalesce(sum(alive), 0), count(*) - coalesce(sum(alive), 0), coalesce(sum(alive * slots), 0)
from (select slots, case when seen_at > :now - :silence then 1 else 0 end as alive from rota_worker) as workers;

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

-- name: last_epoch
select epoch, place, since from rota_epoch order by epoch desc limit 1;
