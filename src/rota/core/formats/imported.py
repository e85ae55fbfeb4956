"""Imports from other schedulers: what becomes schedule documents, what cannot, and what is left to do by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from rota.core.calendar.triggers import Cron, Either, Trigger, cron
from rota.core.schedules.documents import parse
from rota.errors import Invalid, RotaError

T = TypeVar("T")


class Unconverted(msgspec.Struct, frozen=True):
    """Entry that cannot be a schedule, and why; `line`: its place, counted from 1."""

    line: int
    text: str
    why: str


class Imported(msgspec.Struct, frozen=True):
    """Contents of a source; `remarks` are about entries that became schedules, but with something left to do."""

    documents: tuple[dict[str, Any], ...]
    unconverted: tuple[Unconverted, ...]
    remarks: tuple[str, ...] = ()


class Remarks:
    """Collected remarks; those that say the same of several schedules become one."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
        self._whole: dict[str, None] = {}

    def of(self, name: str, what: str) -> None:
        """Add what is to be said of one schedule: "{name} is paused there" with `what` "is paused there"."""
        names = self._names.setdefault(what, [])
        if name not in names:
            names.append(name)

    def add(self, remark: str) -> None:
        """Add a remark about the whole import, once."""
        self._whole[remark] = None

    def left_out(self, name: str, key: str, why: str | None = None) -> None:
        """Add that a key of a schedule is not imported."""
        self.of(name, f"{key} is not known, and left out" if why is None else f"{key} is left out: it {why}")

    def include(self, others: Remarks) -> None:
        """Add the remarks of an entry."""
        for what, names in others._names.items():
            for name in names:
                self.of(name, what)
        self._whole |= others._whole

    def all(self) -> tuple[str, ...]:
        """Return the remarks in the order in which they were made."""
        return (*self._whole, *(f"{_some(names)}: {what}" for what, names in self._names.items()))


def _some(names: list[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def convert(
    entries: Iterable[tuple[str, T]], read: Callable[[str, T, Remarks], dict[str, Any]], remarks: Remarks | None = None
) -> Imported:
    """Convert the entries of a source, each with its name; they are counted from 1, as lines are.

    `read` returns the document of an entry, or raises with the reason why it cannot be a schedule; its remarks count
    only if it returns. Documents are checked as `rota schedule apply` does.
    """
    remarks = Remarks() if remarks is None else remarks
    documents: dict[str, dict[str, Any]] = {}
    unconverted: list[Unconverted] = []
    for number, (name, entry) in enumerate(entries, 1):
        own = Remarks()
        try:
            document = read(name, entry, own)
            if document["name"] in documents:
                raise ValueError(f"another one is called {document['name']!r}: give one of them a name")
            _require_days(parse(document).trigger)
        except (RotaError, ValueError) as error:
            unconverted.append(Unconverted(number, name, reason(error, name)))
            continue
        except RecursionError:
            unconverted.append(Unconverted(number, name, "it is nested too deeply"))
            continue
        except (TypeError, LookupError, AttributeError, ArithmeticError) as error:  # a part of another kind
            unconverted.append(Unconverted(number, name, f"it is not understood: {type(error).__name__}: {error}"))
            continue
        documents[document["name"]] = document
        remarks.include(own)
    return Imported(tuple(documents.values()), tuple(unconverted), remarks.all())


def _require_days(trigger: Trigger) -> None:
    """Refuse what never fires, as `cron()` does in code."""
    for part in trigger.triggers if isinstance(trigger, Either) else (trigger,):
        if isinstance(part, Cron):
            cron(part.expression, part.timezone)


def reason(error: Exception, name: str) -> str:
    """Return why an entry cannot be converted, without its name, which stands before it."""
    return str(error).removeprefix(f"schedule {name!r}: ")


def table(value: object, what: str) -> Mapping[str, Any]:
    """Return a table of a source; raise if it is anything else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"its {what} is no table")
    return value


def job_list(text: str | bytes, example: str) -> list[Any]:
    """Parse a JSON list of jobs, or an object with `jobs`."""
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Invalid(f"the file is no JSON: {error}") from None
    except RecursionError:
        raise Invalid("the file is nested too deeply") from None
    jobs = content.get("jobs") if isinstance(content, dict) else content
    if not isinstance(jobs, list):
        raise Invalid("the file must hold a list of jobs", hint=example)
    return jobs
