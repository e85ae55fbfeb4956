"""What is due next is answered from memory as long as nothing was written, by this process or another."""

from datetime import timedelta

import apsw
import pytest

from rota.core.calendar.triggers import after
from rota.store import Store
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, finish
from tests.support.schedules.schedules import MINUTE, make_schedule, minutes, plan


@pytest.fixture
def asked(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each question that went to the database."""
    questions: list[str] = []
    glance = SqliteDatabase.glance

    async def counted(self: SqliteDatabase, work: object) -> object:
        questions.append("look")
        return await glance(self, work)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteDatabase, "glance", counted)
    return questions


async def test_while_nothing_is_written_the_file_is_not_read(
    sqlite_store: Store, clock: ManualClock, asked: list[str]
) -> None:
    await make_schedule(sqlite_store)
    first = await sqlite_store.planning.look(())
    clock.advance(timedelta(seconds=7))
    second = await sqlite_store.planning.look(())
    assert first.next_in is not None
    assert second.next_in == first.next_in - 7_000_000, "time goes on"
    assert asked == ["look"]
    await sqlite_store.planning.look((), followers=False)
    await sqlite_store.planning.look(("tenants",))
    assert len(asked) == 3, "another question has another answer"


async def test_a_write_by_anybody_is_seen(
    sqlite_store: Store, sqlite_url: str, clock: ManualClock, asked: list[str]
) -> None:
    await make_schedule(sqlite_store)
    assert (await sqlite_store.planning.look(())).next_in is not None
    other = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    other.execute("update rota_cursor set next_at = next_at - ?", (MINUTE,)).fetchall()
    other.close()
    found = (await sqlite_store.planning.look(())).next_in
    assert found is not None
    assert found <= 0
    await plan(sqlite_store)
    later = (await sqlite_store.planning.look(())).next_in
    assert later is not None
    assert later > 0
    assert len(asked) == 3


async def test_the_end_of_an_awaited_run_is_seen(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10s"))
    clock.advance(minutes(1))
    await plan(store)
    assert not (await store.planning.look(())).ended
    (held,) = await claim(store)
    await finish(store, held)
    assert (await store.planning.look(())).ended


async def test_a_file_that_cannot_be_asked_at_once_is_asked_as_ever(
    sqlite_store: Store, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_schedule(sqlite_store)
    monkeypatch.setattr(SqliteDatabase, "version", lambda _self: None)
    for _ in range(2):
        assert (await sqlite_store.planning.look(())).next_in is not None
    assert len(asked) == 2
