"""Draws a script from a seed, and nothing but the seed: first its theme, then everything that happens."""

from __future__ import annotations

import random
from typing import Any

from tests.simulation.script.coordination_generator import CoordinationGenerator
from tests.simulation.script.coordination_themes import CoordinationTheme
from tests.simulation.script.entries import (
    HELD_JOBS,
    HELD_QUEUES,
    AddSchedule,
    Away,
    Bulk,
    Cancel,
    ChangeSchedule,
    Enqueue,
    Freeze,
    Happening,
    Hold,
    Hush,
    Jump,
    Kill,
    Mute,
    RetryByHand,
    Script,
    Stop,
    Strike,
)
from tests.simulation.script.job_generator import JobGenerator
from tests.simulation.script.job_themes import ALL_THEMES, JobTheme
from tests.simulation.script.themes import SCOPES, Theme
from tests.simulation.world.gate import BLOWS

# An ordinary moment, the last day of February, and both changes of the clocks in Berlin.
_STARTS = (1_893_499_200_000_000, 1_835_395_190_000_000, 1_901_149_180_000_000, 1_919_293_180_000_000)
_CLIENTS = ("client-1", "client-2")
_FAILURES = (
    "skip",
    "retry",
    {"mode": "backoff", "backoff": "5s"},
    {"mode": "half_open", "threshold": 2, "cooldown": "6s"},
    "pause",
)
_UPDATES: tuple[dict[str, Any], ...] = (
    {"overlap": "allow"},
    {"overlap": "skip"},
    {"trigger": {"every": "4s"}},
    {"enabled": False},
    {"enabled": True},
)
_MODES = ("skip", "latest", "all")


def draw(seed: int, theme: Theme | None = None) -> Script:
    """`theme`: this one, whichever the seed would have had."""
    rng = random.Random(seed)
    (drawn,) = rng.choices(ALL_THEMES, [one.weight for one in ALL_THEMES])
    return _Generator(rng, theme or drawn).script(seed)


