"""Statistics of many runs: each ended run is counted once, whenever it ends, is counted, or is pruned."""

import asyncio
import random
from datetime import timedelta
from uuid import UUID

import pytest

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.runs.claim import NIL_ID
from rota.core.states import RunState
from rota.errors import Conflict
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.databases.statements import POSTGRES, compile_statement
from rota.store.jobs import jobs
from rota.store.monitoring import count_runs
from rota.store.runs import prune as pruning
from rota.values.ids import last_id_of
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, finish, make
from tests.support.schedules.schedules import make_schedule, minutes, plan, runs_of

HOUR = timedelta(hours=1)
ALL = Retention(keep=1_000_000)
NOTHING = Retention(keep=0, keep_for=timedelta(0))


async def put(store: Store, clock: ManualClock, job: str = "work", ago: timedelta = timedelta(0)) -> str:
    """Insert one run whose id was made so long ago."""
    millis = (clock.micros() - ago // timedelta(microseconds=1)) // 1_000
    id = str(UUID(int=millis << 80 | 7 << 76 | 2 << 62 | random.getrandbits(60)))
    await store.enqueue([make(job, id=id)])
    return id


async def work(store: Store, count: int = 100, job: str = "work") -> int:
    found = await claim(store, count, known={job: 1})
    for held in found:
        await finish(store, held)
    return len(found)


async def prune(store: Store, retention: Retention = ALL, *, thorough: bool = True) -> int:
    return await store.prune(lambda _: retention, thorough=thorough)


async def fetch(store: Store, sql: str, **values: object) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return [tuple(row) for row in await tx.fetch_sql(sql, **values)]

    return await store.database.read(body)


async def looked_at(store: Store, job: str = "work") -> int:
    """Return how many runs the statistics of a job read besides the counted ones."""

    async def body(tx: Tx) -> int:
        rows = await tx.fetch("job_counts", [(job,)], nil=NIL_ID)
        return sum(int(count) for _, _, _, _, count, *_, stats in rows if stats is None)

    return await store.database.read(body)


async def total(store: Store, job: str = "work") -> int:
    return (await store.job_stats(job)).total


async def test_what_is_counted_is_not_looked_at_again(store: Store, clock: ManualClock) -> None:
    for _ in range(5):
        await put(store, clock)
    await work(store)
    before = await store.job_stats("work")
    assert (before.total, await looked_at(store)) == (5, 5)
    clock.advance(HOUR)
    await put(store, clock)
    await work(store)
    assert await prune(store) == 0
    assert await looked_at(store) == 1, "those that were just made are left for later"
    assert await total(store) == 6
    assert (await store.job_stats("work")).average_duration_ms == before.average_duration_ms
    assert len(await fetch(store, "select id from rota_run")) == 6


async def test_runs_that_end_after_they_were_passed(store: Store, clock: ManualClock) -> None:
    for _ in range(4):
        await put(store, clock)
    await work(store, 1)
    clock.advance(HOUR)
    await prune(store)
    assert await total(store) == 1
    await work(store, 2)
    assert (await total(store), await looked_at(store)) == (3, 2)
    await prune(store)
    assert (await total(store), await looked_at(store)) == (3, 0)
    assert len(await fetch(store, "select run_id from rota_uncounted")) == 1
    await work(store)
    clock.advance(HOUR)
    assert await prune(store, NOTHING, thorough=False) == 4, "one of them was not counted when it is pruned"
    assert await total(store) == 4
    assert await fetch(store, "select run_id from rota_uncounted") == []


async def test_a_run_made_long_after_its_id_counts_once(store: Store, clock: ManualClock) -> None:
    await put(store, clock, ago=timedelta(minutes=20))
    await work(store)
    clock.advance(HOUR)
    await prune(store)
    await prune(store)
    assert await total(store) == 1
    clock.advance(HOUR)
    await put(store, clock, ago=timedelta(hours=9))
    await work(store)
    clock.advance(HOUR)
    assert await prune(store, NOTHING) == 2
    assert await total(store) == 2


@pytest.mark.parametrize("seed", range(6))
async def test_a_history_at_random(
    store: Store, second: Store, clock: ManualClock, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_runs, "_BITE", 7)
    monkeypatch.setattr(pruning, "_BATCH", 5)
    chance = random.Random(seed)
    ended = 0
    for _ in range(60):
        match chance.choice(["put", "put", "work", "prune", "pass", "drop"]):
            case "put":
                for _ in range(chance.randint(1, 8)):
                    await put(store, clock, ago=chance.choice([timedelta(0), timedelta(0), timedelta(minutes=10)]))
            case "work":
                ended += await work(store, chance.randint(1, 12))
            case "prune":
                thorough = chance.random() < 0.5
                await asyncio.gather(prune(store, thorough=thorough), prune(second, thorough=thorough))
            case "drop":
                some = Retention(chance.randint(0, 20), chance.choice([timedelta(0), HOUR]))
                await asyncio.gather(prune(store, some), prune(second))
            case _:
                clock.advance(chance.choice([timedelta(minutes=1), timedelta(minutes=20), HOUR]))
        assert await total(store) == ended
    clock.advance(HOUR)
    await prune(store, NOTHING)
    assert (await total(store), await looked_at(store)) == (ended, 0)


async def test_counting_repeated_after_an_unknown_outcome_counts_once(store: Store, clock: ManualClock) -> None:
    await put(store, clock)
    await put(store, clock)
    await work(store, 1)
    clock.advance(HOUR)
    for _ in range(2):
        await store.database.transact(count_runs.count("work"))
    await work(store)
    for _ in range(2):
        await store.database.transact(count_runs.count_passed("work"))
    assert (await total(store), await looked_at(store)) == (2, 0)


async def test_runs_that_counting_has_passed_are_gone_through_a_bite_at_a_time(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await put(store, clock)
    clock.advance(HOUR)
    await prune(store)
    monkeypatch.setattr(count_runs, "_BITE", 2)
    passed = "select run_id from rota_uncounted"
    assert len(await fetch(store, passed)) == 5
    await work(store, 3)
    await prune(store)
    assert len(await fetch(store, passed)) == 2
    await work(store)
    await prune(store)
    assert (await total(store), await fetch(store, passed)) == (5, [])


async def test_the_trouble_of_one_job_is_not_that_of_others(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job in ("a", "b", "c"):
        await put(store, clock, job)
        await work(store, job=job)
    clock.advance(HOUR)
    whole = pruning.prunable

    async def prunable(tx: Tx, job: str, retention: Retention) -> object:
        if job == "a":
            raise Conflict("not this one")
        return await whole(tx, job, retention)

    monkeypatch.setattr(pruning, "prunable", prunable)
    with pytest.raises(Conflict):
        await prune(store, NOTHING)
    assert await fetch(store, "select job from rota_run") == [("a",)]


async def test_skipped_runs_are_found_without_looking_at_history(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_runs, "_SKIPS_KEPT", 3)
    clock.advance(timedelta(days=5_000))  # far ahead of the ids of these runs
    await make_schedule(store, trigger=every("1m"))
    for _ in range(6):
        clock.advance(minutes(1))
        await plan(store)
    assert await prune(store) == 2
    assert await fetch(store, "select count(*) from rota_skip") == [(3,)]
    clock.advance(minutes(1))
    await plan(store)
    assert await prune(store) == 1
    assert await prune(store) == 0
    states = [run.state for run in await runs_of(store)]
    assert states == [RunState.QUEUED, *[RunState.SKIPPED] * 3]
    found = await store.ledger.verify("s")
    assert (found.ok, found.plan_times) == (True, 7)


@pytest.mark.parametrize("job", ["busy", "idle", "never"])
async def test_the_newest_runs_of_a_job_are_found_among_its_own(postgres_store: Store, job: str) -> None:
    """Whatever PostgreSQL estimates, a job without such runs is not searched for among all others."""
    store = postgres_store
    await store.save_jobs([JobDefinition(name="busy"), JobDefinition(name="idle")])

    async def fill(tx: Tx) -> None:
        await tx.script(
            """
            insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, max_attempts,
                on_lost, created_at, run_at, state, finished_at)
            select gen_random_uuid(), case when n % 1000 = 0 then 'idle' else 'busy' end, 1, 'default', 0, 'a', 'b',
                '{}', 1, 'retry', n, n, case when n % 1000 = 0 then null else 'succeeded' end, n
            from generate_series(1, 20000) as n;
            analyze rota_run;
            """
        )

    await store.database.transact(fill)

    asked: list[tuple[str, dict[str, object]]] = [
        ("newest_ended", {"walk": jobs._WALK}),
        ("newest_run", {"job": job}),
        ("newest_kept", {"job": job, "keep": 10}),
        ("next_to_count", {"job": job, "mark": NIL_ID, "until": last_id_of(2**50), "limit": 9}),
    ]

    async def plans(tx: Tx) -> str:
        return "\n".join([await explained(tx, name, job, values) for name, values in asked])

    told = await store.database.read(plans)
    assert "rota_run_job" in told
    assert "Seq Scan on rota_run" not in told
    assert "Backward using rota_run_pkey" not in told
    assert "Filter: (job" not in told


async def explained(tx: Tx, name: str, job: str, values: dict[str, object]) -> str:
    statement = compile_statement(name, POSTGRES, manual_clock=True)
    sql = statement.sql
    for place, parameter in reversed(list(enumerate(statement.parameters, 1))):
        value = [job] if parameter in statement.columns and parameter not in values else values[parameter]
        text = f"array['{job}']" if isinstance(value, list) else str(value) if isinstance(value, int) else f"'{value}'"
        sql = sql.replace(f"${place}", text)
    return "\n".join(line for (line,) in await tx.fetch_sql(f"explain {sql}"))
