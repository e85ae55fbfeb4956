"""Promotion: everything in the file ends up in PostgreSQL once, whatever happens on the way, and work continues
there."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

import pytest

from rota import Rota, RunState
from rota.client.promotion import Moved, Promoted, Promotion, place_of
from rota.errors import Conflict, DatabaseMoved, Invalid, PromotionUnfinished, RotaError
from rota.store import Database, Store, open_database, open_store
from rota.store.databases.database import Tx, Work
from rota.store.promotion.catalogue import catalogue_of, counts_of
from rota.testing import Harness, ManualClock
from tests.support.databases.sample_data import FAR, live, make_app
from tests.support.databases.tables import content_of, fill_empty
from tests.support.runs.runs import WORK, WORKER, claim, put, state_of
from tests.support.schedules.schedules import make_schedule, plan

T = TypeVar("T")
PLACE = "postgresql://somewhere/rota"


class Killed(Exception):
    """Simulated death of the process."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def source(sqlite_url: str, clock: ManualClock) -> AsyncIterator[Database]:
    opened = open_database(sqlite_url, clock)
    yield opened
    await opened.close()


@pytest.fixture
async def target(new_postgres_url: str, clock: ManualClock) -> AsyncIterator[Database]:
    opened = open_database(new_postgres_url, clock)
    yield opened
    await opened.close()


async def promote(source: Database, target: Database, **options: Any) -> Promoted:
    return await Promotion(source, target, PLACE, **options).promote()


async def lived_in(url: str, clock: ManualClock) -> tuple[Rota, list[str], dict[str, Any]]:
    did: list[str] = []
    app = make_app(did)
    async with Harness(app, url, clock) as harness:
        seen = await live(harness)
    clock.advance(timedelta(minutes=2))  # its worker is not heard of any more
    return app, did, seen


async def test_every_table_is_moved_as_it_was(
    source: Database, target: Database, sqlite_url: str, postgres_url: str, clock: ManualClock
) -> None:
    await lived_in(sqlite_url, clock)
    migrated = open_database(postgres_url)
    await fill_empty(source, migrated)
    await migrated.close()
    before = await content_of(source)
    assert [name for name, rows in before.items() if not rows] == [], "nothing to see whether it is moved"
    done = await promote(source, target, rows=7, actor="cli:ann")
    (noted,) = await Store(target).events.audit({"kind": "database"}, 10, None)
    assert (noted.type, noted.actor) == ("promoted", "cli:ann")
    after = await content_of(target)
    faults = after.pop("rota_fault")
    for table, word in (("rota_setting", "promoted_from"), ("rota_event", "promoted")):
        after[table].remove(next(row for row in after[table] if word in row))
    assert after == before
    assert done.tables == {name: len(rows) for name, rows in before.items()}
    assert sorted(row[-2] for row in faults) == sorted(
        str(id) for (id,) in await source.read(lambda tx: tx.fetch_sql("select run_id from rota_fault"))
    )


async def test_life_goes_on_there(source: Database, target: Database, sqlite_url: str, clock: ManualClock) -> None:
    _, did, seen = await lived_in(sqlite_url, clock)
    there = target.url  # type: ignore[attr-defined]
    done = await promote(source, target)
    assert done.ledgers == 4
    did_before = list(did)
    async with Harness(make_app(did), there, clock) as harness:
        for _ in range(20):
            clock.advance(timedelta(minutes=1))
            await harness.drain()
        states = {name: await harness.state(seen[name]) for name in ("retried", "delayed", "follower", "once")}
        assert set(states.values()) == {RunState.SUCCEEDED}
        assert [did.count(name) for name in ("retried", "delayed", "follower", "once")] == [2, 1, 1, 1]
        assert {name for name in did if name.startswith("narrow")} == {"narrow-0", "narrow-1", "narrow-2"}
        fired = [name for name in did if name.startswith("at ")]
        assert len(fired) == len(set(fired)), "a plan time was run twice"
        assert len(fired) >= len([name for name in did_before if name.startswith("at ")]) + 20
        for name in ("minutely", "shops", "hasty", "nightly"):
            assert (await harness.store.ledger.verify(name)).ok
        again = await harness.enqueue("upload", {"idempotency_key": "once", "delay": FAR}, name="once")
        assert again.id == seen["once"], "the key is held there, too"


async def test_numbers_go_on_after_the_highest(source: Database, target: Database) -> None:
    here = Store(source)
    await make_schedule(here, "first")
    await here.pause_queue("mail", None, "ann")
    highest = await source.read(_highest)
    await promote(source, target)
    there = Store(target)
    await there.pause_queue("post", None, "ann")
    await make_schedule(there, "second")
    assert highest == {"rota_event": 2, "rota_cursor": 1}
    assert await target.read(_highest) == {"rota_event": 5, "rota_cursor": 2}  # the promotion is one of them


async def _highest(tx: Tx) -> dict[str, int]:
    columns = {"rota_event": "seq", "rota_cursor": "no"}
    return {name: (await tx.fetch_sql(f"select max({column}) from {name}"))[0][0] for name, column in columns.items()}


