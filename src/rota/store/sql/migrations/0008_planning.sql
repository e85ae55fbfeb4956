-- serves: 5
-- Which revision of its schedule is in force, beside the cursor: planning knows by it what it has read before, and need
-- not read it again. None of them has the name of a column of rota_schedule: older programs join the two tables, and name
-- columns without saying whose.
alter table rota_cursor add column schedule_id {id};
alter table rota_cursor add column said_revision integer;
alter table rota_cursor add column said_at bigint;     -- when that revision was made
