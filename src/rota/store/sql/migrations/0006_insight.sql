-- serves: 5
-- Retries of runs of schedules; all others are found by their plan time.
create index rota_run_again on rota_run (schedule_id) where schedule_id is not null and retry_of is not null;

-- What processes counted, by the minute, by five and by the hour, for whoever looks at it.
create table rota_count (
    span integer not null,      -- seconds: of a minute, five, or an hour
    at bigint not null,         -- when it began
    source text not null,       -- the process that counted; none: how full the database was
    counted text not null,
    primary key (span, at, source)
) {keyed};
