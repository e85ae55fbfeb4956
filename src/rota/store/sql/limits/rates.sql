-- Rates: how many have begun within a limit's period. Whoever reads or writes this holds the limit's row.

-- name: begun_ahead
delete from rota_begun where key = :key and at >= cast(:now_at as bigint) + cast(:period as bigint) returning count;

-- name: note_begun
-- When their leases say; but not before they were counted, should the clock have been set back since.
insert into rota_begun (key, at, count)
select rows.key, case when l.claimed_at > rows.counted_at then l.claimed_at else rows.counted_at end, rows.count
from {rows key text, run_id id, counted_at bigint, count int} join rota_lease l on l.run_id = rows.run_id
where true
on conflict (key, at) do update set count = rota_begun.count + excluded.count;

-- name: put_begun
insert into rota_begun (key, at, count) values (:key, cast(:at as bigint), cast(:count as int))
on conflict (key, at) do update set count = rota_begun.count + excluded.count;

-- name: first_begun
-- Of those that count still.
select rows.key, min(b.at) from {rows key text, after bigint} join rota_begun b on b.key = rows.key and b.at > rows.after
group by rows.key;

-- name: forget_begun
-- unlocked: rows that count no more are not written to again.
delete from rota_begun where (key, at) in (
    select b.key, b.at from {rows key text} join rota_limit l on l.key = rows.key join rota_begun b on b.key = rows.key
    where l.period is not null and b.at <= :now - 2 * l.period
    limit :limit);

-- name: due_rates
-- Skipped if a claim has it: that shuts or opens it itself. What is passed over is due at the next look.
select key, max, period, shut from rota_limit where opens_at <= :now order by opens_at, key limit :limit
{for_update_skip};

-- name: open_rates
update rota_limit set shut = case when rota_limit.shut = 3 then 0 else rota_limit.shut end, opens_at = null
from {rows key text} where rota_limit.key = rows.key;

-- name: begins_within
select rows.key, b.at, b.count from {rows key text, period bigint}
join rota_begun b on b.key = rows.key and b.at > :now - rows.period;
