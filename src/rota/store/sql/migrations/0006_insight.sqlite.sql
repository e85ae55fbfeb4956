
-- Ended runs that did not succeed. An index of them costs successes nothing here; a trigger would. It has all that the
-- view shows, so that ten thousand of them are read without their runs.
create index rota_run_fault on rota_run (state, id, job, coalesce(finished_at, created_at), error ->> '$.fingerprint')
where state is not null and state <> 'succeeded';
create index rota_run_fingerprint on rota_run (error ->> '$.fingerprint', id)
where state is not null and state <> 'succeeded' and error ->> '$.fingerprint' is not null;
create view rota_fault as
select id as run_id, state, job, error ->> '$.fingerprint' as fingerprint, coalesce(finished_at, created_at) as at
from rota_run where state is not null and state <> 'succeeded';
