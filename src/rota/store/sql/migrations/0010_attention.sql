-- serves: 5
-- Places in a run's payload that the result of the run it follows fills, as JSON. Null: it only follows.
alter table rota_followed add column input text;

-- 1: when this run goes on, results are to be filled in. On all waits of such a run, whichever is the last.
alter table rota_wait add column takes smallint;

-- Items that need attention and are left alone for a while. An item is worse when its weight has doubled since.
create table rota_snooze (
    kind text not null,
    subject text not null,      -- empty: of none
    until bigint not null,
    weight bigint not null,
    actor text,
    reason text,
    made_at bigint not null,
    primary key (kind, subject)
) {keyed};

-- What attention reads: schedules that fail in a row, and plan times missed of late. Both are written only when something fails.
create index rota_lane_failing on rota_lane (failures) where failures >= 3;
create index rota_range_missed on rota_range (to_at) where kind = 'missed';

-- A copy of the database (another server, or the same tables made anew) does nothing by itself until somebody says that it is
-- the original. Programs that do not know these columns do not hold copies.
alter table rota_epoch add column is_copy integer not null default 0;
alter table rota_epoch add column accepted_at bigint;
alter table rota_epoch add column accepted_by text;
alter table rota_epoch add column tables bigint;  -- of PostgreSQL: oid of this table when the row was written
