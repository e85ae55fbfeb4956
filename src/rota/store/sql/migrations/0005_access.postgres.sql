
-- Trails are kept of other things, too; core has the list.
alter table rota_event drop constraint rota_event_kind_check;
