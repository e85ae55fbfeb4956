-- Failed runs.

-- name: newest_faults
-- The columns of `FailedRun`, in their order. Per state, because the index is on (state, run_id): each part is walked
-- from its newest end.
select run_id, state, job, fingerprint, at
from (
    select * from (
        select run_id, state, job, fingerprint, at from rota_fault
        where (state, run_id) >= ('failed', :first) and (state, run_id) < ('failed', :last)
        order by state desc, run_id desc limit :most) as failed
    union all
    select * from (
        select run_id, state, job, fingerprint, at from rota_fault
        where (state, run_id) >= ('timed_out', :first) and (state, run_id) < ('timed_out', :last)
        order by state desc, run_id desc limit :most) as timed_out
    union all
    select * from (
        select run_id, state, job, fingerprint, at from rota_fault
        where (state, run_id) >= ('expired', :first) and (state, run_id) < ('expired', :last)
        order by state desc, run_id desc limit :most) as expired
) as newest
order by run_id desc limit :most;
