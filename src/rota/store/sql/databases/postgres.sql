-- The hot statements in PostgreSQL's own form: one round trip, arrays in, one command.

-- name: enqueue_plain
-- Runs enqueued together differ mostly in id and payload: the rest comes as a few shapes, numbered from 1.
-- Inserts nothing if there are live limits, and the caller has not asked for those of its runs.
with at as materialized (
    select :now as now, cast(:asked as bool) or not exists (select 1 from rota_quota where scope_kind = '') as asked),
new as materialized (
    select rows.id, rows.payload, rows.shape,
        coalesce((:run_ats::bigint[])[shape], at.now + (:delays::bigint[])[shape]) as run_at
    from {rows id id, payload text, shape int}, at where at.asked),
run as (
    insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, key, payload, tags, metadata,
        overrides, max_attempts, on_lost, retry_of, origin_id, created_at, run_at)
    select id, (:jobs::text[])[shape], (:job_versions::int[])[shape], (:queues::text[])[shape],
        (:priorities::int[])[shape], (:scope_kinds::text[])[shape], (:scope_ids::text[])[shape],
        (:keys::text[])[shape], payload, (:tags::text[])[shape], (:metadata::text[])[shape],
        (:overrides::text[])[shape], (:max_attempts::int[])[shape], (:on_losts::text[])[shape],
        (:retry_ofs::uuid[])[shape], (:origin_ids::uuid[])[shape], at.now, run_at
    from new, at),
ready as (
    insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key)
    select id, (:queues::text[])[shape], -(:priorities::int[])[shape], run_at,
        {hold_of (:limit_keys::text[])[shape] | null | run_at > at.now},
        case when (:on_losts::text[])[shape] = 'fail' then 1 else 0 end,
        0, 0, (:jobs::text[])[shape], (:job_versions::int[])[shape], (:limit_keys::text[])[shape]
    from new, at)
select now from at where asked;

-- name: enqueue_alike
-- The same for runs of one shape. To look it up for each row took a sixth of PostgreSQL's time.
{alike enqueue_plain}

-- name: claim
-- Skips what others have: claims never wait. It walks the index of what is open, in order, from where the worker was.
with at as materialized (select :now as now),
candidate as (
    select found.place
    from unnest(:queues::text[], :limits::int[], :ranks::int[], :run_ats::bigint[], :ids::uuid[])
        as asked(queue, wanted, rank, run_at, id)
    cross join lateral (
        select w.ctid as place from rota_ready w
        where w.hold = {open} and w.queue = asked.queue
            and (w.rank, w.run_at, w.run_id) > (asked.rank, asked.run_at, asked.id)
            and (w.rank, w.run_at, w.run_id) < (:before_rank::int, :before_run_at::bigint, :before_id::uuid)
            and w.solo <= :solo
            and w.job = any(:jobs::text[])
            and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
            and w.job <> all(array(select name from rota_pause where kind = 'job'))
        order by w.queue, w.rank, w.run_at, w.run_id
        limit asked.wanted
        for update skip locked) as found
    where asked.queue <> all(array(select name from rota_pause where kind = 'queue'))),
taken as (
    delete from rota_ready where ctid = any(array(select place from candidate))
    returning run_id, queue, rank, run_at, attempt, fence, solo),
leased as (
    insert into rota_lease (run_id, fence, attempt, worker_id, claimed_at, expires_at, cancel_at)
    select run_id, greatest(fence + 1, {fence_floor}), attempt + 1, :worker_id, at.now, at.now + :lease, null from taken, at)
select r.id, greatest(taken.fence + 1, {fence_floor}), taken.attempt + 1, r.job, r.job_version, r.payload, taken.queue, taken.rank,
    taken.run_at, r.scope_kind, r.scope_id, r.key, r.overrides, r.origin_id::text, r.max_attempts, r.on_lost,
    r.created_at, r.plan_time, r.covers_from, r.missed_count, taken.solo
from taken join rota_run r on r.id = taken.run_id;

