"""Pipelines: jobs whose parts are other jobs, each executed by a worker that knows it; and the payload of each part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from rota.core.jobs.placeholders import filled_json, places_in
from rota.errors import Invalid, UnknownOption, did_you_mean
from rota.values.names import checked_name

MOST_PARTS = 100
PLACE = re.compile(r"\{((?:payload|steps)(?:\.[A-Za-z0-9_.-]*)?)\}")
_STEP = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MARK = '"pipeline":true'
_KNOWN = ("step", "job", "payload")

T = TypeVar("T")


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """Part of a pipeline. `payload` is a template; None: the run's own payload."""

    step: str
    """Name of the part."""
    job: str
    payload: Any = None


class Pipeline(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parts of a pipeline run; `queue` overrides the queues of all parts."""

    parts: tuple[Part, ...]
    queue: str | None = None

    def after(self, done: Iterable[str]) -> Part | None:
        """Return the first part that is not in `done`."""
        over = set(done)
        return next((part for part in self.parts if part.step not in over), None)

    def next(self, step: str) -> Part | None:
        """Return the part after `step`."""
        return next(iter(self.parts[self.parts.index(self.part(step)) + 1 :]), None)

    def part(self, step: str) -> Part:
        return next(part for part in self.parts if part.step == step)


def is_pipeline(overrides: str | None) -> bool:
    """Return whether a run is a pipeline, judged by its stored `overrides`, which every claim reads anyway."""
    return overrides is not None and _MARK in overrides


def parts_of(name: str, items: object) -> tuple[Part, ...]:
    """Validate the parts given to `app.pipeline(name, …)`: dicts of `step, job, payload`."""
    if not isinstance(items, list | tuple) or not 1 <= len(items) <= MOST_PARTS:
        raise Invalid(f"pipeline {name!r:.80} must be a list of 1 to {MOST_PARTS} parts")
    parts: list[Part] = []
    for item in items:
        part = _part_of(item)
        if part.job == name:
            raise Invalid(f"pipeline {name!r} cannot be a part of itself")
        earlier = [before.step for before in parts]
        if part.step in earlier:
            raise Invalid(f"step {part.step!r} is declared twice")
        _check_places(part, earlier)
        parts.append(part)
    return tuple(parts)


def _part_of(item: object) -> Part:
    if isinstance(item, Part):
        item = msgspec.structs.asdict(item)
    if not isinstance(item, Mapping) or "step" not in item or "job" not in item:
        hint = 'for example {"step": "fetch", "job": "fetch-page"}'
        raise Invalid(f"a part of a pipeline needs a step and a job, not {item!r:.80}", hint=hint)
    for option in item:
        if option not in _KNOWN:
            raise UnknownOption(str(option), _KNOWN, where="a part of a pipeline")
    step, payload = item["step"], item.get("payload")
    if not isinstance(step, str) or not _STEP.fullmatch(step):
        raise Invalid(f"the name of a step has only letters, digits, - and _, not {step!r:.80}")
    if payload is not None and not isinstance(payload, dict) and not _is_one_place(payload):
        raise Invalid(f"the payload of step {step!r} must be an object or one placeholder, not {payload!r:.80}")
    return Part(step, checked_name(item["job"], "the job of a step"), payload)


def _is_one_place(value: object) -> bool:
    return isinstance(value, str) and PLACE.fullmatch(value) is not None


def _check_places(part: Part, earlier: list[str]) -> None:
    for word in places_in(part.payload, PLACE):
        root, *path = word.split(".")
        if not all(path) or (root == "steps" and not path):
            raise Invalid(
                f"step {part.step!r} has the unknown placeholder {{{word}}}", hint="{payload.x}, {steps.id.x}"
            )
        if root == "steps" and path[0] not in earlier:
            hint = did_you_mean(path[0], earlier) if earlier else "there are no steps before it"
            raise Invalid(f"step {part.step!r} has {{{word}}}, and no step before it is called {path[0]!r}", hint=hint)


def payload_of(part: Part, payload: str, results: Mapping[str, str | None]) -> str:
    """Return the payload of a part as JSON; `results` are the JSON results of the steps before it.

    Raises `Invalid` if a value that it needs is missing.
    """
    if part.payload is None:
        return payload
    steps = {step: None if result is None else msgspec.json.decode(result) for step, result in results.items()}
    filled = filled_json(part.payload, {"payload": msgspec.json.decode(payload), "steps": steps}, PLACE)
    if not isinstance(filled, dict):
        raise Invalid(f"the payload of step {part.step!r} must be an object, not {filled!r:.80}")
    return msgspec.json.encode(filled).decode()


def within(part: str | None, step: str) -> str:
    """Return the id under which a handler's step is recorded: inside a part it is prefixed with the part."""
    return step if part is None else f"{part}/{step}"


def steps_within(part: str | None, steps: Mapping[str, T]) -> dict[str, T]:
    """Return the steps of the part, under the ids that its handler uses."""
    if part is None:
        return dict(steps)
    return {id.removeprefix(f"{part}/"): step for id, step in steps.items() if id.startswith(f"{part}/")}
