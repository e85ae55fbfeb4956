-- The hot statements in SQLite's own form. Sets travel as JSON, in and out, so that one step does a whole batch: the
-- interpreter's lock is released for its length, and handlers go on meanwhile.

-- name: pauses
select kind, name from rota_pause;

-- name: claim_candidates
select json_group_array(json_array(run_id, fence, attempt, job, job_version, payload, queue, rank, run_at, scope_kind,
    scope_id, key, overrides, origin_id, max_attempts, on_lost, created_at, plan_time, covers_from, missed_count,
    solo))
from (
    select w.run_id, greatest(w.fence + 1, {fence_floor}) as fence, w.attempt + 1 as attempt, r.job, r.job_version,
        r.payload, w.queue, w.rank,
        w.run_at, r.scope_kind, r.scope_id, r.key, r.overrides, r.origin_id, r.max_attempts, r.on_lost, r.created_at,
        r.plan_time, r.covers_from, r.missed_count, w.solo
    from rota_ready w join rota_run r on r.id = w.run_id
    where w.hold = {open} and w.queue = :queue and (w.rank, w.run_at, w.run_id) > (:rank, :run_at, :id)
        and (w.rank, w.run_at, w.run_id) < (:before_rank, :before_run_at, :before_id) and w.solo <= :solo
        and w.job_version <= coalesce((select value from json_each(:known) where key = w.job), 0)
    order by w.rank, w.run_at, w.run_id
    limit :wanted);

-- name: lease
insert into rota_lease (run_id, fence, attempt, worker_id, claimed_at, expires_at)
select value ->> 0, value ->> 1, value ->> 2, :worker_id, :now, :now + :lease from json_each(:claims);

-- name: take
delete from rota_ready where run_id in (select value ->> 0 from json_each(:claims));

-- name: end_successes
-- Fenced: a zombie's late answer finds no lease.
update rota_run set state = 'succeeded', attempt = l.attempt, fence = l.fence, claimed_at = l.claimed_at,
    started_at = :now - rows.busy, finished_at = :now, worker_id = l.worker_id, result = rows.result,
    measures = rows.measures
from {rows id id, fence int, busy bigint, result text, measures text}
join rota_lease l on l.run_id = rows.id and l.fence = rows.fence
where rota_run.id = l.run_id;

-- name: followed_among
select distinct after_id from rota_wait where after_id in (select value from json_each(:current));

-- name: release
delete from rota_lease where run_id in (select value from json_each(:current));

-- name: current_leases
select json_group_array(l.run_id), exists (select 1 from rota_wait), exists (select 1 from rota_listener)
from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence;

-- name: insert_run
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, key, payload, tags, metadata,
    overrides, max_attempts, on_lost, retry_of, origin_id, created_at, run_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_ready
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key)
values (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?);

-- name: insert_gate
-- On a connection that is not ours.
insert into rota_gate (run_id, key, place, max, period) values (:run_id, :key, :place, :max, :period);

-- name: hold_back
-- Its limit is not touched: other people's transactions are long. The promoter sees to it once the run is there.
update rota_ready set hold = {limited_later} where run_id = :run_id;

-- name: plain_head
select w.rank, w.run_at, w.run_id from rota_ready w
where w.hold = {open} and w.queue = :queue and (w.rank, w.run_at, w.run_id) > (:rank, :run_at, :id) and w.solo <= 0
    and w.job_version <= coalesce((select value from json_each(:known) where key = w.job), 0)
order by w.rank, w.run_at, w.run_id
limit 1;

-- name: solo_candidates
select w.run_id, w.rank, w.run_at, w.solo from rota_ready w
where w.hold = {open} and w.solo > 0 and w.queue = :queue and w.solo <= :solo
    and w.job_version <= coalesce((select value from json_each(:known) where key = w.job), 0)
order by w.rank, w.run_at, w.run_id
limit :wanted;

-- name: beside_plain
-- All needs, and whether any limit is open.
select id from rota_need union all select null where exists (select 1 from rota_limit where shut = 0);

