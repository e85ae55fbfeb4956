-- What is left for the loops of a process to do, beside what planner, promoter, conductor and messenger ask themselves.

-- name: under_way
-- Whether the reaper has something to watch: leases, what is outside, limits and their slots, waits, quotas that changed
-- lately. And whether anybody expects anything. In the order of a key, so that PostgreSQL walks along its index: a table
-- from which all rows were just deleted is long to read, and its index is not.
select case when exists (select 1 from rota_lease order by run_id limit 1)
        or exists (select 1 from rota_outside order by run_id limit 1)
        or exists (select 1 from rota_gate order by run_id limit 1)
        or exists (select 1 from rota_wait order by run_id limit 1)
        or exists (select 1 from rota_limit order by key limit 1)
        or exists (select 1 from rota_quota where settled = 0) then 1 else 0 end,
    case when exists (select 1 from rota_expectation order by kind, subject limit 1) then 1 else 0 end,
    case when exists (select 1 from rota_cursor where awaits is not null order by awaits limit 1) then 1 else 0 end;

-- name: anything_ready
-- Whether a run is due in these queues; or, in any queue, one that limits or requirements keep from some workers.
select case when exists (select 1 from {rows queue text}
            where exists (select 1 from rota_ready w where w.hold = {open} and w.queue = rows.queue))
        or exists (select 1 from rota_ready where hold = {limited} order by limit_key limit 1)
        or exists (select 1 from rota_ready where hold = {restricted} order by need limit 1) then 1 else 0 end;
