-- serves: 5
-- Beside the cursor: whose it is, how often its schedule's row was changed, and when it was last changed by a program of ours.
-- Planning knows by them what it has read before, and need not read it again. None has the name of a column of rota_schedule:
-- older programs join the two tables, and name columns without saying whose.
alter table rota_cursor add column schedule_id {id};
alter table rota_cursor add column said integer not null default 0;
alter table rota_cursor add column said_at bigint;