-- name: open_keys
-- Limits under which a run waits that this worker may have, with the first one; and, without one, those under which nobody
-- waits any more.
select key, at_least, served_at, rank, run_at, run_id from (
select l.key, l.served_at, l.at_least, w.rank, w.run_at, w.run_id from (
    select o.key, o.served_at, o.rank as at_least, case when o.job is null or o.job in (select key from json_each(:known)) then (
        select w.run_id from rota_ready w
        where w.hold = {limited} and w.limit_key = o.key and w.queue = :queue and w.solo <= :solo
            and (w.need is null or w.need in (select value from json_each(:requirements))
                and (substr(w.need, 1, 1) <> '*' or not exists (
                    select 1 from rota_replica p join rota_replica a on a.parent_id = p.parent_id and a.cleared = 0
                    where p.run_id = w.run_id and a.worker = :name)))
            and w.job_version <= coalesce((select value from json_each(:known) where key = w.job), 0)
        order by w.rank, w.run_at, w.run_id limit 1) end as first
    from rota_limit o
    where o.shut = 0 and (o.rank, o.served_at, o.key) > (:after_rank, :after_served_at, :after_key)) as l
left join rota_ready w on w.run_id = l.first
where l.first is not null or l.served_at < :now - :idle
    and not exists (select 1 from rota_ready w where w.hold = {limited} and w.limit_key = l.key)
order by l.at_least, l.served_at, l.key
limit :limit)
order by served_at, key;

-- name: limited_candidates
-- Of each key up to so many; a limit cannot differ from key to key. Of replicas that are nobody's, those whose parent this worker has none of.
select asked.value, w.run_id, w.rank, w.run_at, w.solo, case when substr(w.need, 1, 1) = '*' then 1 else 0 end,
    (select json_group_array(g.key) from (
        select key from rota_gate where run_id = w.run_id and place > 0 order by place) as g)
from json_each(:keys) as asked cross join rota_ready w on w.run_id in (
    select c.run_id from rota_ready c
    where c.hold = {limited} and c.limit_key = asked.value and c.queue = :queue and c.solo <= :solo
        and (c.need is null or c.need in (select value from json_each(:requirements))
            and (substr(c.need, 1, 1) <> '*' or not exists (
                select 1 from rota_replica p join rota_replica o on o.parent_id = p.parent_id and o.cleared = 0
                where p.run_id = c.run_id and o.worker = :name)))
        and c.job_version <= coalesce((select value from json_each(:known) where key = c.job), 0)
    order by c.rank, c.run_at, c.run_id
    limit :wanted);

-- name: needed_candidates
select w.run_id, w.rank, w.run_at, w.solo from rota_ready w
where w.hold = {restricted} and w.need = :need and w.queue = :queue and w.solo <= :solo
    and w.job_version <= coalesce((select value from json_each(:known) where key = w.job), 0)
order by w.rank, w.run_at, w.run_id
limit :wanted;

-- name: open_replicas
-- One of each parent, if this worker has none of them.
select run_id, rank, run_at, solo, parent_id
from (
    select w.run_id, w.rank, w.run_at, w.solo, p.parent_id,
        row_number() over (partition by p.parent_id order by w.rank, w.run_at, w.run_id) as place
    from json_each(:requirements) as asked join rota_ready w on w.need = asked.value
    join rota_replica p on p.run_id = w.run_id
    where w.hold = {restricted} and w.queue in (select value from json_each(:queues)) and w.solo <= :solo
        and w.job_version <= coalesce((select value from json_each(:known) where key = w.job), 0)
        and not exists (
            select 1 from rota_replica o where o.parent_id = p.parent_id and o.worker = :name and o.cleared = 0)
    )
where place = 1
order by rank, run_at, run_id
limit :wanted;

-- name: enter_gates
-- Nobody holds a slot of a rate.
update rota_gate set fence = rows.fence from {rows id id, fence int}
where rota_gate.run_id = rows.id and rota_gate.period is null;

-- name: limited_claims
select json_group_array(json_array(w.run_id, greatest(w.fence + 1, {fence_floor}), w.attempt + 1, r.job, r.job_version, r.payload, w.queue,
    w.rank, w.run_at, r.scope_kind, r.scope_id, r.key, r.overrides, r.origin_id, r.max_attempts, r.on_lost,
    r.created_at, r.plan_time, r.covers_from, r.missed_count, w.solo))
from json_each(:ids) as ids join rota_ready w on w.run_id = ids.value join rota_run r on r.id = w.run_id;

