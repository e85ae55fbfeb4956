-- What processes counted, by the minute, by five and by the hour, for whoever looks at it.
create table rota_count (
    span integer not null,      -- seconds: of a minute, five, or an hour
    at bigint not null,         -- when it began
    source text not null,       -- the process that counted; none: how full the database was
    counted text not null,
    primary key (span, at, source)
) {keyed};
