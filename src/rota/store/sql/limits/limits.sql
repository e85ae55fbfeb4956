-- What holds a run back besides time: limits, runs that it follows, pauses.

-- name: make_limits
-- Two that come at once under a new limit do not see each other's row: whoever is later tells it what it brings.
insert into rota_limit (key, job, max, shut, served_at, period, rank)
select rows.key, rows.job, rows.max, rows.shut, :now, rows.period, rows.rank
from {rows key text, job text, max int, shut int, period bigint, rank int}
where not exists (select 1 from rota_limit l where l.key = rows.key)
on conflict (key) do update set shut = case when excluded.shut = 0 and rota_limit.shut = 1 then 0 else rota_limit.shut end,
    rank = case when excluded.rank < rota_limit.rank then excluded.rank else rota_limit.rank end
where excluded.rank < rota_limit.rank or excluded.shut = 0 and rota_limit.shut = 1;

-- name: make_limits_of
-- Of runs whose gates came alone, on somebody else's connection; or whose wider limit, unused for a while, was dropped
-- while they came. A line has 22 characters before the key of its first limit, and a rate five.
insert into rota_limit (key, job, max, shut, served_at, period, rank)
select g.key, case when min(r.job) = max(r.job) and strpos(g.key, 'quota:') not in (1, 6, 23, 28)
        and strpos(g.key, 'live:queue:') not in (1, 6, 23, 28) and count(s.no) = 0
        then min(r.job) end, max(g.max),
    case when min(g.place) = 0 then 0 else 1 end, :now, max(g.period), min(-r.priority)
from {rows id id} join rota_gate g on g.run_id = rows.id join rota_run r on r.id = g.run_id
left join rota_stage s on s.run_id = r.id
where not exists (select 1 from rota_limit l where l.key = g.key)
group by g.key
order by g.key
on conflict (key) do nothing
returning key;

-- part: lower_rank
case when rows.rank < rota_limit.rank then rows.rank else rota_limit.rank end

-- name: adjust_limits
-- Locks no row that is right already: whoever enqueues does not stand in the way of claims. `kept`: it allows what it does.
-- Its rank only falls here, also while it is shut: whoever else comes under it meanwhile cannot be seen.
update rota_limit set max = case when rows.kept = 1 then rota_limit.max else rows.max end,
    period = case when rows.kept = 1 then rota_limit.period else rows.period end,
    job = case when rota_limit.job = rows.job then rota_limit.job end,
    shut = case when rows.shut = 0 then 0 else rota_limit.shut end,
    blocked_by = case when rows.shut = 0 then null else rota_limit.blocked_by end,
    rank = {part lower_rank}
from {rows key text, job text, max int, shut int, period bigint, rank int, kept int}
where rota_limit.key = rows.key
    and (rota_limit.shut = 1 and rows.shut = 0 or rota_limit.job <> rows.job
        or rota_limit.job is not null and rows.job is null
        or rows.rank < rota_limit.rank
        or rows.kept = 0 and (rota_limit.max <> rows.max or rota_limit.period <> rows.period));

-- name: wake_limits
update rota_limit set shut = case when rota_limit.shut = 1 then 0 else rota_limit.shut end, rank = {part lower_rank}
from {rows key text, rank int}
where rota_limit.key = rows.key and (rota_limit.shut = 1 or rows.rank < rota_limit.rank);

-- name: lower_ranks
update rota_limit set rank = rows.rank from {rows key text, rank int}
where rota_limit.key = rows.key and rows.rank < rota_limit.rank;

-- part: first_rank
-- Of all that wait under a limit, whoever may claim them: queue by queue, the first one's.
with recursive places(queue) as (
    select (select w.queue from rota_ready w where w.hold = {limited} and w.limit_key = l.key order by w.queue limit 1)
    union all
    select (
        select w.queue from rota_ready w where w.hold = {limited} and w.limit_key = l.key and w.queue > places.queue
        order by w.queue limit 1)
    from places where places.queue is not null)
select min((
    select w.rank from rota_ready w where w.hold = {limited} and w.limit_key = l.key and w.queue = places.queue
    order by w.rank limit 1))
from places

