"""A scene: what is there before, and the operations that may meet over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import Any

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.runs.run import NewRun
from rota.store import Store
from tests.support.clock import ManualClock
from tests.support.runs.runs import make

Facts = Mapping[str, Any]


class Party(msgspec.Struct, frozen=True):
    """Whoever performs an operation: a process of its own, with what the scene made."""

    name: str
    store: Store
    facts: Facts
    new_id: Callable[[], str]

    @property
    def worker(self) -> str:
        return f"worker-{self.name}"

    def make(self, job: JobDefinition | str, **options: Any) -> NewRun:
        return make(job, id=self.new_id(), **options)


class Operation(msgspec.Struct, frozen=True):
    """`passes_over`: why it may do less than in any serial order, and come back for the rest: it skips what somebody
    has at that moment.
    """

    name: str
    act: Callable[[Party], Coroutine[Any, Any, object]]
    passes_over: str | None = None
    parts: tuple[Callable[[Party], Coroutine[Any, Any, object]], ...] = ()


class Scene(msgspec.Struct, frozen=True):
    """`arrange` makes the scene and returns its facts. `known`: jobs that its workers execute. `harmless`: why two
    operations may end as in no serial order, and nothing is broken by it.
    """

    name: str
    arrange: Callable[[Store, ManualClock], Awaitable[Facts]]
    operations: tuple[Operation, ...]
    known: Mapping[str, int]
    triples: tuple[tuple[str, str, str], ...] = ()
    harmless: Mapping[tuple[str, str], str] = {}

    def excuse(self, names: Collection[str]) -> str | None:
        return next((why for pair, why in self.harmless.items() if not Counter(pair) - Counter(names)), None)

    def operation(self, name: str) -> Operation:
        return next(operation for operation in self.operations if operation.name == name)
