-- Many runs at once, by filter.

-- name: retries_of
select r.retry_of, r.id from {rows id id} join rota_run r on r.retry_of = rows.id;

-- name: live_retry
select id from rota_run where retry_of = :id and state is null order by id limit 1;