-- name: first_ranks
select l.key, (
    {part first_rank})
from {rows key text} join rota_limit l on l.key = rows.key;

-- name: raise_ranks
update rota_limit set rank = rows.rank from {rows key text, rank int}
where rota_limit.key = rows.key and rota_limit.rank < rows.rank;

-- name: change_max
update rota_limit set max = :max, period = cast(:period as bigint), shut = 0, blocked_by = null
where (key = :key or substr(key, 1, length(cast(:prefix as text))) = cast(:prefix as text))
    and (max <> :max or period <> cast(:period as bigint))
returning key;

-- name: lock_limits
-- Limits are locked after runs, all of a transaction at once and in the order of keys: none deadlock.
select l.key, l.max, l.period from {rows key text} join rota_limit l on l.key = rows.key
order by l.key {for_update l};

-- name: lock_free_limits
-- A claim never waits: one that somebody else has is passed over, and so are the runs under it.
select l.key, l.max, l.period from {rows key text} join rota_limit l on l.key = rows.key
order by l.key {for_update_skip l};

-- name: lock_open_limits
select l.key, l.max, l.period from {rows key text} join rota_limit l on l.key = rows.key
where l.shut = 0 order by l.key {for_update_skip l};

-- name: live_under
-- Those that were asked to stop are as good as gone. A gate may outlive its run, if that was ended by a program which
-- knows of no gates. Under a rate, or where only those that wait are limited, whoever has begun is not counted here.
select g.key, count(*) from {rows key text, unlimited int}
join rota_gate g on g.key = rows.key join rota_run r on r.id = g.run_id and r.state is null
left join rota_lease l on l.run_id = g.run_id
left join rota_outside o on o.run_id = g.run_id
where l.cancel_at is null and o.cancel_at is null
    and (l.run_id is null and o.run_id is null or g.period is null and g.max < rows.unlimited)
group by g.key;

-- name: counted_runs
-- The same of single runs: the limits under which each of them counts. What conducts counts with its replicas.
with given as (select rows.id, rows.unlimited from {rows id id, unlimited int}),
counted as (
    select id, unlimited, id as run_id from given
    union all
    select given.id, given.unlimited, c.run_id from given join rota_replica c on c.parent_id = given.id)
select counted.id, g.key from counted
join rota_gate g on g.run_id = counted.run_id {then rota_run r | r.id = g.run_id and r.state is null}
left join rota_lease l on l.run_id = g.run_id
left join rota_outside o on o.run_id = g.run_id
where l.cancel_at is null and o.cancel_at is null
    and (l.run_id is null and o.run_id is null or g.period is null and g.max < counted.unlimited);

-- name: oldest_under
select g.run_id, case when l.run_id is null and o.run_id is null then 0 else 1 end from rota_gate g join rota_run r on r.id = g.run_id and r.state is null
left join rota_lease l on l.run_id = g.run_id
left join rota_outside o on o.run_id = g.run_id
where g.key = :key and l.cancel_at is null and o.cancel_at is null
order by g.run_id limit :count;

-- name: holder_under
-- Whoever began is named before those that wait.
select g.run_id from rota_gate g join rota_run r on r.id = g.run_id and r.state is null
left join rota_lease l on l.run_id = g.run_id
left join rota_outside o on o.run_id = g.run_id
where g.key = :key and r.scope_kind = :scope_kind and r.scope_id = :scope_id
    and l.cancel_at is null and o.cancel_at is null
order by case when l.run_id is null and o.run_id is null then 1 else 0 end, g.run_id limit 1;

-- name: insert_gates
insert into rota_gate (run_id, key, place, max, period)
select rows.run_id, rows.key, rows.place, rows.max, rows.period
from {rows run_id id, key text, place int, max int, period bigint}
where true;

-- name: leave_gates
-- Fenced: whoever looked a while ago must not take the slots of the claim that came since. A rate has none to give back,
-- but may not know of the run that waits again.
update rota_gate set fence = null from {rows id id, fence int}
where rota_gate.run_id = rows.id
    and (rota_gate.fence = rows.fence or rota_gate.period is not null and rota_gate.place = 0)
