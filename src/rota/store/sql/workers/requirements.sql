-- Runs for workers that meet their needs, and the replicas of a run.

-- name: known_needs
select id, definition from rota_need;

-- name: make_needs
insert into rota_need (id, definition)
select rows.id, rows.definition from {rows id text, definition text} where true
on conflict (id) do nothing;

-- name: keep_needs
-- Until the end of this transaction, in which a run comes to have them. One that is being dropped is waited for.
select n.id from {rows id text} join rota_need n on n.id = rows.id order by n.id {for_key_share n};

-- name: unused_needs
-- Looked for only if there are many. A replica that waits for its worker is known by its parent.
select n.id from rota_need n
where (select count(*) from rota_need) > :many and n.id <> '*' and n.id not in (
    select ltrim(w.need, '+*') from rota_ready w where w.need is not null
    union
    select ltrim(r.need, '+*') from (
        select run_id from rota_lease union all select run_id from rota_outside union all
        select run_id from rota_conduct) as held
    {then rota_run r | r.id = held.run_id}
    where r.need is not null)
order by n.id limit :limit;

-- name: lock_needs
-- Those that no enqueue is about to use.
select n.id from {rows id text} join rota_need n on n.id = rows.id order by n.id {for_update_skip n};

-- name: drop_needs
delete from rota_need where id in (select rows.id from {rows id text}) returning id;

-- name: assign_needs
update rota_run set need = rows.need from {rows id id, need text} where rota_run.id = rows.id;

-- name: hold_for_needs
-- What waits for its limits or for other runs goes on waiting for them. What conducts never runs itself: its replicas
-- wait for its limits, and no claim would ever find it there.
update rota_ready set need = rows.need, limit_key = case when substr(rows.need, 1, 1) = '+' then null else limit_key end,
    hold = case when hold = {blocked} then {blocked} else {hold_of limit_key | rows.need | hold in ({later}, {parent})} end
from {rows id id, need text} where rota_ready.run_id = rows.id;

-- name: promote_needed
-- Taken first, then updated: the walk along the index stops at the limit, however many wait.
with taken as materialized (
    select run_id from rota_ready where hold = {restricted_later} and run_at <= :now order by run_at limit :limit {for_update_skip})
update rota_ready set hold = {restricted}
where run_id in (select run_id from taken)
returning run_id, queue, limit_key, rank;

-- name: live_with_needs
-- Of a job: those that have needs now, and all of them if they come to have some. Crossed: SQLite would otherwise begin
-- with all runs that the job ever had.
select r.id, r.overrides, r.need, r.queue from rota_ready w {then rota_run r | r.id = w.run_id}
where (w.job = :job or exists (select 1 from rota_stage s where s.run_id = w.run_id)) and r.job = :job
    and (r.need is not null or cast(:need as text) is not null)
union all
select r.id, r.overrides, r.need, r.queue from rota_lease l {then rota_run r | r.id = l.run_id}
where r.job = :job and (r.need is not null or cast(:need as text) is not null)
union all
select r.id, r.overrides, r.need, r.queue from rota_conduct c {then rota_run r | r.id = c.run_id}
where r.job = :job;

-- name: lock_leases_to_restrict
-- Leases first, then what is ready, then runs: the order of reports and cancels.
select l.run_id, l.fence, l.worker_id, l.cancel_at from {rows id id} join rota_lease l on l.run_id = rows.id
order by l.run_id {for_update l};

-- name: lock_ready_of
-- After leases: a run that was claimed in between is met there in the next round.
select w.run_id, w.fence from {rows id id} join rota_ready w on w.run_id = rows.id order by w.run_id {for_update w};

-- name: neither_held_nor_ready
-- They are over, in other hands, or asked to stop: there is nothing to take away or to claim.
select r.id from {rows id id} join rota_run r on r.id = rows.id
where r.state is not null or 1 = (select 1 from rota_conduct c where c.run_id = r.id limit 1)
    or 1 = (select 1 from rota_outside o where o.run_id = r.id limit 1)
    or 1 = (select 1 from rota_lease l where l.run_id = r.id and l.cancel_at is not null limit 1);

-- name: needs_of_run
select r.id, r.job, r.state, r.overrides, r.need, n.definition, r.queue, cast(r.parent_id as text)
from rota_run r left join rota_need n on n.id = case
    when substr(r.need, 1, 1) in ('+', '*') then substr(r.need, 2) else r.need end
where r.id = :id;

-- name: fence_elsewhere
-- Of one that is neither ready nor leased, and not over.
select fence from rota_conduct where run_id = :id
union all
select fence from rota_outside where run_id = :id;

-- name: override_needs
update rota_run set overrides = :overrides where id = :id and state is null returning id;