-- part: complete
with at as materialized (select :now as now),
done as (
    delete from rota_lease l using {rows id id, fence int, busy bigint, result text, measures text}
    where l.run_id = rows.id and l.fence = rows.fence
    returning l.run_id, l.fence, l.attempt, l.worker_id, l.claimed_at, rows.busy, rows.result, rows.measures),
ended as (
    update rota_run r set state = 'succeeded', attempt = done.attempt, fence = done.fence,
        claimed_at = done.claimed_at, started_at = at.now - done.busy, finished_at = at.now,
        worker_id = done.worker_id, result = done.result, measures = done.measures
    from done, at where r.id = done.run_id
    returning r.id, r.job, r.schedule_id, case when r.followed = 1 then r.id end as followed),
told as (
    insert into rota_signal (at, type, kind, subject, job, schedule)
    select at.now, 'succeeded', 'run', cast(ended.id as text), ended.job,
        (select name from rota_schedule s where s.id = ended.schedule_id)
    from ended, at where ended.job = any(array(select job from rota_listener))
        or exists (select 1 from rota_listener where job = '*')
    returning 1)

-- part: completed
select count(*), case when count(*) < :expected then array_agg(run_id) end,
    (select array_agg(followed) from ended where followed is not null), exists (select 1 from told)

-- name: complete
-- Mostly all of them: then their number says enough.
{part complete}
{part completed}
from done;

-- name: complete_limited
-- With the gates of those that have some. Of each limit with slots, once, the place that it had for the run nearest to it.
{part complete},
left_gates as (delete from rota_gate g using done where g.run_id = done.run_id returning g.key, g.place, g.period),
freed as (select key, min(place) as place from left_gates where period is null group by key)
{part completed},
    (select array_agg(key order by key) from freed), (select array_agg(place order by key) from freed)
from done;

-- name: extend
-- Skips leases that a completion holds at this moment: waiting for them could deadlock, and they need no renewal.
with mine as (
    select l.run_id from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence
    for no key update of l skip locked)
update rota_lease l set expires_at = :now + :lease from mine where l.run_id = mine.run_id
returning l.run_id, case when l.cancel_at is null then 0 else 1 end;

-- name: enqueue_one
-- As above, of one run.
with run as (
    insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, key, payload, tags, metadata,
        overrides, max_attempts, on_lost, retry_of, origin_id, created_at, run_at)
    select cast(:id as uuid), cast(:job as text), cast(:job_version as int), cast(:queue as text),
        cast(:priority as int), cast(:scope_kind as text), cast(:scope_id as text), cast(:key as text),
        cast(:payload as text), cast(:tags as text), cast(:metadata as text), cast(:overrides as text),
        cast(:max_attempts as int), cast(:on_lost as text), cast(:retry_of as uuid), cast(:origin_id as uuid),
        at.now, coalesce(cast(:run_at as bigint), at.now + cast(:delay as bigint))
    from (select :now as now offset 0) as at
    where cast(:asked as bool) or not exists (select 1 from rota_quota where scope_kind = '')
    returning id, job, job_version, queue, priority, on_lost, created_at, run_at)
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key)
select id, queue, -priority, run_at,
    {hold_of cast(:limit_key as text) | null | run_at > created_at},
    case when on_lost = 'fail' then 1 else 0 end, 0, 0, job, job_version, cast(:limit_key as text)
from run
returning (select created_at from run);

-- name: insert_gate
-- On a connection that is not ours.
insert into rota_gate (run_id, key, place, max, period)
values (cast(:run_id as uuid), cast(:key as text), cast(:place as int), cast(:max as int), cast(:period as bigint));

-- name: hold_back
-- Its limit is not touched: other people's transactions are long. The promoter sees to it once the run is there.
update rota_ready set hold = {limited_later} where run_id = cast(:run_id as uuid);