returning key, place, period, (select w.rank from rota_ready w where w.run_id = rota_gate.run_id);

-- name: drop_gates
delete from rota_gate where run_id in (select rows.id from {rows id id}) returning key, place, period;

-- part: in_use
select rows.key, at.now,
    rows.max - case when rows.period is null
        then (select count(*) from rota_gate g where g.key = rows.key and g.fence is not null and (
            1 = (select 1 from rota_lease l where l.run_id = g.run_id and l.fence = g.fence limit 1)
            or 1 = (select 1 from rota_outside o where o.run_id = g.run_id and o.fence = g.fence limit 1)))
        else (select coalesce(sum(b.count), 0) from rota_begun b where b.key = rows.key and b.at > at.now - rows.period)
        end as free,
    case when rows.period is not null then
        (select coalesce(sum(b.count), 0) from rota_begun b where b.key = rows.key and b.at >= at.now + rows.period)
        else 0 end as ahead,
    coalesce((select 1 from rota_begun b where b.key = rows.key and b.at <= at.now - 2 * rows.period limit 1), 0) as stale
from {rows key text, max int, period bigint}, (select :now as now) as at

-- name: in_use
-- Slots are counted, and only those whose lease is there: no dead holder counts. What was handed over to somebody outside
-- is still being done. `limit 1` keeps each look a probe: PostgreSQL may answer an `exists` that is not a condition by
-- itself, but beside an `or` or in a `case`, from a hash of the whole table.
-- Under a rate, what began within a period counts. A clock that was set back finds some in its future: they count, too;
-- what is more than a period `ahead` is told apart. `stale`: some count no more.
{part in_use};

-- name: waiting_under
select rows.key from {rows key text}
where 1 = (select 1 from rota_ready w where w.hold = {limited} and w.limit_key = rows.key limit 1);

-- name: queues_under
-- The first and the last: mostly there is one.
select (select w.queue from rota_ready w where w.hold = {limited} and w.limit_key = rows.key order by w.queue limit 1),
    (select w.queue from rota_ready w where w.hold = {limited} and w.limit_key = rows.key order by w.queue desc limit 1)
from {rows key text};

-- part: change_limit
shut = coalesce(rows.shut, rota_limit.shut),
    opens_at = coalesce(rows.opens_at, rota_limit.opens_at),
    blocked_by = case when rows.shut is null then rota_limit.blocked_by else rows.blocked_by end,
    served_at = case when rows.served = 1 then :now else served_at end

-- name: shut_limits
-- Without `shut`: one that is only counted, and full. Whatever becomes of a limit, at `opens_at` somebody sees to those
-- that it blocks.
update rota_limit set {part change_limit}
from {rows key text, shut int, blocked_by text, served int, opens_at bigint}
where rota_limit.key = rows.key;

-- part: is_opened
rota_limit.key = rows.key
    and (rows.place = 0 and rota_limit.shut = 1 or rota_limit.shut = 2 or rows.place = -1 and rota_limit.shut > 0)

-- name: open_limits
-- A limit under which no run is found by it, only counted, stays as it is; and a rate, shut until its time comes. Place
-- -1: whatever it is.
update rota_limit set shut = 0, blocked_by = null from {rows key text, place int} where {part is_opened};

-- part: opened_limits
select rows.key, coalesce((select 1 from rota_limit l where l.blocked_by = rows.key limit 1), 0),
    (select w.queue from rota_ready w where w.hold = {limited} and w.limit_key = rows.key order by w.queue limit 1),
    (select w.queue from rota_ready w where w.hold = {limited} and w.limit_key = rows.key order by w.queue desc limit 1)

-- name: opened_limits
-- Whether each blocks others; and the first and the last queue of those that wait under it: mostly there is one.
{part opened_limits}
from {rows key text, place int};

-- name: any_blocked
select 1 from rota_limit where blocked_by = :key limit 1;

-- name: blocked_limits
-- Locked, by priority and in turn, each with the first run that waits under it; without one, its run was cancelled or
-- superseded. Of several queues, the first one's: a key has mostly one, and all of them would not be a probe.
with seen as materialized (
    select key, served_at from rota_limit where blocked_by = :key order by rank, served_at, key limit :most
    {for_update_skip}),
