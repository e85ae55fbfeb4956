"""What planning remembers of schedules: a revision says the same for ever, and its mark stands beside the cursor."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import apsw
import msgspec
import pytest

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.planning.tick import OrdinaryRule
from rota.core.schedules.revisions import Change
from rota.core.states import Outcome
from rota.errors import RotaError
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.planning import due
from rota.store.planning.due import plan_due
from rota.store.schedules import change, schedule_row
from rota.store.schedules.schedule_row import CachedDefinition, DefinitionCache, read_unknown
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, tell
from tests.support.schedules.ledger_oracle import rows
from tests.support.schedules.schedules import edit, get_schedule, make_schedule, minutes, noon, plan, runs_of
from tests.support.wait import until

SAID = (
    "select c.schedule_id, c.said, c.said_at, s.id, s.revision, s.name, s.definition, s.enabled, s.paused_at, "
    "s.resume_at, s.job_paused, s.owner, s.declared, s.deleted_at, s.updated_at "
    "from rota_schedule s left join rota_cursor c on c.no = s.cursor_no"
)
LATE = 2**62


@pytest.fixture
def clock() -> ManualClock:
    return noon()


class Undone(RotaError):
    """Takes back what a transaction did."""


async def payloads(store: Store) -> list[Any]:
    return [run.payload["n"] for run in await runs_of(store)]


async def payload(tx: Tx, n: int, store: Store) -> None:
    row = await change.locked(tx, "s")
    definition = msgspec.structs.replace(row.definition, payload={"n": n})
    await change.update(tx, row, definition, Change(note="edited"), store.new_id)


async def passed(store: Store, clock: ManualClock, count: int) -> None:
    clock.advance(minutes(count))
    await plan(store)


async def caught_up(store: Store, clock: ManualClock) -> None:
    clock.advance(minutes(3))
    await store.schedules.resume("s", "all", None)


async def failing(store: Store, clock: ManualClock) -> None:
    await edit(store, "s", failure={"mode": "pause"}, overlap="allow")
    await passed(store, clock, 1)
    for held in await claim(store):
        await tell(store, held, Outcome.FAILED)
    await passed(store, clock, 1)
    assert (await get_schedule(store)).state == "paused"


async def last_run(store: Store, clock: ManualClock) -> None:
    await edit(store, "s", max_runs=(await get_schedule(store)).fired + 1)
    await passed(store, clock, 1)


Act = Callable[[Store, ManualClock], Awaitable[object]]

ACTS: dict[str, Act] = {
    "edited": lambda store, _: edit(store, "s", every("2m"), payload={"n": 2}),
    "edited within the same instant": lambda store, _: edit(store, "s", every("3m")),
    "disabled": lambda store, _: edit(store, "s", enabled=False),
    "enabled": lambda store, _: edit(store, "s", enabled=True),
    "paused": lambda store, _: store.schedules.pause("s", "a break", "ada", None),
    "paused until": lambda store, clock: store.schedules.pause("s", "a break", "ada", clock.micros() + 90_000_000),
    "woken": lambda store, clock: passed(store, clock, 2),
    "paused again": lambda store, _: store.schedules.pause("s", None, None, None),
    "resumed, skipping": lambda store, _: store.schedules.resume("s", "skip", None),
    "paused once more": lambda store, _: store.schedules.pause("s", None, None, None),
    "resumed, catching up": caught_up,
    "job paused": lambda store, _: store.pause_job("work", None, None),
    "job resumed": lambda store, _: store.resume_job("work", "latest", None),
    "its policy pauses it": failing,
    "resumed by hand": lambda store, _: store.schedules.resume("s", "latest", None),
    "its last run": last_run,
    "job cancelled": lambda store, _: store.cancel_job("work", None, None),
    "deleted": lambda store, _: store.schedules.delete("s", None),
    "made anew": lambda store, _: make_schedule(store),
}


async def test_whatever_changes_a_schedule_changes_its_mark_which_stands_beside_its_cursor(
    store: Store, clock: ManualClock
) -> None:
    await make_schedule(store)
    known: dict[Row, Row] = {}
    for what, act in ACTS.items():
        before = await rows(store, SAID)
        await act(store, clock)
        said = await rows(store, SAID)
        assert said != before, f"{what} is a change"
        for row in said:
            assert known.setdefault(row[:3], row[3:]) == row[3:], f"{what}: the mark is another one"
            assert (row[0], row[2]) == (row[3], row[-1]), f"{what}: the cursor has its mark"


async def test_planning_goes_by_what_another_process_has_changed(
    store: Store, second: Store, clock: ManualClock
) -> None:
    await make_schedule(store, payload={"n": 1}, overlap="allow")
    await passed(store, clock, 1)
    await edit(second, "s", payload={"n": 2}, overlap="allow")
    await passed(store, clock, 1)
    await second.schedules.pause("s", None, None, None)
    await passed(store, clock, 1)
    assert await payloads(store) == [1, 2]


@pytest.mark.parametrize(
    "by_hand",
    [
        "update rota_schedule set enabled = 0",
        "update rota_schedule set paused_at = 1",
        "update rota_schedule set job_paused = 1",
        """update rota_schedule set definition = replace(definition, '"n":1', '"n":2')""",
    ],
)
async def test_planning_goes_by_what_somebody_has_changed_by_hand(
    store: Store, clock: ManualClock, by_hand: str
) -> None:
    await make_schedule(store, payload={"n": 1}, overlap="allow")
    await passed(store, clock, 1)
    await store.database.transact(lambda tx: tx.script(by_hand))
    await passed(store, clock, 1)
    assert await payloads(store) == ([1, 2] if "definition" in by_hand else [1])


async def test_what_was_switched_off_by_hand_says_so_and_is_switched_on_by_hand(
    store: Store, clock: ManualClock
) -> None:
    """It is still due, and must not be planned again and again meanwhile."""
    await make_schedule(store, payload={"n": 1})
    await store.database.transact(lambda tx: tx.script("update rota_schedule set enabled = 0"))
    await passed(store, clock, 1)
    assert "in the database itself" in str((await get_schedule(store)).trouble)
    await store.database.transact(lambda tx: tx.script("update rota_schedule set enabled = 1"))
    await passed(store, clock, 5)
    assert (len(await runs_of(store)), (await get_schedule(store)).trouble) == (1, None)


async def test_what_a_change_that_was_taken_back_said_is_forgotten(store: Store, clock: ManualClock) -> None:
    """Its number and its instant are those of the next change."""
    await make_schedule(store, payload={"n": 1}, overlap="allow")
    clock.advance(minutes(1))

    async def changed_and_planned(tx: Tx) -> None:
        await payload(tx, 2, store)
        clock.advance(minutes(1))
        assert (await plan_due(tx, 10, {}, store.new_id, store.planning._definitions)).runs == 1
        clock.advance(-minutes(1))
        raise Undone("nothing was wrong")

    with pytest.raises(Undone):
        await store.database.transact(changed_and_planned)
    await store.database.transact(lambda tx: payload(tx, 3, store))
    await passed(store, clock, 1)
    assert await payloads(store) == [1, 3]


async def test_what_comes_is_read_once_and_before_its_time(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await make_schedule(store, f"s{number}", payload={"n": number})
    read: list[int] = []
    definition_of = schedule_row._definition_of

    def counted(row: Row) -> tuple[int, CachedDefinition]:
        read.append(row[3])
        return definition_of(row)

    monkeypatch.setattr(schedule_row, "_definition_of", counted)
    clock.advance(minutes(1))
    until = clock.micros()
    assert [await store.planning.read_ahead(until, 2) for _ in range(4)] == [True, True, False, False]
    assert len(set(read)) == len(read) == 5
    assert await plan(store) == 5
    assert not await store.planning.read_ahead(LATE, 100)
    assert len(read) == 5, "known"


@pytest.mark.parametrize("broken", ["'{\"job\": 7'", "replace(definition, 'PT60S', 'PT0S')"], ids=["text", "rule"])
async def test_reading_ahead_bears_what_cannot_be_planned(store: Store, clock: ManualClock, broken: str) -> None:
    await make_schedule(store, "odd", job=JobDefinition(name="odd"))
    await make_schedule(store, "good")
    breaking = f"update rota_schedule set revision = revision + 1, definition = {broken} where name = 'odd'"
    await store.database.transact(lambda tx: tx.fetch_sql(breaking))
    assert not await store.planning.read_ahead(LATE, 100)
    assert len(store.planning._definitions) == 2


async def test_what_cannot_be_read_is_in_nobodys_way(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "odd", job=JobDefinition(name="odd"))
    await make_schedule(store, "good")
    breaking = "update rota_schedule set revision = revision + 1, definition = '{\"job\": 7' where name = 'odd'"
    await store.database.transact(lambda tx: tx.fetch_sql(breaking))
    clock.advance(minutes(1))
    await plan(store)
    assert len(await runs_of(store, "good")) == 1


async def test_a_provider_and_a_delay_are_no_matter(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "named", scopes="tenants")
    await make_schedule(store, "late", delay="10s", jitter="5s")
    assert not await store.planning.read_ahead(LATE, 100)
    clock.advance(minutes(1))
    assert await plan(store, tenants=()) == 0
    clock.advance(minutes(1) / 6)
    assert await plan(store) == 1


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_row, "_MOST", 10)
    known = DefinitionCache()
    for first in range(0, 100, 4):
        known.keep([CachedDefinition((str(n), 1, 0), (n,), "s", "{}") for n in range(first, first + 4)])
        assert len(known) <= 10
    assert ("99", 1, 0) in known
    assert ("80", 1, 0) not in known


async def test_what_is_forgotten_while_others_are_read_is_planned_all_the_same(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_schedule(store, "known")
    clock.advance(minutes(1))
    await plan(store)
    await make_schedule(store, "new")
    clock.advance(minutes(1))

    async def forgetting(*asked: Any) -> Any:
        read = await read_unknown(*asked)
        store.planning._definitions.clear()
        return read

    monkeypatch.setattr(due, "read_unknown", forgetting)
    assert (await store.planning.plan(10, {})).schedules == 2


async def test_reading_ahead_leaves_trouble_to_planning(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_schedule(store, "bad")

    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(OrdinaryRule, "fire", breaks)
    assert not await store.planning.read_ahead(LATE, 10)


async def test_reading_ahead_waits_for_nobody_who_writes(sqlite_store: Store, clock: ManualClock) -> None:
    await make_schedule(sqlite_store, "s")
    async with sqlite_store.database.session():
        assert not await sqlite_store.planning.read_ahead(LATE, 10)


async def test_what_was_read_ahead_is_kept_though_the_writer_is_busy(sqlite_store: Store, clock: ManualClock) -> None:
    await make_schedule(sqlite_store, "s")
    async with sqlite_store.database.session():
        writing = asyncio.create_task(sqlite_store.database.transact(lambda tx: tx.fetch("now")))
        await asyncio.sleep(0)
        reading = asyncio.create_task(sqlite_store.planning.read_ahead(LATE, 10))
        await until(lambda: len(sqlite_store.planning._definitions) == 1)
        assert not writing.done()
    await writing
    assert not await reading


@pytest.mark.parametrize("foreseen", [True, False])
async def test_what_was_read_ahead_is_at_hand_when_it_is_planned(
    sqlite_store: Store, clock: ManualClock, foreseen: bool
) -> None:
    """Whoever writes to a file empties the memory of everybody else's connection to it."""
    store = sqlite_store
    for number in range(100):
        await make_schedule(store, f"s{number}", payload={"text": "x" * 2_000})
    clock.advance(minutes(1))
    assert await plan(store) == 100
    await _written_by_another(store)
    clock.advance(minutes(1))
    if foreseen:
        assert not await store.planning.read_ahead(LATE, 1_000)
    await store.database.transact(_missed)  # counted from here on
    assert await plan(store) == 100
    missed = await store.database.transact(_missed)
    assert missed < 30 if foreseen else missed > 100


async def _missed(tx: Tx) -> int:
    """Pages that the connection which writes had to read from the file, since this was asked last."""
    connection: apsw.Connection = tx.connection  # type: ignore[attr-defined]
    return connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS, True)[0]


async def _written_by_another(store: Store) -> None:
    async with store.database.session() as session:
        await session.execute("update rota_job set declared_at = declared_at + 1", ())
