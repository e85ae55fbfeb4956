"""Draws what a theme of jobs has besides: who does what to which job, and when."""

from __future__ import annotations

import random
from typing import Any

from tests.simulation.application.data_jobs import DATA_JOBS, PARTS
from tests.simulation.script.entries import ChangeJob, ChangeSchedule, Enqueue, Happening
from tests.simulation.script.job_themes import JobTheme

_CLIENTS = ("client-1", "client-2")
_MODES = ("skip", "latest", "all")
_SPANS = ("2s", "3s", "5s")
_SOON = 1.0
_CHANGES: tuple[dict[str, Any], ...] = (
    {"description": "changed"},
    {"description": "changed again"},
    {"max_attempts": 2},
    {"max_attempts": 4},
    {"priority": 3},
    {"max_concurrency": 1},
    {"max_concurrency": None},
    {"enabled": False},
    {"enabled": True},
    {"enabled": True},
)
_OF_SCHEDULES = ("pause", "resume", "trigger", "delete")


class JobGenerator:
    def __init__(self, rng: random.Random, theme: JobTheme, span: float) -> None:
        self._random = rng
        self._theme = theme
        self._span = span

    def entries(self) -> list[Happening]:
        """All are created at first, in an order in which the pipeline comes after its parts; then they are changed."""
        rng = self._random
        found: list[Happening] = [
            self._create(number * 0.1, job) for number, job in enumerate((*PARTS, "flow", "probe"))
        ]
        found += [self._change() for _ in range(rng.choice(self._theme.changed))]
        return [*found, *self._race()] if rng.random() < 0.6 else found

    def _race(self) -> list[Happening]:
        """A job that is deleted while one of its runs is being done, and nothing else of it waits."""
        at, begun = self._random.uniform(_SOON, self._span * 0.7), self._random.uniform(0.3, 2)
        return [
            Enqueue(at, self._client(), "probe", ["ok:4"]),
            ChangeJob(at + begun, self._client(), "probe", "delete", {"force": self._random.random() < 0.3}),
        ]

    def _client(self) -> str:
        return self._random.choice(_CLIENTS)

    def _create(self, at: float, job: str) -> ChangeJob:
        options: dict[str, Any] = {"acts": self._acts(job)}
        if self._random.random() < 0.6:
            options["schedule"] = self._random.choice(_SPANS)
        if self._random.random() < 0.5:
            options["run"] = True
        return ChangeJob(at, self._client(), job, "create", options)

    def _change(self) -> ChangeJob | ChangeSchedule:
        rng = self._random
        at, job = rng.uniform(_SOON, self._span), rng.choice((*DATA_JOBS, "probe"))
        verb = rng.choice(self._theme.job_verbs)
        if rng.random() < 0.15:
            return ChangeSchedule(at, self._client(), job, rng.choice(_OF_SCHEDULES))
        match verb:
            case "create":
                return self._create(at, job)
            case "update" | "replace":
                changed = {**rng.choice(_CHANGES), **self._other(job)}
                if job == "flow":  # a pipeline has the limits of its parts
                    changed.pop("max_concurrency", None)
                return ChangeJob(at, self._client(), job, verb, changed)
            case "resume":
                return ChangeJob(at, self._client(), job, verb, {"catch_up": rng.choice(_MODES)})
            case "delete" | "force":
                return ChangeJob(at, self._client(), job, "delete", {"force": verb == "force"})
            case "attach":
                options = {"trigger": {"every": rng.choice(_SPANS)}, "acts": self._acts(job)}
                return ChangeJob(at, self._client(), job, verb, options)
            case _:
                return ChangeJob(at, self._client(), job, verb)

    def _other(self, job: str) -> dict[str, Any]:
        """What its handlers would do otherwise, so that a run of an earlier version is told from one of a later."""
        number = self._random.randrange(1, 100)
        if job == "tool":
            return {"argv": ["work", str(number)]}
        return {"url": f"https://example.com/{number}"} if job in ("ping", "probe") else {}

    def _acts(self, job: str) -> list[str]:
        known = self._theme.acts
        return self._random.choices(known.get(job) or known[""], k=self._random.choice(self._theme.attempts))
