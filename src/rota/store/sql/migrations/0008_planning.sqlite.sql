
-- Kept by its number, the cursor of each schedule that fires lies on another page, and each of those is read, logged and
-- written for a few bytes. Kept apart from it, those that fire together can lie together: planning sees to it.
create table rota_cursor_as_it_was as select * from rota_cursor;
drop table rota_cursor;
create table rota_cursor (
    no int not null primary key default (abs(random() % 1000000000000)), -- for programs that leave the number to us
    cursor_at integer not null,
    next_plan integer,
    next_at integer,
    open_plan integer,
    fired integer not null default 0,
    tzdata text not null,
    awaits text,
    provider text,
    trouble text,
    schedule_id text,
    said integer not null default 0,
    said_at integer
) strict;
insert into rota_cursor (no, cursor_at, next_plan, next_at, open_plan, fired, tzdata, awaits, provider, trouble,
    schedule_id, said_at)
select c.no, c.cursor_at, c.next_plan, c.next_at, c.open_plan, c.fired, c.tzdata, c.awaits, c.provider, c.trouble,
    s.id, s.updated_at
from rota_cursor_as_it_was c join rota_schedule s on s.cursor_no = c.no
order by c.next_at, c.no;
drop table rota_cursor_as_it_was;
create index rota_cursor_due on rota_cursor (next_at, no) where next_at is not null;
create index rota_cursor_provider on rota_cursor (provider) where provider is not null;
create index rota_cursor_awaits on rota_cursor (awaits) where awaits is not null;

create trigger rota_schedule_said_first after insert on rota_schedule
begin
    update rota_cursor set schedule_id = new.id, said_at = new.updated_at where no = new.cursor_no;
end;
create trigger rota_schedule_said_anew after update on rota_schedule
begin
    update rota_cursor set schedule_id = new.id, said_at = new.updated_at, said = said + 1 where no = new.cursor_no;
end;
