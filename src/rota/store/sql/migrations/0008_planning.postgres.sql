
-- Before the long part: whoever deletes schedules for good locks the two tables in the other order.
lock table rota_schedule in share row exclusive mode;
update rota_cursor set schedule_id = s.id, said_at = s.updated_at from rota_schedule s where s.cursor_no = rota_cursor.no;
create function rota_schedule_said() returns trigger language plpgsql as $$
begin
    update rota_cursor set schedule_id = new.id, said_at = new.updated_at,
        said = case when tg_op = 'INSERT' then said else said + 1 end
    where no = new.cursor_no;
    return null;
end $$;
create trigger rota_schedule_said after insert or update on rota_schedule
for each row execute function rota_schedule_said();
