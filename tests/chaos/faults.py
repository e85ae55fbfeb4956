"""Which faults strike whom and when: drawn from a seed, so that a schedule of them can be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import msgspec

LEASE, HEARTBEAT, REAPER, GRACE = 3.0, 1.0, 0.5, 3.0
"""Seconds, of the processes under test."""

POSTGRES = "postgresql"

Track = Literal["process", "network", "database"]
"""What of a target is struck: one fault at a time for each."""


class Kind(msgspec.Struct, frozen=True):
    """`seconds`: between how few and how many it lasts. `targets`: what the names of those begin with."""

    name: str
    track: Track
    words: str
    seconds: tuple[float, float] = (0.0, 0.0)
    targets: tuple[str, ...] = ("worker", "server", "producer")
    weight: int = 2


_PROCESSES = ("worker", "server", "producer", "caller")
KINDS = (
    Kind("kill", "process", "kill -9, and started again", (0.1, 2.5), _PROCESSES, weight=4),
    Kind("pause", "process", "SIGSTOP and SIGCONT", (0.3, 3 * LEASE), ("worker", "server"), weight=3),
    Kind("stop", "process", "SIGTERM, and started again", (0.1, 1.0), ("worker", "server")),
    Kind("cut", "network", "its connections break"),
    Kind("refuse", "network", "no connection to the database", (0.5, 2 * LEASE)),
    Kind("stall", "network", "its connections are half-open", (1.0, 3 * LEASE)),
    Kind("slow", "network", "each round trip takes longer", (2.0, 6.0)),
    Kind("deaf", "network", "notifications never come", (2.0, 8.0), weight=1),
    Kind("swallow", "network", "the answer to a commit is lost", (3.0, 5.0), weight=5),
    Kind("terminate", "database", "all backends are terminated", targets=(POSTGRES,), weight=1),
    Kind("restart", "database", "stopped in order, and started again", (0.1, 2.5), (POSTGRES,), weight=1),
    Kind("crash", "database", "stopped at once (immediate), and started again", (0.1, 2.5), (POSTGRES,), weight=1),
    Kind("kill9", "database", "kill -9 of the postmaster, and started again", (0.1, 2.0), (POSTGRES,), weight=1),
    Kind(
        "failover",
        "database",
        "kill -9 of the primary, and its synchronous standby is promoted",
        targets=(POSTGRES,),
        weight=1,
    ),
    Kind(
        "lose",
        "database",
        "the primary is killed, and a standby is promoted that its last commits did not reach",
        (0.5, 2.5),
        (POSTGRES,),
        weight=1,
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}

SWALLOWED = {
    "worker": (
        "insert into rota_lease", "delete from rota_lease", "update rota_lease", "insert into rota_attempt",
        "insert into rota_step", "update rota_limit", "update rota_ready", "update rota_cursor",
    ),
    "server": ("insert into rota_run", "update rota_ready", "update rota_cursor"),
    "producer": ("insert into rota_run",),
}  # fmt: skip
"""A statement of the transaction whose answer is lost: a claim, a finish, a heartbeat, an enqueue, …"""


class Fault(msgspec.Struct, frozen=True):
    """`at`: seconds after the chaos test began; `detail`: what of the kind."""

    at: float
    seconds: float
    target: str
    kind: str
    detail: str = ""

    @property
    def track(self) -> Track:
        return BY_NAME[self.kind].track


def draw(seed: int, seconds: float, targets: Sequence[str], *, calm: float, gap: float) -> list[Fault]:
    """Over so many seconds, the first of them `calm`, with a `gap` between two on average.

    Without a PostgreSQL among the targets there is no network to break either.
    """
    chance = Random(seed)
    tracks = ("process", "network", "database") if POSTGRES in targets else ("process",)
    kinds = [kind for kind in KINDS if kind.track in tracks]
    cards, faults = _cards(chance, kinds), list[Fault]()
    at = calm
    while at < seconds:
        kind = next(cards)
        lasts = min(chance.uniform(*kind.seconds), seconds - at)
        fit = [name for name in targets if name.startswith(kind.targets) and _is_free(faults, name, kind.track, at)]
        if fit:
            target = chance.choice(fit)
            faults.append(Fault(round(at, 3), round(lasts, 3), target, kind.name, _detail(chance, kind, target)))
        at += chance.uniform(0.2 * gap, 1.8 * gap)
    return faults


def _cards(chance: Random, kinds: Sequence[Kind]) -> Iterator[Kind]:
    """As from a deck that is shuffled when it is used up: a short test has few of a kind twice."""
    while True:
        first = chance.sample(kinds, len(kinds))
        rest = [kind for kind in kinds for _ in range(kind.weight - 1)]
        yield from [*first, *chance.sample(rest, len(rest))]


def _is_free(faults: Sequence[Fault], target: str, track: Track, at: float) -> bool:
    """A while after the last one there, too: a process takes a moment to be itself again."""
    return not any(one.target == target and one.track == track and one.at + one.seconds + 1.0 > at for one in faults)


def _detail(chance: Random, kind: Kind, target: str) -> str:
    if kind.name == "swallow":
        statement = chance.choice(SWALLOWED[target.partition("-")[0]])
        return f"{statement}: {chance.choice(['broken', 'silent'])}"
    return f"{chance.randint(20, 200)} ms" if kind.name == "slow" else ""
