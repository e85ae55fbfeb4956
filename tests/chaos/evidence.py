"""Everything the judge looks at, as values: what the database, the ledger, the producers and the processes say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import msgspec

from tests.chaos.cluster import Life
from tests.chaos.injector import Stroke
from tests.chaos.ledger import Entry
from tests.chaos.observer import Glimpse
from tests.chaos.producer import Asked, Cancelled, Line, Refused, Told
from tests.simulation.world.observer import Finding, Seen


class Attempt(msgspec.Struct, frozen=True, order=True):
    """As the database tells it; its times in microseconds."""

    run_id: str
    fence: int
    no: int
    worker: str
    claimed_at: int
    ended_at: int
    outcome: str

    @property
    def name(self) -> str:
        """The worker's, without what tells its lives apart."""
        return self.worker.partition("@")[0]


class Step(msgspec.Struct, frozen=True):
    run_id: str
    id: str
    fence: int
    state: str
    result: str | None


class Effect(msgspec.Struct, frozen=True):
    """A row that a handler committed in a transaction of its own; `finishing`: with the end of its run."""

    run_id: str
    fence: int
    finishing: int


class Evidence(msgspec.Struct, kw_only=True, dict=True):
    """`wall`: what to add to the monotonic clock for the other one. `findings`: what was seen as it happened.

    `looks`: how often the database was looked at meanwhile, and how often in vain.
    """

    runs: dict[str, Seen]
    attempts: list[Attempt]
    entries: list[Entry]
    answers: list[Line] = []
    steps: list[Step] = []
    effects: list[Effect] = []
    ended: dict[str, Glimpse] = {}
    lives: list[Life] = []
    strokes: list[Stroke] = []
    findings: list[Finding] = []
    schedules: dict[str, str] = {}
    looks: tuple[int, int] = (0, 0)
    wall: float = 0.0
    began_at: float = 0.0
    healed_at: float = 0.0
    recovered_at: float = 0.0
    ended_at: float = 0.0

    @cached_property
    def begun(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.what == "begin"]

    @cached_property
    def attempt(self) -> dict[tuple[str, int], Attempt]:
        return {(one.run_id, one.fence): one for one in self.attempts}

    @cached_property
    def of_run(self) -> dict[str, list[Attempt]]:
        """In the order of their fences."""
        found: dict[str, list[Attempt]] = {}
        for one in sorted(self.attempts):
            found.setdefault(one.run_id, []).append(one)
        return found

    @cached_property
    def kept_after_death(self) -> list[tuple[Attempt, float, float]]:
        """Attempts that were lost with a killed worker: when it was killed, and when they were taken away."""
        killed = {life.pid: life.until or 0.0 for life in self.lives if life.end == "killed"}
        died = {entry.worker: killed[entry.pid] for entry in self.begun if entry.pid in killed}
        lost = [one for one in self.attempts if one.outcome == "lost" and one.worker in died]
        return [(one, died[one.worker], one.ended_at / 1e6 - self.wall) for one in lost]

    def of_job(self, *jobs: str) -> Iterable[Seen]:
        return [seen for seen in self.runs.values() if seen.job in jobs]

    def said(self, *what: str) -> set[tuple[str, int]]:
        """Which runs under which fences handlers said that of."""
        return {(entry.run_id, entry.fence) for entry in self.entries if entry.what in what}

    @cached_property
    def asked(self) -> dict[str, Asked]:
        return {line.key: line for line in self.answers if isinstance(line, Asked)}

    @cached_property
    def told(self) -> list[Told]:
        return [line for line in self.answers if isinstance(line, Told)]

    @cached_property
    def refused(self) -> list[Refused]:
        return [line for line in self.answers if isinstance(line, Refused)]

    @cached_property
    def cancels(self) -> list[Cancelled]:
        return [line for line in self.answers if isinstance(line, Cancelled)]


def arguments_of(seen: Seen) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(seen.payload)
    return found