async def test_a_lease_that_expired_is_reaped_there(source: Database, target: Database, clock: ManualClock) -> None:
    here = Store(source)
    run_id = await put(here)
    await claim(here)
    with pytest.raises(Conflict, match="runs are still leased: 1") as refused:
        await promote(source, target)
    assert "--wait" in (refused.value.hint or "")
    clock.advance(timedelta(seconds=31))
    await promote(source, target)
    there = Store(target)
    assert (await there.reap(10)).requeued == 1
    assert await state_of(there, run_id) is RunState.QUEUED


async def test_it_refuses_while_workers_are_alive_or_waits_for_them(
    source: Database, target: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Store(source).workers.beat(WORKER)
    with pytest.raises(Conflict, match="workers are running on this database: worker") as refused:
        await promote(source, target)
    assert "drain" in (refused.value.hint or "")
    await put(Store(source))  # nothing is frozen
    rest = asyncio.sleep

    async def silent(seconds: float) -> None:
        clock.advance(timedelta(minutes=1))
        await rest(0)

    monkeypatch.setattr("rota.client.promotion.asyncio.sleep", silent)
    done = await Promotion(source, target, PLACE).promote(wait=timedelta(minutes=5))
    assert done.tables["rota_run"] == 1


async def test_both_databases_say_so_while_it_is_not_finished(
    source: Database, target: Database, sqlite_url: str, clock: ManualClock
) -> None:
    await put(Store(source))
    with pytest.raises(Killed):
        await promote(source, target, tell=dies_after(1))
    for database in (source, target):
        with pytest.raises(PromotionUnfinished):
            await Store(database).migrate()
        with pytest.raises(PromotionUnfinished):
            await Store(database).require_schema()
    with pytest.raises(DatabaseMoved):  # also whoever has had it open all the time
        await put(Store(source))
    await promote(source, target)
    await Store(target).require_schema()
    with pytest.raises(DatabaseMoved, match=PLACE):
        await open_store(sqlite_url, clock)
    for write in (put(Store(source)), Store(source).workers.beat(WORKER), Store(source).save_jobs([WORK])):
        with pytest.raises(DatabaseMoved, match=PLACE):
            await write


def dies_after(count: int) -> Callable[[Moved], None]:
    told: list[Moved] = []

    def tell(moved: Moved) -> None:
        told.append(moved)
        if len(told) == count:
            raise Killed

    return tell


async def test_interrupted_again_and_again_it_goes_on(
    source: Database, target: Database, sqlite_url: str, clock: ManualClock
) -> None:
    await lived_in(sqlite_url, clock)
    before = await content_of(source)
    runs = 0
    while True:
        runs += 1
        try:
            await promote(source, target, tell=dies_after(4 + runs // 4), rows=5)
            break
        except Killed:
            continue
    assert runs > 5
    assert without_origin(await content_of(target)) == before


@pytest.mark.parametrize("seed", range(3))
async def test_it_may_die_at_any_transaction(
    source: Database, target: Database, sqlite_url: str, clock: ManualClock, seed: int
) -> None:
    """The process dies before the commit, or after it, when nobody receives the answer."""
    await lived_in(sqlite_url, clock)
    before = await content_of(source)
    chance = random.Random(seed)
    deaths = 0
    while True:
        mortal = Mortality(chance.randint(1, 40), unanswered=chance.random() < 0.5)
        try:
            await promote(mortal.of(source), mortal.of(target), rows=20)
            break
        except Killed:
            deaths += 1
    assert deaths
    assert without_origin(await content_of(target)) == before
    assert (await promote(source, target)).already


async def test_a_transaction_that_is_repeated_does_nothing_twice(
    source: Database, target: Database, sqlite_url: str, clock: ManualClock
) -> None:
    """The connection broke at the commit, and the transaction is repeated."""
    await lived_in(sqlite_url, clock)
    before = await content_of(source)

    async def twice(work: Work[T], **options: Any) -> T:
        await target.transact(work, **options)
        return await target.transact(work, **options)

    await promote(source, cast("Database", Mortal(target, twice)), rows=20)
    assert without_origin(await content_of(target)) == before


async def test_two_at_once_are_in_each_others_way_and_nothing_is_doubled(
    source: Database, target: Database, sqlite_url: str, clock: ManualClock
) -> None:
    await lived_in(sqlite_url, clock)
    before = await content_of(source)
    with pytest.raises(Killed):
        await promote(source, target, tell=dies_after(3))
    both = (promote(source, target, rows=5), promote(source, target, rows=5))
    ends = await asyncio.gather(*both, return_exceptions=True)
    assert all(isinstance(end, Promoted | RotaError) for end in ends), ends
    await promote(source, target)
    assert without_origin(await content_of(target)) == before


def without_origin(content: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    content.pop("rota_fault")
    content["rota_setting"] = [row for row in content["rota_setting"] if "promoted_from" not in row]
    content["rota_event"] = [row for row in content["rota_event"] if "promoted" not in row]
    return content


class Mortal:
    """A database whose transactions may die."""

    def __init__(self, database: Database, transact: Callable[..., Any]) -> None:
        self._database = database
        self.transact = transact

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


class Mortality:
    """Death at the n-th transaction, on either database."""

    def __init__(self, at: int, *, unanswered: bool) -> None:
        self._left = at
        self._unanswered = unanswered

    def of(self, database: Database) -> Database:
        return cast("Database", Mortal(database, self._dying(database.transact)))

    def _dying(self, transact: Callable[..., Any]) -> Callable[..., Any]:
        async def dying(work: Work[T], **options: Any) -> T:
            self._left -= 1
            if not self._left and not self._unanswered:
                raise Killed
            result: T = await transact(work, **options)
            if not self._left:
                raise Killed
            return result

        return dying


async def test_a_target_with_other_data_is_refused(source: Database, target: Database) -> None:
    there = Store(target)
    await there.migrate()
    await put(there)
    with pytest.raises(Conflict, match="contains rows already: rota_ready 1, rota_run 1"):
        await promote(source, target)
    await put(Store(source))  # nothing is frozen


async def test_counts_keep_the_order_of_the_tables() -> None:
    """A database may answer a union in any order: PostgreSQL does so with a parallel plan."""

    class Backwards:
        async def fetch_sql(self, sql: str) -> list[tuple[str, int]]:
            return [(name, 1) for name in reversed(re.findall(r"select '(\w+)'", sql))]

    names = [f"rota_{number:03}" for number in range(120)]
    assert list(await counts_of(cast("Tx", Backwards()), names)) == names


async def test_a_half_filled_target_is_not_another_promotions(
    source: Database, target: Database, new_sqlite_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await put(Store(source))
    with pytest.raises(Killed):
        await promote(source, target, tell=dies_after(1))
    other = open_database(f"sqlite:///{tmp_path_factory.mktemp('other') / 'rota.db'}")
    await Store(other).migrate()
    with pytest.raises(PromotionUnfinished):
        await promote(other, target)
    await other.close()


async def test_it_goes_only_to_where_it_began(source: Database, target: Database, postgres_url: str) -> None:
    await put(Store(source))
    with pytest.raises(Killed):
        await promote(source, target, tell=dies_after(1))
    elsewhere = open_database(postgres_url)
    with pytest.raises(PromotionUnfinished, match=PLACE):
        await Promotion(source, elsewhere, "postgresql://elsewhere/rota").promote()
    await elsewhere.close()
    spelled = "postgresql://somewhere.example/rota"
    assert (await Promotion(source, target, spelled).promote()).tables["rota_run"] == 1


async def test_an_abandoned_one_leaves_nothing_behind(source: Database, target: Database, clock: ManualClock) -> None:
    here = Store(source)
    await make_schedule(here)
    before = await content_of(source)
    with pytest.raises(Conflict, match="no promotion of this database has been started"):
        await Promotion(source, target, PLACE).abandon()
    with pytest.raises(Killed):
        await promote(source, target, tell=dies_after(60))
    await Promotion(source, target, PLACE).abandon()
    assert await content_of(source) == before
    assert not any((await content_of(target)).values())
    await Store(target).require_schema()
    clock.advance(timedelta(minutes=5))
    assert await plan(here)
    await promote(source, target)
    with pytest.raises(DatabaseMoved):
        await Promotion(source, target, PLACE).abandon()


async def test_looking_changes_nothing(source: Database, target: Database) -> None:
    await put(Store(source))
    seen = await Promotion(source, target, PLACE).look()
    assert seen.tables["rota_run"] == 1
    assert not (await target.read(catalogue_of)).tables
    await put(Store(source))
    await Store(target).migrate()
    await put(Store(target))
    with pytest.raises(Conflict, match="contains rows already"):
        await Promotion(source, target, PLACE).look()


async def test_a_text_that_postgres_cannot_hold_is_named_before_anything_is_done(
    source: Database, target: Database
) -> None:
    run_id = await put(Store(source))
    await source.transact(lambda tx: tx.script("update rota_run set metadata = 'a' || char(0) || 'b'"))
    with pytest.raises(Invalid, match=f"metadata of a row of rota_run contains a NUL.*{run_id}"):
        await promote(source, target)
    await put(Store(source))


async def test_only_this_way_around(source: Database, target: Database) -> None:
    with pytest.raises(Invalid, match="SQLite as source and PostgreSQL as target"):
        Promotion(target, source, PLACE)


async def test_a_row_that_got_lost_is_noticed(source: Database, target: Database) -> None:
    await put(Store(source))

    async def transact(work: Work[T], **options: Any) -> T:
        async def losing(tx: Tx) -> T:
            result = await work(tx)
            if "rota_run" in str(work):
                await tx.fetch_sql("delete from rota_run")
            return result

        return await target.transact(losing, **options)

    with pytest.raises(Conflict, match="row counts of the two databases differ: rota_run 1 and 0"):
        await promote(source, cast("Database", Mortal(target, transact)))
    with pytest.raises(PromotionUnfinished):
        await Store(target).require_schema()


def test_a_place_has_no_password() -> None:
    assert place_of("postgresql://ann:secret@db:6432/rota?sslmode=require") == "postgresql://db:6432/rota"
    assert place_of("postgresql:///rota") == "postgresql://localhost/rota"
