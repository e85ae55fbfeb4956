-- serves: 5
-- When an external worker's time for the run, or for the step that it is at, is over: no heartbeat extends the lease beyond.
-- Null for our own workers, which keep to timeouts themselves.
alter table rota_lease add column deadline bigint;

-- A cancelled job is held like a paused one, so that older programs keep to it; these say by whom, when and why.
alter table rota_pause add column cancelled_at bigint;
alter table rota_pause add column cancelled_by text;
alter table rota_pause add column cancel_reason text;
alter table rota_pause add column cancel_act text;  -- of the call that did it: it may be repeated after a lost answer
-- Epochs of this database. `place` is the server and its history (system identifier and timeline), or the SQLite file
-- (device and inode). It changes by a failover or a restore, which may have lost the last commits: fences given afterwards
-- are at least `floor`, above all that were given before.
create table rota_epoch (
    epoch integer primary key,
    floor integer not null,
    place text not null,
    since bigint not null) {keyed};

-- Runs that must begin at once: a worker finds the first of them without going through all that are open.
create index rota_ready_solo on rota_ready (queue, rank, run_at, run_id) where hold = 0 and solo > 0;

-- How many runs of a job were pruned, so that the numbers of the others stay: those with this id or a larger one come after
-- them. The row of the smallest id has those before all that are kept.
create table rota_pruned (
    job text not null,
    up_to {id} not null,
    runs bigint not null,
    primary key (job, up_to)
) {keyed};
