"""Cases of the conformance suite: a verb, what exists before, its arguments, and what it answers, written once."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from rota.client.parts import PARTS, all_verbs
from rota.verbs.verb import Declared
from tests.conformance.world import World

Arrangement = Callable[[World], Awaitable[object]]
Reading = tuple[str, dict[str, Any]]

CLIENT, BLOCKING, REMOTE, REST, COMMAND = "client", "blocking", "remote", "rest", "command"
DOORS = (CLIENT, BLOCKING, REMOTE, REST, COMMAND)
PYTHON = (CLIENT, BLOCKING, REMOTE)
SCOPED = (CLIENT, REMOTE, REST, COMMAND)  # the doors of callers who are limited to a scope


class Refusal(msgspec.Struct, frozen=True):
    """Error that a verb is refused with. `words` are in its message, `hint` in its hint; None: it has none.

    `shape`: the value breaks the declared type, so REST and the command line say it in their own words, before the
    client's method is called. They still name `words`. `usage`: only the command line does, whose options are spelled
    otherwise.
    """

    code: str
    words: str = ""
    hint: str | None = None
    shape: bool = False
    usage: bool = False


class Case(msgspec.Struct, frozen=True):
    """One case. Arguments and answers write `<name>` for what the arrangement has noted under that name.

    `contains` is a part of the answer. `reads` is the verb, with its arguments, that shows the state afterwards.
    `scope` limits the caller. `only` are the doors that can express the case, if not all. For verbs that are written by
    hand, `sent` is the request (method, path, body, idempotency key) and `typed` the command.
    """

    verb: str
    what: str
    args: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}
    given: tuple[Arrangement, ...] = ()
    contains: Any = msgspec.UNSET
    refused: Refusal | None = None
    reads: Reading | None = None
    scope: tuple[str, str] | None = None
    only: tuple[str, ...] = DOORS
    sent: tuple[str, str, Any, str | None] | None = None
    typed: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.verb}: {self.what}"


def refusals(
    verb: str,
    *rows: tuple[str, tuple[Any, ...], dict[str, Any], Refusal],
    given: tuple[Arrangement, ...] = (),
    reads: Reading | None = None,
    only: tuple[str, ...] = DOORS,
) -> list[Case]:
    """Return cases of one verb that is refused: what is wrong, its arguments, and the error."""
    return [
        Case(verb, what, args, named, given=given, refused=refusal, reads=reads, only=only)
        for what, args, named, refusal in rows
    ]


def is_declared(verb: str) -> bool:
    return any(_name(declared) == verb for declared in all_verbs())


def declared_verbs() -> set[str]:
    """Return the names of all declared verbs: `quotas.update`, `cancel`."""
    return {_name(declared) for declared in all_verbs()}


def _name(declared: Declared) -> str:
    return f"{declared.part}.{declared.name}".strip(".")


def routes_of(verb: str) -> list[Declared]:
    """Return the declarations of a verb: `routes_of("quotas.update")`; none if it is written by hand."""
    return [declared for declared in all_verbs() if _name(declared) == verb]


def arguments_of(verb: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, those of `**options`, too, and those that the verb does not have."""
    return {**dict(zip(names_of(verb), args, strict=False)), **named}


def names_of(verb: str) -> list[str]:
    """Return the names of the parameters of a verb."""
    part, _, name = verb.rpartition(".")
    return list(inspect.signature(getattr(PARTS[part], name)).parameters)[1:]


def route_for(verb: str, arguments: Mapping[str, Any]) -> Declared:
    """Return the route of a verb whose path names the most arguments."""
    routes = sorted(routes_of(verb), key=lambda route: len(route.verb.placeholders()), reverse=True)
    if len(routes) == 1:
        return routes[0]
    for route in routes:
        names = {route.verb.wire_name(name) for name, value in arguments.items() if value is not None}
        fixed = all(arguments.get(name) == value for name, value in route.verb.fixed.items())
        if fixed and names.issuperset(route.verb.placeholders()):
            return route
    raise AssertionError(f"no route of {verb} takes {arguments}")
