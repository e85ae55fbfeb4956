-- Quotas: limits of scopes over all jobs, and how runs that are there already come under them.

-- name: quotas_for
-- A scope's own, and that of its kind.
select rows.kind, rows.id, own.definition, general.definition, :now
from {rows kind text, id text}
left join rota_quota own on own.scope_kind = rows.kind and own.scope_id = rows.id
left join rota_quota general on general.scope_kind = rows.kind and general.scope_id = ''
where coalesce(own.definition, general.definition) is not null;

-- name: any_quota
-- Of scopes, and of jobs and queues.
select (select 1 from rota_quota where scope_kind > '' limit 1), (select 1 from rota_quota where scope_kind = '' limit 1);

-- name: any_live_limit
select 1 from rota_quota where scope_kind = '' limit 1;

-- name: live_limits
-- Of jobs and queues: their places are of no kind of scopes.
select scope_id, definition, :now from rota_quota where scope_kind = '' and definition is not null order by scope_id;

-- name: noticed_quota
-- A row that was deleted and comes again is as old as its last change.
select 1 from rota_quota where scope_kind > '' and changed_at < :now - :age limit 1;

-- name: list_quotas
select scope_kind, scope_id, definition, owner from rota_quota where scope_kind > '' and definition is not null
order by scope_kind, scope_id;

-- name: paused_quotas
-- What is false is not written.
select scope_kind, scope_id, definition, owner from rota_quota
where scope_kind > '' and strpos(definition, '"paused"') > 0 order by scope_kind, scope_id limit :limit;

-- name: waiting_under_keys
-- Each run once: it may be under a rate and a number.
select count(distinct g.run_id) from rota_gate g join rota_ready w on w.run_id = g.run_id
where case when :exact = 1 then g.key in (cast(:first as text), cast(:second as text))
    else strpos(g.key, cast(:first as text)) = 1 or strpos(g.key, cast(:second as text)) = 1 end;

-- name: get_quota
select definition, owner from rota_quota
where scope_kind = :kind and scope_id = :id and definition is not null;

-- name: reserve_quota
-- A row to lock where there is none: of two who set the first quota of a scope, the second must see the other's.
insert into rota_quota (scope_kind, scope_id, definition, owner, changed_at, settled) values (:kind, :id, null, '', :now, 1)
on conflict (scope_kind, scope_id) do nothing;

-- name: lock_quota
select definition, owner from rota_quota where scope_kind = :kind and scope_id = :id {for_update};

-- name: put_quota
-- Nothing changes, and there is nothing to settle, if it says so already; or if code says so, and a person otherwise.
insert into rota_quota (scope_kind, scope_id, definition, owner, changed_at, settled)
values (:kind, :id, :definition, :owner, :now, 0)
on conflict (scope_kind, scope_id) do update
set definition = excluded.definition, owner = excluded.owner, changed_at = excluded.changed_at, settled = 0
where (rota_quota.definition is null or rota_quota.owner = 'code' or excluded.owner <> 'code')
    and (rota_quota.definition is null or rota_quota.definition <> excluded.definition
        or rota_quota.owner <> excluded.owner)
returning changed_at;

-- name: drop_quota
update rota_quota set definition = null, changed_at = :now, settled = 0
where scope_kind = :kind and scope_id = :id and definition is not null
returning changed_at;

-- name: quota_changed
update rota_quota set changed_at = :now where scope_kind = :kind and scope_id = :id and settled = 0;

-- name: unsettled_quotas
-- And all live limits of jobs and queues, some of which may be over.
select scope_kind, scope_id, changed_at,
    case when settled = 0 and (changed_at < :now - :age or changed_at > :now) then 0 else 1 end, definition
from rota_quota where settled = 0 and (changed_at < :now - :age or changed_at > :now) or scope_kind = '';

-- name: unsettled_quota
select 1 from rota_quota where scope_kind = :kind and scope_id = :id and settled = 0;

-- name: quota_settled
update rota_quota set settled = 1
where scope_kind = :kind and scope_id = :id and changed_at = :changed_at and definition is not null;

-- name: quota_gone
delete from rota_quota
where scope_kind = :kind and scope_id = :id and changed_at = :changed_at and definition is null;

-- name: limits_of_quotas
select key, max, period from rota_limit
where key > :after and (substr(key, 1, length(cast(:first as text))) = cast(:first as text)
    or substr(key, 1, length(cast(:second as text))) = cast(:second as text))
order by key limit :limit;

-- name: live_runs_at
-- In one look, wherever they are: none is overlooked because it moves. Of a scope, of a kind of scopes, a job or a queue.
select r.id, r.job, r.queue, r.scope_kind, r.scope_id, (select 1 from rota_stage s where s.run_id = r.id limit 1) from (
    select run_id from rota_ready where run_id > :after
    union all select run_id from rota_lease where run_id > :after
    union all select run_id from rota_outside where run_id > :after) as live
{then rota_run r | r.id = live.run_id}
where r.scope_kind = :kind and (:id = '' or r.scope_id = :id) or r.job = cast(:job as text)
    or r.queue = cast(:queue as text)
order by live.run_id limit :limit;

-- name: lock_ready_runs
-- Ready rows before their gates and limits, in the order of ids: an end of one waits, or is seen.
select w.run_id, w.hold, w.limit_key, w.need from {rows id id} join rota_ready w on w.run_id = rows.id
order by w.run_id {for_update w};

-- name: fences_of
-- Of those that hold slots. In one look: a run that is handed over meanwhile is in one of the two.
select rows.id, coalesce(l.fence, o.fence) from {rows id id}
left join rota_lease l on l.run_id = rows.id left join rota_outside o on o.run_id = rows.id
where l.run_id is not null or o.run_id is not null;

-- name: gates_of_runs
select g.run_id, g.key, g.max, g.period from {rows id id} join rota_gate g on g.run_id = rows.id
order by g.run_id, g.place;

-- name: insert_held_gates
insert into rota_gate (run_id, key, place, max, period, fence)
select rows.run_id, rows.key, rows.place, rows.max, rows.period, rows.fence
from {rows run_id id, key text, place int, max int, period bigint, fence int}
where true;

-- name: come_under
-- Only workers that meet its need claim a run under limits, too; without limits it waits for those alone. What waits for
-- other runs, or conducts, goes on to do so first; one that an older program let wait for its limits conducts now.
update rota_ready set limit_key = rows.key, hold = case when rota_ready.hold in ({blocked}, {parent}) then rota_ready.hold
    else {hold_of rows.key | rota_ready.need | rota_ready.hold in ({later})} end
from {rows id id, key text}
where rota_ready.run_id = rows.id;
