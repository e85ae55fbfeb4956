-- serves: 5
-- Which programs may work with a database: old and new ones together, as far as each migration says so.
alter table rota_migration add column serves integer;  -- the oldest schema of a program that works with what it leaves
alter table rota_worker add column schema integer;     -- that its program is of; none: one before this
