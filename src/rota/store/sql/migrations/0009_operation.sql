-- serves: 5
-- When an external worker's time for the run, or for the step that it is at, is over: no heartbeat extends the lease beyond.
-- Null for our own workers, which keep to timeouts themselves.
alter table rota_lease add column deadline bigint;