-- name: heads
-- The first plain and the first solo run of each queue; all needs; the open limits, as `open_keys`.
select 0, found.queue, found.rank, found.run_at, found.run_id::text, '', 0, 0::bigint
from unnest(:queues::text[], :ranks::int[], :run_ats::bigint[], :ids::uuid[]) as asked(queue, rank, run_at, id)
cross join lateral (
    select w.queue, w.rank, w.run_at, w.run_id from rota_ready w
    where w.hold = {open} and w.queue = asked.queue
        and (w.rank, w.run_at, w.run_id) > (asked.rank, asked.run_at, asked.id)
        and w.solo <= 0
        and w.job = any(:jobs::text[])
        and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
        and w.job <> all(array(select name from rota_pause where kind = 'job'))
    order by w.queue, w.rank, w.run_at, w.run_id
    limit 1) as found
where asked.queue <> all(array(select name from rota_pause where kind = 'queue'))
union all
select 1, found.queue, found.rank, found.run_at, found.run_id::text, '', 0, 0
from unnest(:queues::text[]) as asked(queue)
cross join lateral (
    select w.queue, w.rank, w.run_at, w.run_id from rota_ready w
    where w.hold = {open} and w.solo > 0 and w.queue = asked.queue and w.solo <= :solo
        and w.job = any(:jobs::text[])
        and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
        and w.job <> all(array(select name from rota_pause where kind = 'job'))
    order by w.queue, w.rank, w.run_at, w.run_id
    limit 1) as found
where asked.queue <> all(array(select name from rota_pause where kind = 'queue'))
union all
select 2, id, 0, 0, '', '', 0, 0 from rota_need
union all
select 3, open.* from (
    {part open_keys}) as open;

-- name: solo_candidates
select found.run_id, found.rank, found.run_at, found.solo
from unnest(:queues::text[]) as here(queue)
cross join lateral (
    select w.run_id, w.rank, w.run_at, w.solo from rota_ready w
    where w.hold = {open} and w.solo > 0 and w.queue = here.queue and w.solo <= :solo
        and w.job = any(:jobs::text[])
        and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
        and w.job <> all(array(select name from rota_pause where kind = 'job'))
    order by w.queue, w.rank, w.run_at, w.run_id
    limit :wanted
    for update skip locked) as found
where here.queue <> all(array(select name from rota_pause where kind = 'queue'));

-- part: open_keys
select here.queue, open.rank, open.run_at, open.run_id::text, open.key, open.at_least, open.served_at
from unnest(:queues::text[]) as here(queue)
cross join lateral (
    select l.key, l.served_at, l.rank as at_least, first.rank, first.run_at, first.run_id from rota_limit l
    left join lateral (
        select w.rank, w.run_at, w.run_id from rota_ready w
        where (l.job is null or l.job = any(:jobs::text[]))
            and w.hold = {limited} and w.limit_key = l.key and w.queue = here.queue and w.job = any(:jobs::text[])
            and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
            and w.solo <= :solo
            and (w.need is null or w.need = any(:requirements::text[]) and (substr(w.need, 1, 1) <> '*' or (
                select 1 from rota_replica p join rota_replica o on o.parent_id = p.parent_id and o.cleared = 0
                where p.run_id = w.run_id and o.worker = :name limit 1) is null))
            and w.job <> all(array(select name from rota_pause where kind = 'job'))
            and w.queue <> all(array(select name from rota_pause where kind = 'queue'))
        order by w.rank, w.run_at, w.run_id
        limit 1) as first on true
    where l.shut = 0 and (l.rank, l.served_at, l.key) > (:after_rank::int, :after_served_at::bigint, :after_key::text)
        and (first.run_id is not null or l.served_at < :now - :idle
        and (select 1 from rota_ready w where w.hold = {limited} and w.limit_key = l.key limit 1) is null)
    order by l.rank, l.served_at, l.key
    limit :limit) as open
order by open.served_at, open.key

-- name: open_keys
-- Limits under which a run waits that this worker may have, with the first one in each queue; and, without one, those
-- under which nobody waits any more; those first that may have the highest priority. `limit 1` keeps it a probe for each limit: an `exists` may be answered by a hash of
-- all runs that wait.
{part open_keys};

