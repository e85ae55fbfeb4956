-- Families of runs.

-- name: family_links
-- The links of these runs to others: (side, this run, the other, kind of dependency). Even sides lead to earlier runs,
-- odd ones to later ones. Each side walks an index for each run, and stops at :most links. Outside of the look at a run:
-- that it has a parent. Inside, an index of parents would be walked whole.
with asked(id) as (select rows.id from {rows id id})
select * from (
    select 0 as side, f.run_id as own, f.after_id as other, f.kind
    from asked {then rota_followed f | f.run_id = asked.id} limit :most) as parents
union all
select * from (
    select 1, f.after_id, f.run_id, f.kind
    from asked {then rota_followed f | f.after_id = asked.id} limit :most) as children
union all
select * from (
    select 2, r.id, r.parent_id, 0
    from asked {then rota_run r | r.id = asked.id} where r.parent_id is not null limit :most) as parent
union all
select * from (
    select 3, r.parent_id, r.id, 0
    from asked {then rota_run r | r.parent_id = asked.id} limit :most) as replicas
union all
select * from (
    select 4, r.id, r.retry_of, 0
    from asked {then rota_run r | r.id = asked.id} where r.retry_of is not null limit :most) as retried
union all
select * from (
    select 5, r.retry_of, r.id, 0
    from asked {then rota_run r | r.retry_of = asked.id} limit :most) as retries;

-- name: family_runs
select n.id, n.job, n.state, n.queue, n.scope_kind, n.scope_id, n.schedule, n.attempt, n.worker_id, n.created_at,
    n.run_at, n.started_at, n.finished_at, n.done
from {rows id id} {then rota_run_now n | n.id = rows.id};
