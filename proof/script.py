"""What happens in a world: its processes, what clients ask for and when, and what goes wrong. Drawn from a seed.

A script is a list, so that a failing one can be made shorter: whatever is left out changes nothing else that was drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from proof.gate import BLOWS


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


class Answer(Entry, frozen=True, tag=True):
    """Somebody outside ends what waits for it: `complete` or `fail`."""

    client: str
    verb: str


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
    """The first operation of a process after `skip` others meets with a blow."""

    process: str
    blow: str
    skip: int


class Hush(Entry, frozen=True, tag=True):
    """Hints are lost."""

    span: float


class Jump(Entry, frozen=True, tag=True):
    """The database's clock is set."""

    by: float


Command = Enqueue | Cancel | RetryByHand | Answer | Bulk | AddSchedule | ChangeSchedule | Hold | Order
Fault = Kill | Stop | Freeze | Away | Mute | Strike | Hush | Jump
Happening = Command | Fault


class Script(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    engines: int
    offsets: list[float]  # how wrong each engine's clock is
    distance: float  # of everybody to the database
    start: int  # microseconds
    hints: bool = True  # whether there are any: without them, everything is found by polling
    span: float  # after which nothing new happens, and all faults are over
    entries: list[Happening]

    def kept(self, places: Sequence[int]) -> Script:
        return msgspec.structs.replace(self, entries=[self.entries[place] for place in places])


# An ordinary moment, the last day of February, and both changes of the clocks in Berlin.
_STARTS = (1_893_499_200_000_000, 1_835_395_190_000_000, 1_901_149_180_000_000, 1_919_293_180_000_000)
_ACTS = ("ok:0.1", "ok:0.6", "ok:2", "raise:0.2", "fail:0.1", "retry:0.1", "snooze:0.1", "crash:0.3", "ok:6", "ok:14",
    "ok:30", "stubborn:8", "polite:5", "polite:16", "raise:1", "raise:6")  # fmt: skip
_WEIGHTS = (26, 18, 10, 12, 2, 3, 3, 4, 5, 4, 1, 3, 3, 2, 4, 2)
_ENQUEUED = ("plain", "plain", "plain", "hasty", "once", "careful", "careful", "timed", "narrow", "keyed", "nested",
    "fleeting", "fleeting", "stepped", "stepped", "stepped", "stepped", "loose", "payer", "payer")  # fmt: skip
# What handlers do that work in steps: see `proof/stepping.py`.
_STEPPED = {
    "stepped": ("fetch:0.3,pay:1,store:0.3", "fetch:0.2,pay:6,store:0.2", "fetch:0.2,pay:0.4,store:0.2:raise",
        "fetch:0.2,pay:0.5,store:0.5:crash", "fetch:0.2:die,pay:0.3,store:0.1", "fetch:0.1,pay:3:die,store:0.1",
        "pay:1+ship:1,store:0.3", "pay:7+rest:2>ship:2,fetch:0.2", "fetch:0.2,pay:2:raise,store:0.1",
        "pay:0.2,fetch:0.2:snooze", "pay:4:give_up,rest:9,store:0.1", "pay:0.5,rest:6:still", "fetch:0.5,store:6",
        "pay:0.2,ship:7", "fetch:11:still,pay:4", "pay:9,rest:5:still", "fetch:0.2,pay:12", "ship:3+fetch:9:still",
        "fetch:0.1+store:0.1,pay:0.2,rest:0.2:fail", "sign:0.5,pay:0.5,ship:0.5,rest:2",
        "sign:1,pay:1,ship:1,rest:1", "sign:0.3,fetch:0.3,pay:0.3,store:0.3,ship:0.3,rest:1"),
    "loose": ("one:0.2,two:0.2,three:0.2", "one:0.3,two:1:raise", "one:0.3,two:1:crash",
        "one:0.1+two:0.1+three:0.1,four:5", "one:0.2,two:8:still,three:0.1", "one:0.2,two:0.5:die,three:0.1",
        "one:2,two:2,three:2:raise"),
    "payer": ("fetch:0.2,tx:0.1:finish", "tx:0.3:finish", "tx:3:finish", "fetch:0.2,tx:0.2,rest:1",
        "tx:0.5,tx:0.2:finish", "fetch:0.3,tx:0.3:abort", "tx:0.1:finish,rest:3", "rest:9,tx:8:finish",
        "rest:5:still,tx:6"),
}  # fmt: skip
_BURST = 0.02
# Every few seconds, in hours that are left out or repeated there; once, at a time that is left out; on one day only.
_ZONED = ("*/5 * * * * *", "*/4 * 2 * * *", "*/4 * 3 * * *", "0 2 * * *", "*/4 * * 29 2 *")
HELD_QUEUES = ("default", "fast")
HELD_JOBS = ("plain", "planned", "narrow")
_SCOPES = (("tenant", "a"), ("tenant", "b"), ("tenant", "c"))


def draw(seed: int) -> Script:
    rng = random.Random(seed)
    engines = [f"engine-{number + 1}" for number in range(rng.choice((1, 2, 2, 3)))]
    span = rng.uniform(15, 35)
    entries: list[Happening] = [_enqueue(rng, span) for _ in range(rng.choice((2, 5, 10, 15)))]
    entries += [Cancel(rng.uniform(0, span), _client(rng), rng.random()) for _ in range(rng.choice((0, 1, 2, 5)))]
    entries += [RetryByHand(rng.uniform(5, span), _client(rng), rng.random()) for _ in range(rng.choice((0, 0, 0, 2)))]
    for _ in range(rng.choice((0, 1, 2))):
        entries.append(Cancel(rng.uniform(0, span), _client(rng), rng.random(), True))
    entries += [_retry_keeping(rng, span) for _ in range(rng.choice((0, 0, 1, 2)))]
    entries += [_bulk(rng, span) for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 0, 1)))]
    for number in range(rng.choice((0, 1, 1, 2))):
        entries += _schedule(rng, span, f"schedule-{number + 1}")
    entries += [_hold(rng, span) for _ in range(rng.choice((0, 0, 0, 1)))]
    entries += [_fault(rng, span, engines) for _ in range(rng.choice((0, 1, 2, 4, 6)))]
    return Script(
        seed=seed,
        engines=len(engines),
        offsets=[rng.choice((0.0, 0.0, 3_600.0, -3_600.0, 0.7)) for _ in engines],
        distance=rng.choice((0.2, 1.0, 1.0, 3.0)),
        start=rng.choice(_STARTS) + rng.randrange(10_000_000),
        hints=rng.random() < 0.8,
        span=span,
        entries=sorted(entries, key=lambda entry: entry.at),
    )


