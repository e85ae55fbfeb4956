"""Draws what themes of coordination have besides: families of runs, those outside, needs and restrictions."""

from __future__ import annotations

import random
from typing import Any

from tests.simulation.application.coordination_jobs import REPLICATED
from tests.simulation.script.coordination_themes import CoordinationTheme
from tests.simulation.script.entries import (
    Answer,
    Enqueue,
    ExternalWorker,
    Family,
    Happening,
    Hold,
    Jump,
    Link,
    Member,
    Restrict,
    SetQuota,
    Strike,
)

_CLIENTS = ("client-1", "client-2")
_NAMES = ("engine-1", "engine-2", "engine-3")
_CLEARS = (["failed"], ["succeeded"], ["failed", "succeeded"])
_QUOTED = (("tenant", "a"), ("tenant", "b"))
_SETTINGS = (-1.0, -1.5, -2.5, -30.0, 30.0)
_QUOTAS: tuple[dict[str, Any], ...] = (
    *({"max_concurrency": 1},) * 4,
    {"max_concurrency": 2},
    {"max_concurrency": 1, "max_queued": 1},
    {"max_concurrency": 2, "max_queued": 2},
    *({"max_queued": 2},) * 2,
    {"rate": "2/2s"},
    {"max_concurrency": 1, "rate": "2/3s"},
    *({},) * 3,  # dropped
)
_TURNS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"max_queued": 6}, {"max_concurrency": 1, "max_queued": 2}),
    ({"max_queued": 6}, {"max_concurrency": 1, "max_queued": 2}),
    ({"max_concurrency": 1}, {}),
    ({}, {"max_concurrency": 1}),
    ({}, {"max_concurrency": 1, "max_queued": 2}),
)
_SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    # whom each member follows
    "pair": ((), (0,)),
    "chain": ((), (0,), (1,), (2,)),
    "diamond": ((), (0,), (0,), (1, 2)),
    "fan": ((), (0,), (0,), (0,)),
    "join": ((), (), (0, 1)),
    "web": ((), (), (0, 1), (0, 2), (1, 3)),
    "after": ((),),
}


class CoordinationGenerator:
    def __init__(self, rng: random.Random, theme: CoordinationTheme, span: float, engines: int) -> None:
        self._random = rng
        self._theme = theme
        self._span = span
        self._engines = _NAMES[:engines]

    def entries(self, enqueued: list[Happening]) -> list[Happening]:
        """All of it; those that were drawn already, with what is special about them here."""
        theme = self._theme
        found: list[Happening] = [self._special(e) if isinstance(e, Enqueue) else e for e in enqueued]
        found += [self._family() for _ in self._times(theme.families)]
        found += [
            Answer(self._at(1.0), self._client(), self._choice(theme.answered)) for _ in self._times(theme.answers)
        ]
        for number in self._times(theme.outsiders):
            at = self._random.uniform(0, self._span / 3)
            found.append(ExternalWorker(at, f"outsider-{number + 1}", self._random.uniform(4, self._span)))
        found += [self._restrict() for _ in self._times(theme.restricts)]
        found += [self._setting(enqueued) for _ in self._times(theme.settings)]
        if theme.quotas != (0,):
            found += self._quotas()
        if theme.held and self._chance(0.6):
            found.append(self._hold())
        return found

    def _hold(self) -> Hold:
        span = self._random.uniform(2, 8)
        return Hold(self._at() / 2, self._client(), "job", self._choice(self._theme.held), span)

    def _quotas(self) -> list[Happening]:
        """One of them concerns nobody: from then on, everybody looks for others."""
        first = SetQuota(0.0, self._client(), "team", None, {"max_concurrency": 1})
        return [first, *(self._quota() for _ in self._times(self._theme.quotas)), *self._rush()]

    def _rush(self) -> list[Happening]:
        """More than can begin, and then a quota, and another one, whose answer gets lost at times."""
        at, client = self._random.uniform(1, self._span * 0.6), self._client()
        many = Enqueue(at, client, "plain", ["ok:3"], {"scope": _QUOTED[0]}, self._random.choice((3, 5, 6)))
        turns = self._random.choice(_TURNS)
        first = SetQuota(at + self._random.uniform(0.3, 1), client, "tenant", None, turns[0])
        other = SetQuota(at + self._random.uniform(1, 2), client, "tenant", None, turns[1])
        one_more = Enqueue(at + self._random.uniform(2, 3), client, "plain", ["ok:1"], {"scope": _QUOTED[0]})
        lost = Strike(at, client, "lost_reply", self._random.randrange(2), "QuotaStore._change")
        return [many, first, other, one_more, *([lost] if self._chance(0.5) else ())]

    def _quota(self) -> SetQuota:
        id = self._random.choice((None, None, "a", "b"))
        return SetQuota(self._at() * self._theme.busy, self._client(), "tenant", id, self._random.choice(_QUOTAS))

    def _setting(self, enqueued: list[Happening]) -> Jump:
        at = self._random.choice(enqueued).at if enqueued else 1.0
        return Jump(max(0.5, at + self._random.uniform(-0.7, 0.4)), self._random.choice(_SETTINGS))

    def _times(self, counts: tuple[int, ...]) -> range:
        return range(self._random.choice(counts))

    def _at(self, first: float = 0.0) -> float:
        return self._random.uniform(first, self._span)

    def _client(self) -> str:
        return self._random.choice(_CLIENTS)

    def _choice(self, words: tuple[str, ...]) -> str:
        return self._random.choice(words)

    def _chance(self, chance: float) -> bool:
        return self._random.random() < chance

    def _acts(self) -> list[str]:
        return self._random.choices(self._theme.acts[""], k=self._random.choice(self._theme.attempts))

    def _family(self) -> Family:
        members = [self._member(places) for places in _SHAPES[self._choice(self._theme.shapes)]]
        return Family(self._at() * self._theme.busy, self._client(), members, self._chance(self._theme.keyed))

    def _member(self, places: tuple[int, ...]) -> Member:
        links = [self._link(place) for place in places]
        if not links and self._chance(0.5):
            links = [self._link(None)]
        options: dict[str, Any] = {}
        if self._chance(0.1):
            options["delay"] = f"{self._random.randrange(1, 5)}s"
        return Member(self._choice(self._theme.jobs), self._acts(), links, options)

    def _link(self, place: int | None) -> Link:
        on = "end" if self._chance(0.3) else "success"
        otherwise = "cancel" if on == "success" and self._chance(0.35) else "skip"
        return Link(place, self._random.random(), on, otherwise)

    def _special(self, entry: Enqueue) -> Enqueue:
        """Published again, or for some workers only."""
        options, job = dict(entry.options), entry.job
        if entry.job in REPLICATED and self._chance(self._theme.published):
            options["key"], job = "release", "pair"  # all of one job, so that they meet
            options["unique"] = {"on_conflict": "existing", "clear": self._random.choice(_CLEARS)}
        if self._theme.quotas != (0,) and options["scope"] not in _QUOTED:
            options["scope"] = _QUOTED[0]  # few, so that they meet
        if self._chance(self._theme.requirements):
            options["only_workers"] = self._names()
        return Enqueue(entry.at, entry.client, job, entry.acts, options, entry.copies)

    def _names(self) -> list[str]:
        return sorted(self._random.sample(self._engines, self._random.randrange(1, len(self._engines) + 1)))

    def _restrict(self) -> Restrict:
        names = self._names() if self._chance(0.8) else []
        return Restrict(self._at(1.0), self._client(), self._random.random(), names)