-- part: limited_run
cross join lateral (
    select w.run_id, w.rank, w.run_at, w.solo, case when substr(w.need, 1, 1) = '*' then 1 else 0 end as open
    from rota_ready w
    where w.hold = {limited} and w.limit_key = asked.key and w.queue = place.queue and w.job = any(:jobs::text[])
        and w.solo <= :solo
        and (w.need is null or w.need = any(:requirements::text[]) and (substr(w.need, 1, 1) <> '*' or (
            select 1 from rota_replica p join rota_replica o on o.parent_id = p.parent_id and o.cleared = 0
            where p.run_id = w.run_id and o.worker = :name limit 1) is null))
        and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
        and w.job <> all(array(select name from rota_pause where kind = 'job'))
    order by w.rank, w.run_at, w.run_id
    limit asked.wanted
    for update skip locked) as found
where place.queue <> all(array(select name from rota_pause where kind = 'queue'))

-- part: limited_columns
found.run_id, found.solo, found.open, found.rank, found.run_at,
    array(select g.key from rota_gate g where g.run_id = found.run_id and g.place > 0 order by g.place)

-- name: limited_candidates
-- Of replicas that are nobody's, those whose parent this worker has none of.
select asked.key, {part limited_columns}
from unnest(:keys::text[], :wanted::int[]) as asked(key, wanted)
cross join unnest(:queues::text[]) as place(queue)
{part limited_run}
order by found.rank, found.run_at, found.run_id;

-- name: counted_candidates
-- What is free under each limit, and the runs for it, as many as `fair_asks` says: one round trip after the locks.
with used as materialized ({part in_use}),
asked as materialized (
    select used.*, case when free > 0 then least(free, :slots::int, (:slots + fair.count - 1) / fair.count + 1) else 0 end as wanted
    from used, (select greatest(1, count(*)::int) as count from used where free > 0) as fair)
select asked.key, asked.now, asked.free, asked.ahead, asked.stale, asked.wanted, null, 0, 0, 0, 0, null
from asked
union all
(select asked.key, 0, 0, 0, 0, 0, {part limited_columns}
from asked
cross join unnest(:queues::text[]) as place(queue)
{part limited_run} and asked.wanted > 0
order by found.rank, found.run_at, found.run_id);

-- name: open_limits
-- What the shared one does, and `opened_limits`.
with rows as materialized (select rows.key, rows.place from {rows key text, place int}),
opened as (
    update rota_limit set shut = 0, blocked_by = null from rows where {part is_opened})
{part opened_limits}
from rows;

-- name: needed_candidates
-- Of the same instant, those that name this worker first. Locked; what is too many is let go at the end.
select found.run_id, found.rank, found.run_at, asked.preferred, found.solo
from unnest(:requirements::text[], :preferred::int[]) as asked(need, preferred)
cross join unnest(:queues::text[]) as here(queue)
cross join lateral (
    select w.run_id, w.rank, w.run_at, w.solo from rota_ready w
    where w.hold = {restricted} and w.need = asked.need and w.queue = here.queue and w.job = any(:jobs::text[])
        and w.solo <= :solo
        and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
        and w.job <> all(array(select name from rota_pause where kind = 'job'))
    order by w.rank, w.run_at, w.run_id
    limit :wanted
    for update skip locked) as found
where here.queue <> all(array(select name from rota_pause where kind = 'queue'))
order by found.rank, found.run_at, asked.preferred, found.run_id
limit :wanted;

-- name: needed_head
-- A worker that only looks must not keep others from them.
{unlocked needed_candidates}

