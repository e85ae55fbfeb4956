"""Requirements: which workers may have a run, by name, label and version; and which requirements a worker meets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from rota.errors import Invalid
from rota.values.names import checked_name

REQUIREMENT_OPTIONS = ("only_workers", "labels", "min_worker_version")

CONDUCTS, REPLICA, OF_WORKER = "+", "*", "@"
"""Prefixes of requirement ids in the tables: of a run that conducts replicas, of its replicas, and of replicas that
only the worker of this name may have. An ordinary run's id has no prefix."""

_MOST = 100
_DOTTED = re.compile(r"\d{1,9}(\.\d{1,9})*")


class Requirements(msgspec.Struct, frozen=True, omit_defaults=True):
    """Requirements on a worker: one of these names, all of these labels, at least this version.

    `anyone`: workers of any name may have the run, whatever its job says.
    """

    only_workers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    min_worker_version: str | None = None
    anyone: bool = False
    """Whether workers of any name may have the run, whatever its job says."""

    def __bool__(self) -> bool:
        return bool(self.only_workers or self.labels or self.min_worker_version or self.anyone)

    def __str__(self) -> str:
        words = [f"only {' or '.join(self.only_workers)}"] if self.only_workers else []
        words += [f"label {label}" for label in self.labels]
        words += [f"version {self.min_worker_version} or newer"] if self.min_worker_version else []
        return ", ".join(words)


NOTHING = Requirements()


class Eligibility(msgspec.Struct, frozen=True):
    """Requirements of a run; `conducts`: several workers each execute a replica of it."""

    requirements: Requirements
    conducts: bool = False

    @property
    def mark(self) -> str:
        return (CONDUCTS if self.conducts else "") + (requirement_id(self.requirements) if self.requirements else "")


class WorkerTraits(Protocol):
    """Name, labels and version of a worker, which requirements are compared with."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def app_version(self) -> str: ...


def requirements_of(options: Mapping[str, Any]) -> Requirements:
    """Parse requirements from options, in canonical order: equal requirements have equal text and id."""
    if options.keys().isdisjoint(REQUIREMENT_OPTIONS):
        return NOTHING
    values = {name: options.get(name) for name in REQUIREMENT_OPTIONS}
    least = values["min_worker_version"]
    if least is not None and (not isinstance(least, str) or not _DOTTED.fullmatch(least)):
        raise Invalid(f"min_worker_version must be numbers separated by dots, not {least!r:.80}", hint='"1.4"')
    return Requirements(
        only_workers=_names(values["only_workers"], "only_workers"),
        labels=labels_of(values["labels"]),
        min_worker_version=least,
    )


def labels_of(value: object) -> tuple[str, ...]:
    """Parse labels, such as `gpu` or `zone=eu`; also several in one text, separated by commas."""
    items = value.split(",") if isinstance(value, str) else value
    if isinstance(items, list | tuple):
        items = [label.strip() if isinstance(label, str) else label for label in items if label != ""]
    labels = _names(items, "labels")
    for label in labels:
        if not label.partition("=")[0]:
            raise Invalid(f"a label needs a name before its value: {label!r:.80}", hint="gpu, or zone=eu")
    return labels


def restricted_to(names: object) -> tuple[str, ...]:
    """Validate names of workers; None means any worker."""
    workers = _names(names, "only_workers")
    if names is not None and not workers:
        raise Invalid("only_workers must name at least one worker", hint="None allows any worker")
    return workers


def _names(value: object, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > _MOST:
        raise Invalid(f"{what} must be a list of at most {_MOST} texts, not {value!r:.80}")
    return tuple(sorted({checked_name(name, f"a name in {what}") for name in value}))


def merged(own: Requirements, job: Requirements) -> Requirements:
    """Return the requirements of a run: its own where given, else its job's."""
    return Requirements(
        () if own.anyone else own.only_workers or job.only_workers,
        own.labels or job.labels,
        own.min_worker_version or job.min_worker_version,
    )


def requirement_id(requirements: Requirements) -> str:
    return hashlib.sha256(requirement_text(requirements).encode()).hexdigest()[:20]


def requirement_text(requirements: Requirements) -> str:
    return msgspec.json.encode(requirements, order="deterministic").decode()


def read_requirements(text: str | None) -> Requirements:
    return msgspec.json.decode(text, type=Requirements) if text else Requirements()


def meets(worker: WorkerTraits, requirements: Requirements) -> bool:
    if requirements.only_workers and worker.name not in requirements.only_workers:
        return False
    if not all(_has(worker.labels, label) for label in requirements.labels):
        return False
    return requirements.min_worker_version is None or version_of(worker.app_version) >= version_of(
        requirements.min_worker_version
    )


def _has(labels: Iterable[str], required: str) -> bool:
    """Return whether the labels include `wanted`; one without a value matches any value."""
    return any(label == required or label.partition("=")[0] == required for label in labels)


def version_of(text: str) -> tuple[int, ...]:
    """Parse a version as numbers: 1.10 is newer than 1.9, and 1.4 equals 1.4.0. A suffix is ignored."""
    match = _DOTTED.match(text.removeprefix("v"))
    numbers = [int(part) for part in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


class MetRequirements(msgspec.Struct, frozen=True):
    """Ids of the requirements that a worker meets.

    `named` are those that name it, `open_to` those of replicas that are not assigned to a worker yet.
    """

    plain: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    open_to: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.plain or self.named or self.open_to)

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.named, *self.plain)

    @property
    def under_limits(self) -> tuple[str, ...]:
        """Requirements for claims under limits, which go by key, not by requirement: those of replicas are included."""
        return (*self.all, *self.open_to)


def met_by(worker: WorkerTraits, known: Mapping[str, Requirements]) -> MetRequirements:
    """Select the `known` requirements (id → requirements) that the worker meets.

    The id of replicas without requirements is their mark alone.
    """
    met = [id for id, requirements in known.items() if id != REPLICA and meets(worker, requirements)]
    named = [id for id in met if known[id].only_workers]
    if REPLICA not in known:
        return MetRequirements(tuple(id for id in met if id not in named), tuple(named))
    return MetRequirements(
        tuple(id for id in met if id not in named),
        (*named, f"{OF_WORKER}{worker.name}"),
        (REPLICA, *(f"{REPLICA}{id}" for id in met)),
    )
