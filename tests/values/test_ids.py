"""Ids of runs tell when they were made."""

from uuid import UUID

import pytest

from rota.values.clock import HostClock, new_id
from rota.values.ids import last_id_of, milliseconds_of
from tests.support.clock import START


@pytest.mark.parametrize("micros", [0, 1, 999, 1_000, START, START + 999_999])
def test_the_last_id_of_an_instant_parts_the_ids_made_until_then_from_the_later(micros: int) -> None:
    last = last_id_of(micros)
    assert all(id_at(micros) <= last < id_at(micros + 1_000) for _ in range(100))


def test_ids_are_made_by_the_hosts_clock() -> None:
    before = HostClock().micros()
    made = new_id()
    assert last_id_of(before - 1_000) < made <= last_id_of(HostClock().micros() + 1_000)


def id_at(micros: int) -> str:
    return str(UUID(int=micros // 1_000 << 80 | UUID(new_id()).int & (1 << 80) - 1))


def test_an_instant_before_all_time_has_an_id_too() -> None:
    assert last_id_of(-1) < new_id()


def test_an_id_tells_its_millisecond() -> None:
    assert milliseconds_of(id_at(1_234_567)) == 1_234
