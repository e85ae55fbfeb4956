-- Runs that follow others: made to wait, let go or ended in vain, and who followed whom.

-- name: lock_followed
-- In the order of ids, as completions go. Waits for an end that is under way, and then tells how it was.
select r.id, r.state from {rows id id} join rota_run r on r.id = rows.id order by r.id {for_update r};

-- name: insert_needs
insert into rota_wait (run_id, after_id, kind, takes)
select rows.run_id, rows.after_id, rows.kind, rows.takes from {rows run_id id, after_id id, kind int, takes int}
where true;

-- name: hold_for_runs
update rota_ready set hold = {blocked} where run_id in (select rows.id from {rows id id});

-- name: insert_followed
insert into rota_followed (run_id, no, after_id, kind, input)
select rows.run_id, rows.no, rows.after_id, rows.kind, rows.input
from {rows run_id id, no int, after_id id, kind int, input text}
where true;

-- name: results_passed
-- Results for the arguments of these runs, whose predecessors have succeeded.
select f.run_id, p.payload, f.input, r.result
from {rows id id} join rota_run p on p.id = rows.id
join rota_followed f on f.run_id = rows.id and f.input is not null
join rota_run r on r.id = f.after_id
order by f.run_id, f.no;

-- name: sizes_passed
-- How long they are, of those predecessors that have succeeded.
select f.run_id, f.input, length(r.result)
from {rows id id} join rota_followed f on f.run_id = rows.id and f.input is not null
join rota_run r on r.id = f.after_id and r.state = 'succeeded' and r.result is not null;

-- name: results_again
-- The same for runs that ended without them: of each predecessor, or of its newest retry that succeeded.
with found as materialized (
    select f.run_id, f.no, f.input, f.after_id, (
        with recursive again(id) as (
            select f.after_id
            union all
            select r.id from again {then rota_run r | r.retry_of = again.id})
        select again.id from again {then rota_run s | s.id = again.id} where s.state = 'succeeded'
        order by again.id desc limit 1) as newest
    from {rows id id} join rota_followed f on f.run_id = rows.id and f.input is not null)
select run_id, input, after_id, (select g.state from rota_run g where g.id = found.newest),
    (select g.result from rota_run g where g.id = found.newest)
from found order by run_id, no;

-- name: fill_payloads
update rota_run set payload = rows.payload from {rows id id, payload text} where rota_run.id = rows.id;

-- name: inherit_followed
-- Done again, a run does not wait again; what it followed, its handler may ask for.
insert into rota_followed (run_id, no, after_id, kind, input)
select r.id, f.no, f.after_id, f.kind, f.input
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
where rota_run.id = rows.id
returning rota_run.id, rota_run.job, rota_run.queue;

-- name: parents
-- Two branches instead of an outer join: SQLite would build the whole view first, of all runs that ever were.
select after_id, job, state, result, kind, input
from (
    select f.after_id, n.job, n.state, n.result, f.kind, f.input, f.no
    from rota_followed f join rota_run_now n on n.id = f.after_id where f.run_id = :id
    union all
    select f.after_id, null, null, null, f.kind, f.input, f.no
    from rota_followed f where f.run_id = :id and not exists (select 1 from rota_run r where r.id = f.after_id)
) as related
order by no;

-- name: children
select f.run_id, n.job, n.state, n.result, f.kind, f.input
from rota_followed f {then rota_run_now n | n.id = f.run_id}
where f.after_id = :id order by f.run_id limit :limit;
