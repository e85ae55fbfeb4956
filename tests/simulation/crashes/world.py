"""A world that notes each operation on its database: whose it was, whether it wrote, and how often it was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from rota.store.databases.database import Row, Tx, Work
from rota.store.databases.sqlite.sqlite import SqliteTx
from rota.values.clock import Clock
from tests.simulation.script.entries import Script, Strike
from tests.simulation.world.backends import Backend, Kind
from tests.simulation.world.gate import Blow
from tests.simulation.world.loop import Node
from tests.simulation.world.world import World

T = TypeVar("T")

_HAS_WRITTEN = "select pg_current_xact_id_if_assigned() is not null"


class Operation(msgspec.Struct):
    """`number` counts from 0 in each process, over all of its boots. `now` is the database's clock."""

    process: str
    number: int
    name: str
    at: float
    now: int
    wrote: bool = False
    repeatable: bool = True
    times: int = 0

    @property
    def kind(self) -> str:
        return f"{self.process} {self.name}"


class Meter:
    """A `Backend` that tells of each operation whether it wrote. PostgreSQL counts a row's lock as writing."""

    def __init__(self, backend: Backend) -> None:
        self.dialect = backend.dialect
        self.current: Operation | None = None
        self._backend = backend

    def begin(self, clock: Clock) -> None:
        self._backend.begin(clock)

    def do(self, kind: Kind, work: Work[T], *, repeatable: bool = True) -> T:
        operation = self.current
        if operation is None or kind not in ("transact", "alone"):
            return self._backend.do(kind, work, repeatable=repeatable)

        async def metered(tx: Tx) -> T:
            before = tx.changes() if isinstance(tx, SqliteTx) else 0
            result = await work(tx)
            if isinstance(tx, SqliteTx):
                operation.wrote |= tx.changes() > before
            else:  # what is alone has no transaction to ask
                operation.wrote |= kind == "alone" or bool((await tx.fetch_sql(_HAS_WRITTEN))[0][0])
            return result

        operation.repeatable = repeatable
        operation.times += 1
        return self._backend.do(kind, metered, repeatable=repeatable)

    def changed(self) -> bool:
        return self._backend.changed()

    def look(self, sql: str) -> Sequence[Row]:
        return self._backend.look(sql)

    def mark(self) -> None:
        self._backend.mark()

    def lose(self) -> None:
        self._backend.lose()

    def move(self) -> None:
        self._backend.move()

    def close(self) -> None:
        self._backend.close()


class CrashWorld(World):
    """Its script begins with the strike."""

    def __init__(self, script: Script, backend: Backend) -> None:
        self._meter = Meter(backend)
        super().__init__(script, self._meter)
        (strike,) = [entry for entry in script.entries if isinstance(entry, Strike)]
        self.strike = strike
        self.seen: list[Operation] = []
        self._numbers: dict[str, int] = {}

    def blow_for(self, node: Node, op: str) -> Blow | None:
        blow = super().blow_for(node, op)
        if self.healed_at is not None:  # nothing is struck any more
            self._meter.current = None
            return blow
        number = self._numbers.get(node.name, 0)
        self._numbers[node.name] = number + 1
        operation = Operation(node.name, number, op, self.loop.time(), self.clock.micros())
        self.seen.append(operation)
        self._meter.current = operation
        return blow

    def writes(self, process: str, name: str) -> list[Operation]:
        """The operations of this name that wrote something, by processes whose names begin so."""
        return [one for one in self.seen if one.wrote and one.name == name and one.process.startswith(process)]
