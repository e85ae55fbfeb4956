
-- Trails are kept of other things, too; core has the list. A check can only be dropped with its table.
alter table rota_event rename to rota_event_checked;
drop index rota_event_subject;
drop index rota_event_old;
create table rota_event (
    seq {numbered_key},
    at bigint not null,
    kind text not null,
    subject text not null,
    type text not null,
    actor text,
    fence integer,
    details text
) {wide};
insert into rota_event select seq, at, kind, subject, type, actor, fence, details from rota_event_checked;
drop table rota_event_checked;
create index rota_event_subject on rota_event (kind, subject, seq);
create index rota_event_old on rota_event (at) where kind <> 'run';
