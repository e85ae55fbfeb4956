"""Lists of schedules: by a part of the name, by state, page by page."""

import pytest

from rota.store import Store
from tests.support.schedules.schedules import make_schedule


async def names(store: Store, **wanted: object) -> list[str]:
    return [schedule.name for schedule in await store.schedules.list(**wanted)]  # type: ignore[arg-type]


async def test_by_a_part_of_the_name(store: Store) -> None:
    for name in ("Bill-1", "bill_2", "mill!3", "100%"):
        await make_schedule(store, name)
    assert await names(store, text="BILL") == ["Bill-1", "bill_2"]
    assert await names(store, text="l_") == ["bill_2"]
    assert await names(store, text="%") == ["100%"]
    assert await names(store, text="!") == ["mill!3"]


async def test_letters_outside_ascii_are_found_as_they_are_written(store: Store) -> None:
    for name in ("BÄR", "bär", "İstanbul"):
        await make_schedule(store, name)
    assert await names(store, text="Ä") == ["BÄR"]
    assert await names(store, text="bÄr") == ["BÄR"]
    assert await names(store, text="Bär") == ["bär"]
    assert await names(store, text="İST") == ["İstanbul"]


@pytest.mark.parametrize("bite", [1, 2, 1_000])
async def test_by_state(store: Store, monkeypatch: pytest.MonkeyPatch, bite: int) -> None:
    monkeypatch.setattr("rota.store.schedules.schedule_operations._BITE", bite)
    for name in "abcdef":
        await make_schedule(store, name)
    for name in "bdf":
        await store.schedules.pause(name, None, None, None)
    assert await names(store, state="paused") == ["b", "d", "f"]
    assert await names(store, state="paused", limit=2) == ["b", "d"]
    assert await names(store, state="paused", limit=2, after="d") == ["f"]
    assert await names(store, state="active", text="b") == []
