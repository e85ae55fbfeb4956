
-- A narrow row for each ended run that did not succeed, written by triggers: whatever ends a run, and successes pay
-- nothing for it. An index on the state of runs would make every end write all indexes of its run.
create table rota_fault (
    run_id {id} primary key,
    state text not null,
    job text not null,
    fingerprint text,           -- of its error
    at bigint not null          -- when it ended
) {keyed};
create index rota_fault_state on rota_fault (state, run_id);
create index rota_fault_fingerprint on rota_fault (fingerprint, run_id) where fingerprint is not null;
create function rota_fault_noted() returns trigger language plpgsql as $$
begin
    insert into rota_fault (run_id, state, job, fingerprint, at)
    values (new.id, new.state, new.job, new.error::json ->> 'fingerprint', coalesce(new.finished_at, new.created_at));
    return null;
end $$;
create function rota_fault_dropped() returns trigger language plpgsql as $$
begin
    delete from rota_fault where run_id = old.id;
    return null;
end $$;
create trigger rota_fault_made after insert on rota_run for each row
when (new.state is not null and new.state <> 'succeeded') execute function rota_fault_noted();
create trigger rota_fault_ended after update of state on rota_run for each row
when (new.state is not null and new.state <> 'succeeded' and old.state is null) execute function rota_fault_noted();
create trigger rota_fault_pruned after delete on rota_run for each row
when (old.state is not null and old.state <> 'succeeded') execute function rota_fault_dropped();
insert into rota_fault (run_id, state, job, fingerprint, at)
select id, state, job, null, coalesce(finished_at, created_at) from rota_run where state <> 'succeeded';