-- name: open_replicas
-- One of each parent, if this worker has none of them. Not locked: its parent is, first. Among the first few: others of the
-- same parents come next, and are none of its business once it has one. `limit 1` makes probes of the rest, so that the
-- ready ones are gone through in their order.
select found.run_id, found.rank, found.run_at, found.solo, found.parent_id
from (
    select first.run_id, first.rank, first.run_at, first.solo, first.parent_id,
        row_number() over (partition by first.parent_id order by first.rank, first.run_at, first.run_id) as place
    from unnest(:requirements::text[]) as asked(need)
    cross join unnest(:queues::text[]) as here(queue)
    cross join lateral (
        select w.run_id, w.rank, w.run_at, w.solo, p.parent_id from rota_ready w
        cross join lateral (select parent_id from rota_replica where run_id = w.run_id limit 1) as p
        where w.hold = {restricted} and w.need = asked.need and w.queue = here.queue and w.job = any(:jobs::text[])
            and w.solo <= :solo
            and w.job_version <= (:versions::int[])[array_position(:jobs::text[], w.job)]
            and w.job <> all(array(select name from rota_pause where kind = 'job'))
            and (select 1 from rota_replica o
                where o.parent_id = p.parent_id and o.worker = :name and o.cleared = 0 limit 1) is null
        order by w.rank, w.run_at, w.run_id
        limit :walk) as first
    where here.queue <> all(array(select name from rota_pause where kind = 'queue'))
    ) as found
where found.place = 1
order by found.rank, found.run_at, found.run_id
limit :wanted;

-- name: absent_replicas
-- Those that wait for their worker, and when it was heard of last. `offset 0` keeps it a probe for each parent,
-- and for each of its replicas: the planner may take a table that it knows nothing of for an empty one, and begin with it.
select p.run_id, p.worker, p.bound, c.policy, c.since,
    (select max(k.seen_at) from rota_worker k where k.name = p.worker),
    (select max(a.ended_at) from rota_attempt a where a.run_id = p.run_id)
from {rows id id}
cross join lateral (select run_id, policy, since from rota_conduct where run_id = rows.id offset 0) as c
cross join lateral (
    select run_id, worker, bound from rota_replica
    where parent_id = c.run_id and worker is not null and cleared = 0 offset 0) as p
where 1 = (select 1 from rota_ready w where w.run_id = p.run_id limit 1)
order by p.run_id;

-- part: take
with at as materialized (select :now as now),
taken as (
    delete from rota_ready w using {rows id id} where w.run_id = rows.id
    returning w.run_id, w.queue, w.rank, w.run_at, w.attempt, w.fence, w.solo),
leased as (
    insert into rota_lease (run_id, fence, attempt, worker_id, claimed_at, expires_at, cancel_at)
    select run_id, greatest(fence + 1, {fence_floor}), attempt + 1, :worker_id, at.now, at.now + :lease, null from taken, at)

-- part: taken
select r.id, greatest(taken.fence + 1, {fence_floor}), taken.attempt + 1, r.job, r.job_version, r.payload, taken.queue, taken.rank,
    taken.run_at, r.scope_kind, r.scope_id, r.key, r.overrides, r.origin_id::text, r.max_attempts, r.on_lost,
    r.created_at, r.plan_time, r.covers_from, r.missed_count, taken.solo
from taken join rota_run r on r.id = taken.run_id

-- name: take_restricted
{part take}
{part taken};

-- name: take_limited
-- Into its gates with the fence of the new lease: the report of an earlier attempt must not give this slot back. Nobody
-- holds a slot of a rate. The limits, which are locked, change with it.
{part take},
entered as (
    update rota_gate g set fence = greatest(taken.fence + 1, {fence_floor}) from taken
    where g.run_id = taken.run_id and g.period is null),
changed as (
    update rota_limit set {part change_limit}
    from unnest(:keys::text[], :shuts::int[], :blockers::text[], :serveds::int[], :openings::bigint[])
        as rows(key, shut, blocked_by, served, opens_at)
    where rota_limit.key = rows.key)
{part taken};

-- name: lock_due
-- One planned with newer time zone data is left to a program that has it, unless nobody comes. As a text, an id is nothing
-- that the collector of garbage has to go through.
select no, schedule_id::text, said, said_at, 0, {cursor_facts} from rota_cursor
where next_at <= :now and (tzdata <= :tzdata or next_at <= :now - :patience)
    and (provider is null or provider in (select rows.name from {rows name text}))
order by next_at, no
limit :limit
for update skip locked;

-- name: with_lanes
-- Asked after their cursors are locked: whoever changed one meanwhile has committed it. Mostly none; but whether there are
-- any at all is not asked first: that would go through all dead ones, for as long as an old transaction keeps them.
select rows.id from {rows id id}
where 1 = (select 1 from rota_lane n where n.schedule_id = rows.id limit 1)
    or 1 = (select 1 from rota_lane_run m where m.schedule_id = rows.id limit 1);