def _retry_keeping(rng: random.Random, span: float) -> RetryByHand:
    begin = rng.random() if rng.random() < 0.5 else None
    return RetryByHand(rng.uniform(5, span), _client(rng), rng.random(), True, begin)


def _bulk(rng: random.Random, span: float) -> Bulk:
    job = rng.choice(("plain", "stepped", "careful", "planned"))
    return Bulk(rng.uniform(3, span), _client(rng), rng.choice(("cancel", "retry")), job)


def _hold(rng: random.Random, span: float) -> Hold:
    kind = rng.choice(("queue", "job"))
    name = rng.choice(HELD_QUEUES if kind == "queue" else HELD_JOBS)
    catch_up = rng.choice(("skip", "latest", "all"))
    return Hold(rng.uniform(0, span / 2), _client(rng), kind, name, rng.uniform(1, 8), catch_up)


def _client(rng: random.Random) -> str:
    return rng.choice(("client-1", "client-2"))


def _acts(rng: random.Random, job: str = "") -> list[str]:
    count = rng.choice((1, 1, 2, 3))
    return rng.choices(_STEPPED[job], k=count) if job in _STEPPED else rng.choices(_ACTS, _WEIGHTS, k=count)


def _enqueue(rng: random.Random, span: float) -> Enqueue:
    job = rng.choice(_ENQUEUED)
    options: dict[str, Any] = {}
    if rng.random() < 0.25:
        options["delay"] = f"{rng.randrange(1, 9)}s"
    if rng.random() < 0.2:
        options["priority"] = rng.randrange(-2, 3)
    if rng.random() < 0.25:
        return _keyed(rng, span)
    if job in ("keyed", "nested") or rng.random() < 0.1:
        options["scope"] = rng.choice(_SCOPES)
    if job == "plain" and rng.random() < 0.4:
        options["key"] = rng.choice(("one", "two"))
        options["unique"] = {"on_conflict": rng.choice(("existing", "replace", "reject"))}
    at, acts = rng.uniform(0, span * 0.9), _acts(rng, job)
    if rng.random() < _BURST:  # so many and so short that a worker claims more than it can begin
        return Enqueue(at, _client(rng), "plain", ["ok:0.05"], {}, 40)
    copies = 1 if rng.random() < 0.7 else rng.randrange(2, 7)
    return Enqueue(at, _client(rng), job, acts, options, copies)


def _keyed(rng: random.Random, span: float) -> Enqueue:
    """Mostly the same request again; at times another one under the same key."""
    at, client, key = rng.uniform(0, span * 0.9), _client(rng), rng.choice(("first", "second", "third"))
    acts = ["ok:0.6"] if rng.random() < 0.7 else _acts(rng)
    return Enqueue(at, client, rng.choice(("plain", "plain", "hasty")), acts, {"idempotency_key": key})