firsts as materialized (
    select key, served_at, (select w.run_id from rota_ready w where w.hold = {limited} and w.limit_key = seen.key
        order by w.queue, w.rank, w.run_at, w.run_id limit 1) as run_id
    from seen)
select key, (select w.rank from rota_ready w where w.run_id = firsts.run_id),
    (select w.run_at from rota_ready w where w.run_id = firsts.run_id), run_id
from firsts order by served_at, key;

-- name: unblock_limits
-- They are locked by `blocked_limits`.
update rota_limit set shut = 0, blocked_by = null where key in (select rows.key from {rows key text});

-- name: stale_gates
-- Their lease has ended, and whoever ended it did not know of them.
select g.run_id, g.fence, case when r.state is null and r.id is not null then 1 else 0 end
from rota_gate g left join rota_run r on r.id = g.run_id
where g.fence is not null
    and not exists (select 1 from rota_lease l where l.run_id = g.run_id and l.fence = g.fence)
    and not exists (select 1 from rota_outside o where o.run_id = g.run_id and o.fence = g.fence)
limit :limit;

-- name: gates_after
-- Those that hold no slot, in turn: their run was ended by somebody who did not know of them, if it is over.
select g.run_id, case when r.state is null and r.id is not null then 1 else 0 end
from (select run_id, key from rota_gate where run_id > :after and fence is null order by run_id, key limit :limit) as g
left join rota_run r on r.id = g.run_id
order by g.run_id;

-- name: limits_after
-- In turn, as above. Forgotten: shut, though a run waits and a slot is free: an enqueue that was not yet seen when the limit
-- was shut; a rate whose time is far off, because the clock was set back; or a run has a higher priority than the limit knows. Unused: nobody is under it.
select l.key,
    case when l.rank > (
            {part first_rank})
        or l.shut > 0 and 1 = (select 1 from rota_ready w where w.hold = {limited} and w.limit_key = l.key limit 1)
        and case when l.period is null
            then (select count(*) from rota_gate h where h.key = l.key and h.fence is not null and (
                1 = (select 1 from rota_lease e where e.run_id = h.run_id and e.fence = h.fence limit 1)
                or 1 = (select 1 from rota_outside o where o.run_id = h.run_id and o.fence = h.fence limit 1)))
            else (select coalesce(sum(n.count), 0) from rota_begun n
                where n.key = l.key and n.at > :now - l.period and n.at < :now + l.period)
            end < l.max
        and (b.key is null or b.max > case when b.period is null
            then (select count(*) from rota_gate h where h.key = b.key and h.fence is not null and (
                1 = (select 1 from rota_lease e where e.run_id = h.run_id and e.fence = h.fence limit 1)
                or 1 = (select 1 from rota_outside o where o.run_id = h.run_id and o.fence = h.fence limit 1)))
            else (select coalesce(sum(n.count), 0) from rota_begun n
                where n.key = b.key and n.at > :now - b.period and n.at < :now + b.period) end)
        then 1 else 0 end,
    case when l.shut = 1 and l.served_at < :now - :idle
        and (select 1 from rota_gate g where g.key = l.key limit 1) is null
        and (l.period is null
            or (select 1 from rota_begun n where n.key = l.key and n.at > :now - 2 * l.period limit 1) is null)
        then 1 else 0 end
from (
    select key, shut, max, period, served_at, blocked_by, rank from rota_limit where key > :after order by key limit :limit) as l
left join rota_limit b on b.key = l.blocked_by
order by l.key;

-- name: emptied_too_soon
-- Shut because nobody waited, though somebody does; or one waits with a higher priority than a claim saw.
select l.key from {rows key text} join rota_limit l on l.key = rows.key
where l.shut = 1 and 1 = (select 1 from rota_ready w where w.hold = {limited} and w.limit_key = rows.key limit 1)
    or l.rank > (
        {part first_rank});