-- name: lock_due
-- One planned with newer time zone data is left to a program that has it, unless nobody comes. Whether any schedule has
-- lanes of its own is asked once: mostly none.
select c.no, c.schedule_id, c.said, c.said_at,
    case when exists (select 1 from rota_lane) and exists (select 1 from rota_lane n where n.schedule_id = c.schedule_id)
        or exists (select 1 from rota_lane_run)
            and exists (select 1 from rota_lane_run m where m.schedule_id = c.schedule_id) then 1 else 0 end,
    {cursor_facts}, c.rowid
from rota_cursor c
where c.next_at <= :now and (c.tzdata <= :tzdata or c.next_at <= :now - :patience)
    and (c.provider is null or c.provider in (select rows.name from {rows name text}))
order by c.next_at, c.no
limit :limit;

-- name: insert_planned
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, tags, metadata, overrides,
    max_attempts, on_lost, created_at, run_at, schedule_id, plan_time, covers_from, missed_count, state, reason,
    attempt, fence, finished_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (schedule_id, scope_kind, scope_id, plan_time) where schedule_id is not null and retry_of is null
do nothing;

-- name: insert_cursor
insert into rota_cursor (no, cursor_at, next_plan, next_at, tzdata, provider)
values ((select coalesce(max(no), 0) + 1 from rota_cursor), :cursor_at, :next_plan, :next_at, :tzdata, :provider)
returning no;

-- name: advance_in_place
-- As `advance_cursors`, by where their rows are.
insert into rota_cursor (rowid, no, cursor_at, next_plan, next_at, open_plan, fired, awaits, tzdata)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (rowid) do update set cursor_at = excluded.cursor_at, next_plan = excluded.next_plan,
    next_at = excluded.next_at, open_plan = excluded.open_plan, fired = excluded.fired, awaits = excluded.awaits,
    tzdata = excluded.tzdata, trouble = null;

-- name: last_rowid
select coalesce(max(rowid), 0) from rota_cursor;

-- name: move_cursors
update rota_cursor set rowid = ? where rowid = ?;

-- name: advance_cursors
-- They are there: as an insert that never inserts, it takes many rows at once.
insert into rota_cursor (no, cursor_at, next_plan, next_at, open_plan, fired, awaits, tzdata)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (no) do update set cursor_at = excluded.cursor_at, next_plan = excluded.next_plan,
    next_at = excluded.next_at, open_plan = excluded.open_plan, fired = excluded.fired, awaits = excluded.awaits,
    tzdata = excluded.tzdata, trouble = null;

-- name: some_scopes
-- Of each schedule the first few, however many it has.
select rows.schedule_id, p.scope_kind, p.scope_id from {rows schedule_id id}
cross join rota_scope_span p on p.schedule_id = rows.schedule_id and (p.scope_kind, p.scope_id, p.since) in (
    select scope_kind, scope_id, since from rota_scope_span where schedule_id = rows.schedule_id and until is null
    order by scope_kind, scope_id limit :limit
);

-- name: recent_runs
-- Not of the view: its joins would be made before the few runs are chosen that it is asked for.
select rows.schedule_id, r.id, r.plan_time, r.run_at,
    coalesce(r.state,
        (select case when cancel_at is null then 'running' else 'cancelling' end from rota_lease where run_id = r.id),
        (select case when cancel_at is null then 'waiting' else 'cancelling' end from rota_outside where run_id = r.id),
        (select case when cancel_at is null then 'waiting' else 'cancelling' end from rota_conduct where run_id = r.id),
        (select case when hold in ({open}, {limited}, {restricted}) then 'queued' else 'scheduled' end from rota_ready where run_id = r.id),
        'queued'),
    (select min(started_at) from rota_attempt where run_id = r.id),
    case when r.state is not null then r.started_at else coalesce(
        (select claimed_at from rota_lease where run_id = r.id),
        (select coalesce(began_at, claimed_at) from rota_outside where run_id = r.id),
        (select since from rota_conduct where run_id = r.id)) end,
    r.finished_at
from {rows schedule_id id, scope_kind text, scope_id text}
cross join rota_run r on r.id in (
    select p.id from rota_run p
    where p.schedule_id = rows.schedule_id and p.scope_kind = rows.scope_kind and p.scope_id = rows.scope_id
        and p.plan_time is not null and p.retry_of is null
    order by p.plan_time desc limit :limit
);