def _schedule(rng: random.Random, span: float, name: str) -> list[Happening]:
    at = rng.uniform(0, span / 2)
    trigger = rng.choice(
        (
            {"every": rng.choice(("2s", "3s", "5s", "7s"))},
            {"cron": rng.choice(("*/3 * * * * *", "*/10 * * * * *", "*/7 * * * * *"))},
            {"cron": rng.choice(_ZONED), "tz": "Europe/Berlin"},
            {"cron": "*/1 * * * *"},
            {"after": "3s"},
        )
    )
    options = _failure(rng) if "after" in trigger else {**_policies(rng), **_failure(rng)}
    if rng.random() < 0.1:
        options["max_runs"] = rng.randrange(1, 5)
    job = rng.choice(("planned", "planned", "brief"))
    added = AddSchedule(at, _client(rng), name, trigger, _acts(rng), options, job)
    return [added, *(_change(rng, rng.uniform(at, span), name) for _ in range(rng.choice((0, 1, 1, 2, 4))))]


_OVERLAPS = ("skip", "allow", "cancel_previous", {"mode": "parallel", "max_overlap": 2}, "queue_one", "queue_all")
_FAILURES = (
    "skip",
    "retry",
    {"mode": "backoff", "backoff": "5s"},
    {"mode": "half_open", "threshold": 2, "cooldown": "6s"},
    "pause",
)


def _policies(rng: random.Random) -> dict[str, Any]:
    """Only what a schedule with plan times of its own can have."""
    options: dict[str, Any] = {
        "catch_up": rng.choice(
            ("none", "latest", {"mode": "all", "keep": 6}, {"mode": "all", "keep": 6, "per_tick": 2})
        ),
        "overlap": rng.choice(_OVERLAPS),
        "delay": "2s",
        "jitter": "2s",
        "max_concurrency": 1,
        "scopes": rng.choice(([list(scope) for scope in _SCOPES], "tenants")),
    }
    chances = {"catch_up": 0.5, "overlap": 0.6, "delay": 0.2, "jitter": 0.2, "max_concurrency": 0.15, "scopes": 0.25}
    return {name: options[name] for name, chance in chances.items() if rng.random() < chance}


def _failure(rng: random.Random) -> dict[str, Any]:
    return {"failure": rng.choice(_FAILURES)} if rng.random() < 0.3 else {}


def _change(rng: random.Random, at: float, name: str) -> ChangeSchedule:
    verb = rng.choice(
        ("pause", "pause", "resume", "resume", "update", "update", "trigger", "delete", "backfill", "backfill")
    )
    options: dict[str, Any] = {}
    if verb == "resume":
        options = {"catch_up": rng.choice(("skip", "latest", "all"))}
    elif verb == "pause" and rng.random() < 0.3:
        options = {"until": f"{rng.randrange(2, 8)}s"}
    elif verb == "update":
        options = rng.choice(
            (
                {"overlap": "allow"},
                {"overlap": "skip"},
                {"trigger": {"every": "4s"}},
                {"enabled": False},
                {"enabled": True},
            )
        )
    elif verb == "trigger":
        options = {"force": rng.random() < 0.5}
    elif verb == "backfill":
        options = {"back": rng.uniform(2, 10), "again": rng.choice(("none", "failed", "all"))}
    return ChangeSchedule(at, _client(rng), name, verb, options)


def _fault(rng: random.Random, span: float, engines: list[str]) -> Happening:
    at, engine = rng.uniform(0, span * 0.9), rng.choice(engines)
    match rng.choice(_KINDS):
        case "kill":
            return Kill(at, engine, rng.uniform(0.1, 8))
        case "stop":
            return Stop(at, engine, rng.uniform(0.1, 5))
        case "freeze":
            return Freeze(at, engine, rng.choice((1.0, 4.0, 12.0, 20.0)))
        case "away":
            return Away(at, rng.choice((engine, None)), rng.choice((0.5, 3.0, 12.0)))
        case "mute":
            return Mute(at, engine, rng.choice(_MUTED), rng.choice((4.0, 14.0)))
        case "strike":
            struck = rng.choice((*engines, *engines, "client-1"))
            return Strike(at, struck, rng.choice((*BLOWS, "late")), rng.randrange(0, 12))
        case "hush":
            return Hush(at, rng.uniform(1, 15))
        case _:
            return Jump(at, rng.choice((-30.0, -1.0, 1.0, 30.0, 60.0)))


_KINDS = (
    "kill",
    "stop",
    "stop",
    "freeze",
    "freeze",
    "away",
    "mute",
    "mute",
    "strike",
    "strike",
    "strike",
    "hush",
    "jump",
)
_MUTED = (
    "NoteStore.write",
    "Store.extend",
    "Store.extend",
    "Store.report",
    "Store.claim",
    "Store.reap",
    "ScheduleStore.plan",
)