class _Generator:
    def __init__(self, rng: random.Random, theme: Theme) -> None:
        self._random = rng
        self._theme = theme
        self._engines = [f"engine-{number + 1}" for number in range(rng.choice(theme.engines))]
        self._span = rng.uniform(*theme.span)
        self._enqueued_at: list[float] = []

    def script(self, seed: int) -> Script:
        rng, theme = self._random, self._theme
        entries = [*self._commands(), *self._schedules()]
        if isinstance(theme, CoordinationTheme):
            entries = CoordinationGenerator(rng, theme, self._span, len(self._engines)).entries(entries)
        if isinstance(theme, JobTheme):
            entries += JobGenerator(rng, theme, self._span).entries()
        entries += [self._fault() for _ in range(rng.choice(theme.faults))]
        return Script(
            seed=seed,
            engines=len(self._engines),
            offsets=[rng.choice((0.0, 0.0, 3_600.0, -3_600.0, 0.7)) for _ in self._engines],
            distance=rng.choice(theme.distance),
            start=rng.choice(_STARTS) + rng.randrange(10_000_000),
            hints=rng.random() < theme.hints,
            span=self._span,
            lingers=self._chance(0.5),
            entries=sorted(entries, key=lambda entry: entry.at),
            theme=theme.name,
        )

    def _chance(self, chance: float) -> bool:
        return self._random.random() < chance

    def _times(self, counts: tuple[int, ...]) -> range:
        return range(self._random.choice(counts))

    def _at(self, first: float = 0.0) -> float:
        return self._random.uniform(first, self._span)

    def _client(self) -> str:
        return self._random.choice(_CLIENTS)

    def _commands(self) -> list[Happening]:
        rng, theme = self._random, self._theme
        entries: list[Happening] = [self._enqueue() for _ in self._times(theme.enqueues)]
        self._enqueued_at = [entry.at for entry in entries]
        entries += [Cancel(self._at(), self._client(), rng.random()) for _ in self._times(theme.cancels)]
        entries += [Cancel(self._at(), self._client(), rng.random(), True) for _ in self._times(theme.cancels_at_work)]
        entries += [RetryByHand(self._at(5), self._client(), rng.random()) for _ in self._times(theme.retries)]
        entries += [self._retry_keeping() for _ in self._times(theme.retries_keeping)]
        entries += [self._bulk() for _ in self._times(theme.bulks)]
        entries += [self._hold() for _ in self._times(theme.holds)]
        return entries

    def _retry_keeping(self) -> RetryByHand:
        begin = self._random.random() if self._chance(0.5) else None
        return RetryByHand(self._at(5), self._client(), self._random.random(), True, begin)

    def _bulk(self) -> Bulk:
        job = self._random.choice(("plain", "stepped", "careful", "planned"))
        return Bulk(self._at(3), self._client(), self._random.choice(("cancel", "retry")), job)

    def _hold(self) -> Hold:
        rng = self._random
        kind = rng.choice(("queue", "job"))
        name = rng.choice(HELD_QUEUES if kind == "queue" else HELD_JOBS)
        return Hold(rng.uniform(0, self._span / 2), self._client(), kind, name, rng.uniform(1, 8), rng.choice(_MODES))

    def _acts(self, job: str = "") -> list[str]:
        known = self._theme.acts
        return self._random.choices(known.get(job) or known[""], k=self._random.choice(self._theme.attempts))

    def _enqueue(self) -> Enqueue:
        rng, theme = self._random, self._theme
        if self._chance(theme.idempotent):
            return self._idempotent()
        at, job, options = rng.uniform(0, self._span * self._theme.busy), rng.choice(theme.jobs), dict[str, Any]()
        if self._chance(theme.bursts):  # so many and so short that a worker claims more than it can begin
            return Enqueue(at, self._client(), "plain", ["ok:0.05"], {}, 40)
        if self._chance(theme.delayed):
            options["delay"] = f"{rng.randrange(1, 9)}s"
        if self._chance(theme.prioritized):
            options["priority"] = rng.randrange(-2, 3)
        if job in ("keyed", "nested") or self._chance(theme.scoped):
            options["scope"] = rng.choice(SCOPES)
        if job == "plain" and self._chance(theme.unique):
            options["key"] = rng.choice(("one", "two"))
            options["unique"] = {"on_conflict": rng.choice(("existing", "replace", "reject"))}
        return Enqueue(at, self._client(), job, self._acts(job), options, rng.choice(theme.copies))

    def _idempotent(self) -> Enqueue:
        """Mostly the same request again; at times another one under the same key."""
        rng = self._random
        at, key = rng.uniform(0, self._span * self._theme.busy), rng.choice(("first", "second", "third"))
        acts = ["ok:0.6"] if self._chance(0.7) else self._acts()
        return Enqueue(at, self._client(), rng.choice(("plain", "plain", "hasty")), acts, {"idempotency_key": key})

    def _schedules(self) -> list[Happening]:
        return [entry for number in self._times(self._theme.schedules) for entry in self._schedule(f"s-{number + 1}")]

    def _schedule(self, name: str) -> list[Happening]:
        rng, theme = self._random, self._theme
        at, trigger = rng.uniform(0, self._span / 2), rng.choice(theme.triggers)
        options: dict[str, Any] = {}
        if "after" not in trigger:  # only what a schedule with plan times of its own can have
            drawn = {name: rng.choice(what) for name, (chance, what) in theme.policies.items() if self._chance(chance)}
            options.update(drawn)
        if "max_concurrency" not in options:
            options.pop("when_full", None)
        if self._chance(theme.failing):
            options["failure"] = rng.choice(_FAILURES)
        if self._chance(0.1):
            options["max_runs"] = rng.randrange(1, 5)
        added = AddSchedule(at, self._client(), name, trigger, self._acts(), options, rng.choice(theme.planned))
        changes = [self._change(self._at(at), name) for _ in self._times(theme.changes)]
        pauses = [entry for _ in self._times(theme.pauses) for entry in self._pause(self._at(at), name)]
        return [added, *changes, *pauses]

    def _pause(self, at: float, name: str) -> list[Happening]:
        until = min(at + self._random.uniform(2, 8), self._span)
        resume = ChangeSchedule(until, self._client(), name, "resume", {"catch_up": self._random.choice(_MODES)})
        return [ChangeSchedule(at, self._client(), name, "pause"), resume]

    def _change(self, at: float, name: str) -> ChangeSchedule:
        rng = self._random
        verb, options = rng.choice(self._theme.verbs), dict[str, Any]()
        if verb == "resume":
            options = {"catch_up": rng.choice(_MODES)}
        elif verb == "pause" and self._chance(0.3):
            options = {"until": f"{rng.randrange(2, 8)}s"}
        elif verb == "update":
            options = rng.choice(_UPDATES)
        elif verb == "trigger":
            options = {"force": self._chance(0.5)}
        elif verb == "backfill":
            options = {"back": rng.uniform(2, 10), "again": rng.choice(("none", "failed", "all"))}
        return ChangeSchedule(at, self._client(), name, verb, options)

    def _fault(self) -> Happening:
        rng, theme = self._random, self._theme
        at, engine = rng.uniform(0, self._span * self._theme.busy), rng.choice(self._engines)
        match rng.choice(theme.kinds):
            case "kill":
                return Kill(at, engine, rng.uniform(0.1, 8))
            case "stop":
                return Stop(at, engine, rng.uniform(0.1, 5))
            case "freeze":
                return Freeze(at, engine, rng.choice(theme.freezes))
            case "away":
                return Away(at, rng.choice((engine, None)), rng.choice((0.5, 3.0, 12.0)))
            case "mute":
                return Mute(at, engine, rng.choice(theme.muted), rng.choice(theme.mutes))
            case "strike":
                struck = rng.choice((*self._engines, *self._engines, "client-1"))
                return Strike(at, struck, rng.choice((*BLOWS, "late")), rng.randrange(0, 12))
            case "aimed":
                who, op, blow = rng.choice(theme.aims)
                at = rng.choice(self._enqueued_at or [at])  # when there is something to do
                return Strike(at, engine if who == "engine" else who, blow, rng.randrange(0, 2), op)
            case "hush":
                return Hush(at, rng.uniform(1, 15))
            case _:
                return Jump(at, rng.choice(theme.jumps))
