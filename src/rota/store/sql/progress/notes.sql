-- Notes of runs in progress: progress, steps and logs.

-- name: lock_noted
-- Fenced, as a report is. A weak lock: a heartbeat may renew the lease meanwhile, but its end waits.
select l.run_id, l.fence
from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence
order by l.run_id
{for_key_share l};

-- name: put_progress
insert into rota_progress (run_id, fence, done, summary, at)
select rows.run_id, rows.fence, rows.done, rows.summary, :now
from {rows run_id id, fence int, done int, summary text}
where true
on conflict (run_id) do update
set fence = excluded.fence, done = excluded.done, summary = excluded.summary, at = excluded.at;

-- name: put_steps
-- Fenced: an older attempt does not overwrite a newer one's step. A step that has succeeded stays as it was recorded.
insert into rota_step
    (run_id, id, no, state, fence, attempt, started_at, finished_at, done, summary, result, error)
select rows.run_id, rows.id, rows.no, rows.state, rows.fence, rows.attempt, :now - rows.age,
    case when rows.state = 'running' then null else :now end, rows.done, rows.summary, rows.result, rows.error
from {rows run_id id, id text, no int, state text, fence int, attempt int, age bigint, done int, summary text,
    result text, error text}
where true
on conflict (run_id, id) do update
set state = excluded.state, fence = excluded.fence, attempt = excluded.attempt, started_at = excluded.started_at,
    finished_at = excluded.finished_at, done = excluded.done, summary = excluded.summary, result = excluded.result,
    error = excluded.error
where rota_step.state <> 'succeeded' and rota_step.fence <= excluded.fence;

-- name: put_logs
-- `at` is when the ages of the lines were taken: the writer may have waited since.
insert into rota_log (run_id, fence, no, attempt, at, lines)
select rows.run_id, rows.fence, rows.no, rows.attempt, :now - rows.waited, rows.lines
from {rows run_id id, fence int, no int, attempt int, lines text, waited bigint}
where true
on conflict (run_id, fence, no) do nothing;

-- name: drop_logs
delete from rota_log
where (run_id, fence, no) in (select rows.run_id, rows.fence, rows.no from {rows run_id id, fence int, no int});

-- name: shield
-- Refused if the run was asked to stop before, unless another step that goes on has shielded it. Shields of an attempt
-- are numbered, and a lifted one leaves its number (negative): a late request neither sets it again nor lifts the next.
-- A repetition gets the first answer, whatever happened since, because the step may have begun.
update rota_lease set shielded = case when cancel_at is null and shielded > -cast(:no as int) then cast(:no as int)
    when shielded = cast(:no as int) then shielded
    when cast(:another as int) = 1 then shielded else -cast(:no as int) end
where run_id = :id and fence = :fence and abs(shielded) <= cast(:no as int)
returning case when shielded = cast(:no as int) then 1 else 0 end;

-- name: unshield
-- The grace period of a cancel that came meanwhile begins now.
update rota_lease set shielded = -cast(:no as int),
    cancel_at = case when cancel_at is null then null else :now + :grace end
where run_id = :id and fence = :fence and shielded between 1 and cast(:no as int)
returning run_id;

-- name: recorded_steps
select id, no, state, result from rota_step where run_id = :id order by no;

-- name: steps
select s.id, s.state, s.attempt, s.started_at, s.finished_at, s.done, s.summary, s.result, s.error, s.kept_from,
    s.fence, case when l.fence = s.fence or o.fence = s.fence then 1 else 0 end, a.outcome
from rota_step s
left join rota_lease l on l.run_id = s.run_id
left join rota_outside o on o.run_id = s.run_id
left join rota_attempt a on a.run_id = s.run_id and a.fence = s.fence
where s.run_id = :id
order by s.no, s.id;

-- name: run_of_steps
select r.state, j.definition
from rota_run r left join rota_job j on j.name = r.job and j.version = r.job_version
where r.id = :id;

-- name: keep_steps
insert into rota_step
    (run_id, id, no, state, fence, attempt, started_at, finished_at, done, summary, result, error, kept_from)
select cast(:run_id as {id}), s.id, rows.no, s.state, 0, s.attempt, s.started_at, s.finished_at, s.done, s.summary,
    s.result, s.error, coalesce(s.kept_from, s.run_id)
from {rows id text, no int} join rota_step s on s.run_id = :old_id and s.id = rows.id
where s.state in ('succeeded', 'skipped')
on conflict (run_id, id) do nothing;

-- name: log_rows
select fence, no, attempt, at, lines from rota_log
where run_id = :id and (fence > :fence or (fence = :fence and no > :no))
order by fence, no limit :limit;

-- name: last_log_rows
select fence, no, attempt, at, lines from rota_log where run_id = :id order by fence desc, no desc limit :limit;

-- name: drop_steps
delete from rota_step where run_id in (select rows.id from {rows id id});

-- name: drop_progress
delete from rota_progress where run_id in (select rows.id from {rows id id});

-- name: drop_run_logs
delete from rota_log where run_id in (select rows.id from {rows id id});
