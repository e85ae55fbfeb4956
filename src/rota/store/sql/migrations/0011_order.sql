-- serves: 5
-- No run that waits under a limit has a higher priority: a bound, by which claims find the first priority among any number of
-- open limits. As for `rota_ready`, less is more. Unknown until a claim finds it out, also where an older program makes a limit.
alter table rota_limit add column rank smallint not null default -32768;
drop index rota_limit_open;
drop index rota_limit_blocked;
create index rota_limit_open on rota_limit (rank, served_at, key) where shut = 0;
create index rota_limit_blocked on rota_limit (blocked_by, rank, served_at, key) where blocked_by is not null;
