-- Runs that follow others: made to wait, let go or ended in vain, and who followed whom.

-- name: lock_followed
-- In the order of ids, as completions go. Waits for an end that is under way, and then tells how it was.
select r.id, r.state from {rows id id} join rota_run r on r.id = rows.id order by r.id {for_update r};

-- name: insert_needs
insert into rota_wait (run_id, after_id, kind)
select rows.run_id, rows.after_id, rows.kind from {rows run_id id, after_id id, kind int}
where true;

-- name: hold_for_runs
update rota_ready set hold = {blocked} where run_id in (select rows.id from {rows id id});

-- name: insert_followed
insert into rota_followed (run_id, no, after_id, kind)
select rows.run_id, rows.no, rows.after_id, rows.kind from {rows run_id id, no int, after_id id, kind int}
where true;

-- name: inherit_followed
-- Done again, a run does not wait again; what it followed, its handler may ask for.
insert into rota_followed (run_id, no, after_id, kind)
select r.id, f.no, f.after_id, f.kind
from {rows id id} join rota_run r on r.id = rows.id join rota_followed f on f.run_id = r.retry_of
where true;

-- name: drop_followed
delete from rota_followed where run_id in (select rows.id from {rows id id});

-- name: beyond
-- Whoever needs the success of these, of those in turn, and so on.
with recursive beyond(run_id, after_id, kind) as (
    select a.run_id, a.after_id, a.kind
    from {rows id id} join rota_wait a on a.after_id = rows.id and a.kind in (1, 2)
    union
    select a.run_id, a.after_id, a.kind
    from beyond b join rota_wait a on a.after_id = b.run_id and a.kind in (1, 2))
select run_id, after_id, kind from beyond;

-- name: drop_waiting
delete from rota_ready where run_id in (select rows.id from {rows id id}) and hold + 0 = {blocked}
returning run_id, attempt, fence;

-- name: end_each
-- Runs that nobody has.
-- locked by: drop_waiting, drop_ready_each
update rota_run set state = rows.state, attempt = rows.attempt, fence = rows.fence, finished_at = :now,
    reason = rows.reason, cancelled_by = :actor,
    error = (select a.error from rota_attempt a where a.run_id = rows.id order by a.fence desc limit 1)
from {rows id id, state text, attempt int, fence int, reason text}
where rota_run.id = rows.id;

-- name: parents
-- Two branches instead of an outer join: SQLite would build the whole view first, of all runs that ever were.
select after_id, job, state, result, kind
from (
    select f.after_id, n.job, n.state, n.result, f.kind, f.no
    from rota_followed f join rota_run_now n on n.id = f.after_id where f.run_id = :id
    union all
    select f.after_id, null, null, null, f.kind, f.no
    from rota_followed f where f.run_id = :id and not exists (select 1 from rota_run r where r.id = f.after_id)
) as related
order by no;

-- name: children
select f.run_id, n.job, n.state, n.result, f.kind
from rota_followed f {then rota_run_now n | n.id = f.run_id}
where f.after_id = :id order by f.run_id limit :limit;
