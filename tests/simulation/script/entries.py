"""What happens in a world: its processes, what clients ask for and when, and what goes wrong.

A script is a list, so that a failing one can be made shorter: whatever is left out changes nothing else that was drawn.
`generator.py` draws them from seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

HELD_QUEUES = ("default", "fast")
HELD_JOBS = ("plain", "planned", "narrow")


class Entry(msgspec.Struct, frozen=True, tag=True):
    at: float


class Enqueue(Entry, frozen=True, tag=True):
    client: str
    job: str
    acts: list[str]
    options: dict[str, Any] = {}
    copies: int = 1


class Cancel(Entry, frozen=True, tag=True):
    """`at_work`: of those that are working in steps, if there are any."""

    client: str
    pick: float
    at_work: bool = False


class RetryByHand(Entry, frozen=True, tag=True):
    """With `keep`, what its steps have done is kept; `begin` picks one of them, to begin from there again."""

    client: str
    pick: float
    keep: bool = False
    begin: float | None = None


class Link(msgspec.Struct, frozen=True):
    """Whom a run follows: another of the same call by its place, or, if that is None, one that is there, picked."""

    place: int | None
    pick: float = 0.0
    on: str = "success"
    otherwise: str = "skip"


class Member(msgspec.Struct, frozen=True):
    job: str
    acts: list[str]
    after: list[Link] = []
    options: dict[str, Any] = {}


class Family(Entry, frozen=True, tag=True):
    """Runs that follow each other, enqueued at once. `keyed`: each has a key, so that it may be said again."""

    client: str
    members: list[Member]
    keyed: bool = False


class Answer(Entry, frozen=True, tag=True):
    """Somebody outside speaks of what waits for it, or did: see `clients/external.py` for the verbs."""

    client: str
    verb: str


class ExternalWorker(Entry, frozen=True, tag=True):
    """Somebody who claims external jobs for a while, and does with each what its payload says."""

    client: str
    span: float


class Restrict(Entry, frozen=True, tag=True):
    """Only workers of these names may have a run from now on; none: anybody."""

    client: str
    pick: float
    names: list[str]


class SetQuota(Entry, frozen=True, tag=True):
    """Of a scope, or without an id of each of its kind; without options it is dropped."""

    client: str
    kind: str
    id: str | None
    options: dict[str, Any] = {}


class Bulk(Entry, frozen=True, tag=True):
    """All runs of a job that can be, cancelled or retried."""

    client: str
    verb: str
    job: str


class AddSchedule(Entry, frozen=True, tag=True):
    client: str
    name: str
    trigger: dict[str, Any]
    acts: list[str]
    options: dict[str, Any] = {}
    job: str = "planned"


class ChangeSchedule(Entry, frozen=True, tag=True):
    client: str
    name: str
    verb: str
    options: dict[str, Any] = {}


class ChangeJob(Entry, frozen=True, tag=True):
    """What is done to a job as a whole: see `clients/jobs.py` for the verbs."""

    client: str
    job: str
    verb: str
    options: dict[str, Any] = {}


class Hold(Entry, frozen=True, tag=True):
    """A queue or a job is paused for a while."""

    client: str
    kind: str
    name: str
    span: float
    catch_up: str = "skip"


class Order(Entry, frozen=True, tag=True):
    """What is asked of an engine's worker: `drain` or `resume`."""

    client: str
    verb: str
    engine: str


class Kill(Entry, frozen=True, tag=True):
    process: str
    down: float


class Stop(Entry, frozen=True, tag=True):
    process: str
    down: float


class Freeze(Entry, frozen=True, tag=True):
    process: str
    span: float


class Away(Entry, frozen=True, tag=True):
    """The database cannot be reached from a process, or from any of them."""

    process: str | None
    span: float

    @property
    def whom(self) -> str | None:
        return self.process


class Mute(Entry, frozen=True, tag=True):
    """One operation of a process does not get through, though all others do: it has a connection of its own."""

    process: str
    op: str
    span: float

    @property
    def whom(self) -> str:
        return f"{self.process} {self.op}"


class Strike(Entry, frozen=True, tag=True):
    """The first operation of a process after `skip` others meets with a blow; with `op`, of those of this name."""

    process: str
    blow: str
    skip: int
    op: str = ""


class Hush(Entry, frozen=True, tag=True):
    """Hints are lost."""

    span: float


class Jump(Entry, frozen=True, tag=True):
    """The database's clock is set."""

    by: float


class Mark(Entry, frozen=True, tag=True):
    """A backup is made, or a standby gets its last change."""


class Lose(Entry, frozen=True, tag=True):
    """The database goes on from the last mark, and is somewhere else: a failover, or a backup that is restored."""


Coordination = Family | Answer | ExternalWorker | Restrict | SetQuota
Command = Enqueue | Cancel | RetryByHand | Bulk | AddSchedule | ChangeSchedule | ChangeJob | Hold | Order | Coordination
Fault = Kill | Stop | Freeze | Away | Mute | Strike | Hush | Jump
Happening = Command | Fault | Mark | Lose


class Script(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    engines: int
    offsets: list[float]  # how wrong each engine's clock is
    distance: float  # of everybody to the database
    start: int  # microseconds
    hints: bool = True  # whether there are any: without them, everything is found by polling
    span: float  # after which nothing new happens, and all faults are over
    entries: list[Happening]
    lingers: bool = True  # after that, long enough to see that schedules are planned without being asked
    theme: str = ""

    def kept(self, places: Sequence[int]) -> Script:
        return msgspec.structs.replace(self, entries=[self.entries[place] for place in places])