-- name: insert_planned
-- The key makes any number of planners safe; the cursor, that they never meet here. Mostly all of them are new: then
-- their number says enough.
with made as (
    insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, tags, metadata,
        overrides, max_attempts, on_lost, created_at, run_at, schedule_id, plan_time, covers_from, missed_count, state, reason,
        attempt, fence, finished_at)
    select rows.id, rows.job, rows.job_version, rows.queue, rows.priority, rows.scope_kind, rows.scope_id, rows.payload,
        rows.tags, rows.metadata, rows.overrides, rows.max_attempts, rows.on_lost, rows.created_at, rows.run_at,
        rows.schedule_id, rows.plan_time, rows.covers_from, rows.missed_count, rows.state, rows.reason, rows.attempt,
        rows.fence, rows.finished_at
    from {rows id id, job text, job_version int, queue text, priority int, scope_kind text, scope_id text, payload text,
        tags text, metadata text, overrides text, max_attempts int, on_lost text, created_at bigint, run_at bigint,
        schedule_id id, plan_time bigint, covers_from bigint, missed_count bigint, state text, reason text, attempt int,
        fence int, finished_at bigint}
    where true
    on conflict (schedule_id, scope_kind, scope_id, plan_time) where schedule_id is not null and retry_of is null
    do nothing
    returning id)
select count(*), case when count(*) < :expected then array_agg(id) end from made;

-- name: change_mark
-- Any transaction that ends moves its upper bound.
select pg_current_snapshot()::text;

-- name: some_scopes
-- Of each schedule the first few, however many it has.
select rows.schedule_id, p.scope_kind, p.scope_id from {rows schedule_id id}
cross join lateral (
    select scope_kind, scope_id from rota_scope_span where schedule_id = rows.schedule_id and until is null
    order by scope_kind, scope_id limit :limit
) as p;

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
cross join lateral (
    select p.id, p.plan_time, p.run_at, p.state, p.started_at, p.finished_at from rota_run p
    where p.schedule_id = rows.schedule_id and p.scope_kind = rows.scope_kind and p.scope_id = rows.scope_id
        and p.plan_time is not null and p.retry_of is null
    order by p.plan_time desc limit :limit
) as r;

-- name: server_vitals
select current_setting('server_version'), current_setting('server_version_num')::int,
    pg_database_size(current_database()), current_setting('autovacuum');

-- name: durability
-- Which settings lose commits that were acknowledged, and how many standbys there are that need not have them.
select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    (select count(*) from pg_stat_replication where sync_state = 'async'),
    (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum'));

-- name: unvacuumed_tables
select relname::text from pg_class
where relnamespace = (select oid from pg_namespace where nspname = current_schema())
    and relkind = 'r' and left(relname, 5) = 'rota_'
    and exists (
        select 1 from pg_options_to_table(reloptions)
        where option_name = 'autovacuum_enabled' and not option_value::boolean)
order by relname;

-- name: place
-- The server, the timeline of the history that it writes, the database and its tables: a failover, a recovery, a restore
-- and a copy each change one of them. Every connection asks when it is made, and heartbeats ask, too.
select concat_ws('/', (select system_identifier from pg_control_system()),
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
    (select oid from pg_database where datname = current_database()), to_regclass('rota_epoch')::oid);

-- name: oldest_transaction
-- Only one that has a snapshot or has written keeps dead rows from being cleared away.
select pid, coalesce(application_name, ''), coalesce(state, ''),
    (extract(epoch from clock_timestamp() - xact_start) * 1000000)::bigint
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
    and (backend_xid is not null or backend_xmin is not null) and backend_type = 'client backend'
order by xact_start limit 1;

-- name: dead_rows
select relname::text, n_live_tup, n_dead_tup from pg_stat_user_tables
where schemaname = current_schema() and left(relname, 5) = 'rota_'
order by n_dead_tup desc, relname limit 5;
