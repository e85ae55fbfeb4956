"""Check audit trails: unbroken, legal, in order, and consistent with the state of the run."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from rota.core.ledger.audit import Event
from rota.core.states import LEGAL_CHANGES, RunState
from rota.store import Store
from rota.store.databases.database import Work

T = TypeVar("T")
Line = tuple[str, RunState | None, RunState | None]


def lines(events: Sequence[Event]) -> list[Line]:
    return [(event.type, event.from_state, event.to_state) for event in events]


def words(events: Sequence[Event]) -> list[str]:
    """`type → state`, or the type alone where no state changed."""
    return [f"{event.type} → {event.to_state.value}" if event.to_state else event.type for event in events]


async def trail(store: Store, run_id: str) -> list[Event]:
    """Checked."""
    events = await store.ledger.events_of_run(run_id)
    check(events, (await store.get_run(run_id)).state)
    return events


def check(events: Sequence[Event], state: RunState) -> None:
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.at for event in events] == sorted(event.at for event in events), events
    fences = [event.fence or 0 for event in events]
    assert fences == sorted(fences), events
    claims = [event.fence or 0 for event in events if event.type == "claimed"]
    assert all(before < after for before, after in pairwise(claims)), events
    changes = [event for event in events if event.to_state is not None]
    assert changes[0].from_state is None
    for before, after in pairwise(changes):
        assert after.from_state is before.to_state, lines(events)
        assert after.to_state in LEGAL_CHANGES[after.from_state], lines(events)  # type: ignore[index]
    assert changes[-1].to_state is state, lines(events)


def repeat_everything(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat every repeatable transaction, as if its first answer had been lost after the commit."""
    once = store.database.transact

    async def twice(work: Work[T], *, repeatable: bool = True, **how: Any) -> T:
        answer = await once(work, repeatable=repeatable, **how)
        return await once(work, repeatable=repeatable, **how) if repeatable else answer

    monkeypatch.setattr(store.database, "transact", twice)
