"""`@verb`: the declaration of a verb. It says how a method of the client is reached over HTTP and who may call it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from rota.core.access.roles import Role
from rota.errors import BadPayload
from rota.verbs.bounds import Bound, bounded
from rota.verbs.pages import Page
from rota.verbs.wire import Answer, Body

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__rota_verb__"
_SENTENCE_END = re.compile(r"(?<=[.])\s+(?=[A-Z`])")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")

WIRE_NAMES = {"from_at": "from", "to_at": "to", "run_id": "id", "id_or_name": "id"}
"""Parameters whose names in JSON and URLs differ from those in Python, in every verb that has them."""


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """Declaration of a verb. Its parameters, their types and the summary come from the signature and the docstring.

    Parameters that the path names are part of the path, `actor` is the caller, `idempotency_key` and
    `expected_revision` (`If-Match`) are headers. The others, and those in `query`, are query parameters of GET and
    DELETE, and fields of the body of other methods, or parts of it as `body` says.
    `role` None: anyone may call it.
    `names` renames parameters; `fixed` fixes the value of some. `scoped`: callers who are limited to a scope may call
    it. `about_run`: the answer is about the run in the path, and secrets of its payload are redacted.
    `optional_body`: the request may have no body. `repeatable`: a client may send it again after a lost answer, or only
    if this parameter is given. `waits` is the parameter that says how long the server may take in addition.
    `created` tells whether a result is new: the status is 201 then, else `status`. `location` is the path of what the
    verb creates, `etag` the attribute that counts its changes. `takes` is an example of a body, `gives` one of an
    answer.
    """

    method: str
    path: str
    role: Role | None
    scoped: bool = False
    about_run: bool = False
    status: int = 200
    query: tuple[str, ...] = ()
    names: Mapping[str, str] = {}
    fixed: Mapping[str, Any] = {}
    optional_body: bool = False
    repeatable: bool | str = False
    waits: str | None = None
    page: Page[Any] | None = None
    body: Body | None = None
    payload_at: str | Callable[[BadPayload, Any], str] | None = None
    """Where a payload is in the body, for the pointers of errors: a path, or a function of the error and the body."""
    answer: Answer | None = None
    created: Callable[[Any], bool] | None = None
    location: str | None = None
    etag: str = "revision"
    takes: Any = None
    gives: Any = None
    operation: str | None = None
    """Name of the operation in OpenAPI, if it is not made from the verb's and its part's names."""

    def placeholders(self) -> list[str]:
        """Return the names of the path's parameters, as they stand in the path."""
        return _PLACEHOLDER.findall(self.path)

    def wire_name(self, parameter: str) -> str:
        """Return the name of a parameter in JSON and URLs."""
        return self.names.get(parameter) or WIRE_NAMES.get(parameter, parameter)


def verb(method: str, path: str, role: Role | None, **facts: Any) -> Callable[[F], F]:
    """Declare a method of the client as a verb: `@verb("GET", "/quotas", Role.VIEWER)`. It refuses arguments
    outside the bounds of its signature, and is otherwise as it was."""

    def declare(function: F) -> F:
        if _MARK not in vars(function):
            function = bounded(_bounds)(function)
        declarations(function).append(Verb(method=method, path=path, role=role, **facts))
        return function

    return declare


def _bounds(function: Callable[..., Any]) -> tuple[Bound, ...]:
    """Return the bounds of a verb's parameters, where they stand in requests."""
    from rota.verbs.parameters import bounds_of  # which imports this module

    return bounds_of(Declared("", function.__name__, function, declarations(function)[0]))


def declarations(function: Callable[..., Any]) -> list[Verb]:
    """Return the declarations of a method: none if it is no verb, several if several routes lead to it."""
    found: list[Verb] = vars(function).setdefault(_MARK, [])
    return found


class Declared(msgspec.Struct, frozen=True, eq=False):
    """A verb of a part of the client: `part` is the attribute of the client, "" for the client itself."""

    part: str
    name: str
    function: Callable[..., Any]
    verb: Verb

    @property
    def summary(self) -> str:
        """Return the first sentence of the verb's docstring."""
        return self._documentation()[0]

    @property
    def description(self) -> str:
        """Return the sentences after the first."""
        return self._documentation()[1]

    def _documentation(self) -> tuple[str, str]:
        text = inspect.getdoc(self.function) or ""
        first, _, rest = text.partition("\n\n")
        summary, *more = _SENTENCE_END.split(" ".join(first.split()), maxsplit=1)
        return summary, "\n\n".join(part for part in (*more, rest.strip()) if part)

    @property
    def operation(self) -> str:
        """Return the name of the operation in OpenAPI: `list_quotas`, `update_quota`, or `cancel`."""
        if self.verb.operation or not self.part:
            return self.verb.operation or self.name
        return f"{self.name}_{self.part if self.name == 'list' else self.part.removesuffix('s')}"


@cache
def verbs_of(kind: type, part: str = "") -> list[Declared]:
    """List the verbs of a class, in the order in which they are declared, those of its bases first."""
    functions: dict[str, Callable[..., Any]] = {}
    for base in reversed(kind.__mro__):
        functions |= {name: value for name, value in vars(base).items() if inspect.isfunction(value)}
    return [
        Declared(part, name, function, declaration)
        for name, function in functions.items()
        for declaration in vars(function).get(_MARK, ())
    ]