-- name: drop_limits
-- unlocked: it skips those that somebody has; a run that comes meanwhile makes its limit again (`make_limits_of`).
delete from rota_limit where key in (
    select l.key from {rows key text} join rota_limit l on l.key = rows.key
    where l.shut = 1 and not exists (select 1 from rota_gate g where g.key = l.key)
        and not exists (select 1 from rota_begun n where n.key = l.key)
    {for_update_skip l});

-- name: mark_followed
-- Waits for a completion of the same run that is under way, and then finds it final.
update rota_run set followed = 1 from {rows after_id id} where rota_run.id = rows.after_id and rota_run.state is null
returning rota_run.id;

-- name: insert_waits
insert into rota_wait (run_id, after_id) select rows.run_id, rows.after_id from {rows run_id id, after_id id}
where true
on conflict (after_id, run_id) do nothing;

-- name: end_waits_for
delete from rota_wait where after_id in (select rows.id from {rows id id}) returning run_id, after_id, kind, takes;

-- name: lock_waiting
-- Dependents, after the runs that they wait for and before limits; in the order of ids, as every end takes them.
select w.run_id from {rows id id} join rota_ready w on w.run_id = rows.id order by w.run_id {for_update w};

-- name: waiting_for
select run_id from rota_wait where after_id = :id and kind = 0;

-- name: awaited_by_each
select a.run_id, a.after_id from {rows id id} join rota_wait a on a.run_id = rows.id and a.kind = 0;

-- name: awaited_by
-- Whose turn comes before its own: whoever waits for it would wait for them in its place.
select after_id from rota_wait where run_id = :id and kind = 0;

-- name: entangled
-- Runs whose turn comes before that of one of these (`first`); and, of those that wait to be claimed, who waits for them,
-- or for one that would end with them.
with recursive given(id) as materialized (select rows.id from {rows id id}), ending(id) as (
    select g.id from given g join rota_ready w on w.run_id = g.id
    union
    select a.run_id from ending e join rota_wait a on a.after_id = e.id and a.kind in (1, 2))
select a.run_id, a.after_id, 1 from given g join rota_wait a on a.run_id = g.id and a.kind = 0
union all
select a.after_id, a.run_id, 0 from ending e join rota_wait a on a.after_id = e.id and a.kind < 4;

-- name: go_on
-- Not before their time. What had none of its own was due when it was made, even if the clock was set back since.
-- locked by: lock_waiting
update rota_ready set hold = {hold_of limit_key | need |
    run_at > :now and run_at > (select r.created_at from rota_run r where r.id = rota_ready.run_id)}
where run_id in (select rows.id from {rows id id}) and hold + 0 = {blocked}
    and not exists (select 1 from rota_wait a where a.run_id = rota_ready.run_id)
returning run_id, queue, hold, limit_key, fence, rank;

-- name: awaited_after
-- Runs that others wait for, in turn, each of them once: very many may wait for one.
with recursive awaited(id, no) as (
    select (select after_id from rota_wait where after_id > :after order by after_id limit 1), 1
    union all
    select (select a.after_id from rota_wait a where a.after_id > awaited.id order by a.after_id limit 1), awaited.no + 1
    from awaited where awaited.id is not null and awaited.no < :limit)
select awaited.id, r.state, case when r.id is null or r.state is not null then 1 else 0 end
from awaited left join rota_run r on r.id = awaited.id
where awaited.id is not null
order by awaited.no;

-- name: waiting_after
-- Runs that wait for others, in turn, and whether there is any that they wait for.
select w.run_id, coalesce((select 1 from rota_wait a where a.run_id = w.run_id limit 1), 0)
from (select run_id from rota_ready where hold = {blocked} and run_id > :after order by run_id limit :limit) as w
order by w.run_id;

-- name: pause_queue
-- Paused twice, it is paused since the first time.
insert into rota_pause (kind, name, paused_at, paused_by, reason) values ('queue', :queue, :now, :actor, :reason)
on conflict (kind, name) do nothing
returning name;

-- name: resume_queue
delete from rota_pause where kind = 'queue' and name = :queue returning name;

-- name: paused_queues
select name, paused_at, paused_by, reason from rota_pause where kind = 'queue' order by name;

-- name: runs_under
select distinct g.run_id from {rows key text} join rota_gate g on g.key = rows.key limit :limit;
