-- Runs that went wrong.

-- name: newest_faults
-- Of each state the newest, from the end of its index.
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
