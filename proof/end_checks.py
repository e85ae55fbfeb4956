"""Promises about the whole of a world, checked when all faults are over and everything had time to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from proof.backends import Direct
from rota.store.sqlite_thread import drive

if TYPE_CHECKING:
    from proof.world import World

Finding = tuple[str, str]


def all_is_final(world: World) -> Iterator[Finding]:
    """P12: nothing lost, nothing stuck."""
    for seen in world.observer.runs.values():
        if seen.end is None:
            yield "P12", f"not final ten leases after the last fault: {seen}"


def acknowledged_is_there(world: World) -> Iterator[Finding]:
    """P7: what was acknowledged exists, unless retention took it after its end."""
    seen = {change.run_id for change in world.changes if change.before is None}
    for call in world.diary.calls:
        if call.verb == "enqueue" and call.acknowledged:
            for run_id, _ in call.answer:
                if run_id not in seen:
                    yield "P7", f"acknowledged and not there: {call}"


def one_run_per_idempotency_key(world: World) -> Iterator[Finding]:
    """P8: all answers name the same run, and nobody made another."""
    named: dict[str, set[str]] = {}
    for call in world.diary.calls:
        if call.verb == "enqueue" and call.acknowledged and "idempotency_key" in call.what:
            key = call.what.partition("idempotency_key': '")[2].partition("'")[0]
            named.setdefault(key, set()).update(run_id for run_id, _ in call.answer)
    for key, ids in named.items():
        if len(ids) > 1:
            yield "P8", f"key {key!r} led to {len(ids)} runs: {sorted(ids)}"


def ledgers_verify(world: World) -> Iterator[Finding]:
    """P1, P3, P4: every plan time exactly once, and none that the schedule did not name."""
    store = Direct(world.backend, world.clock).store()
    for schedule in drive(store.schedules.list(job=None, owner=None, limit=100, after=None)):
        found = drive(store.ledger.verify(schedule.name))
        for finding in found.findings:
            yield "P1", f"{schedule.name}: {finding}"


def no_complaints(world: World) -> Iterator[Finding]:
    for complaint in world.loop.complaints:
        yield "engine", complaint


CHECKS: list[Callable[[World], Iterator[Finding]]] = [
    all_is_final,
    acknowledged_is_there,
    one_run_per_idempotency_key,
    ledgers_verify,
    no_complaints,
]
