"""Lifespans that an application declares, and the states that they give to handlers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import UnionType
from typing import Any, get_origin

from rota.errors import Invalid

_FORM = "async def lifespan(app): …; yield state"


class Injected:
    """Default of a parameter that the worker fills with the state of this type: `db: Database = injected`."""

    def __repr__(self) -> str:
        return "injected"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the state has no {name!r} here: a direct call injects nothing, so pass the argument")


injected: Any = Injected()


class Lifespan:
    """A context manager around the life of a worker; `enter` makes a new one for each worker."""

    __slots__ = ("enter", "name")

    def __init__(self, app: object, lifespan: Callable[..., Any]) -> None:
        self.name: str = getattr(lifespan, "__name__", repr(lifespan))
        if inspect.isasyncgenfunction(lifespan):
            lifespan = asynccontextmanager(lifespan)
        elif inspect.iscoroutinefunction(lifespan) or inspect.isgeneratorfunction(inspect.unwrap(lifespan)):
            raise Invalid(f"the lifespan {self.name} is not an async context manager", hint=_FORM)
        try:
            inspect.signature(lifespan).bind(app)
        except TypeError as problem:
            raise Invalid(f"the lifespan {self.name} cannot be called with the app: {problem}", hint=_FORM) from None
        self.enter: Callable[[], AbstractAsyncContextManager[object]] = partial(lifespan, app)


class States:
    """Objects that the lifespans of one worker have yielded, in their order."""

    __slots__ = ("_states",)

    def __init__(self, states: Iterable[object] = ()) -> None:
        self._states = tuple(state for state in states if state is not None)

    def only(self) -> Any:
        """Return the state, if there is exactly one."""
        if len(self._states) == 1:
            return self._states[0]
        if self._states:
            raise Invalid("several lifespans yield a state", hint="take one by its type: `name: Type = injected`")
        raise Invalid("no lifespan yields a state", hint=f"@app.lifespan above `{_FORM}`")

    def arguments(self, injects: Mapping[str, type]) -> dict[str, object]:
        return {name: self._of(kind, name) for name, kind in injects.items()}

    def _of(self, kind: type, name: str) -> object:
        fitting = [state for state in self._states if isinstance(state, kind)]
        exact = [state for state in fitting if type(state) is kind]
        match exact or fitting:
            case [state]:
                return state
            case []:
                problem, hint = f"no lifespan yields a {kind.__qualname__}", f"@app.lifespan above `{_FORM}`"
            case _:
                problem, hint = f"several lifespans yield a {kind.__qualname__}", "give one of them a class of its own"
        raise Invalid(f"parameter {name!r}: {problem}", hint=hint)


NO_STATES = States()


class Lifespans:
    """The lifespans of an application, in the order in which they are entered."""

    def __init__(self) -> None:
        self._lifespans: list[Lifespan] = []

    def add(self, app: object, lifespan: Callable[..., Any]) -> None:
        self._lifespans.append(Lifespan(app, lifespan))

    def __iter__(self) -> Iterator[Lifespan]:
        return iter(self._lifespans)

    def __bool__(self) -> bool:
        return bool(self._lifespans)


def injected_class(annotation: Any, name: str) -> type:
    """Return the class by which an injected parameter finds its state."""
    kind = get_origin(annotation) or annotation
    try:
        isinstance(None, kind)
    except TypeError:  # a union written `Optional[…]`, a protocol that is not checkable at run time
        kind = None
    if not isinstance(kind, type) or kind in (UnionType, inspect.Parameter.empty):
        raise Invalid(f"parameter {name!r} is injected by its type, and so needs a class as annotation")
    return kind
