"""A scenario: a small world about one thing that rota does, and the words that most of them are told in."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.simulation.crashes import promises as must
from tests.simulation.crashes.promises import Promise, together
from tests.simulation.script.entries import Enqueue, Happening


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """`subjects`: what it is about, each a process (or how its name begins) and an operation of its that writes."""

    name: str
    entries: list[Happening]
    subjects: tuple[str, ...]
    promise: Promise
    span: float = 4.0
    engines: int = 1


FIRST, SECOND = "client-1", "client-2"
REPORTED = "engine Store.report"
TRIED = together(must.all_succeed, must.trouble_repeats_nothing)


def enqueue(at: float, job: str, *acts: str, client: str = FIRST, copies: int = 1, **options: Any) -> Enqueue:
    return Enqueue(at, client, job, list(acts), options, copies)
