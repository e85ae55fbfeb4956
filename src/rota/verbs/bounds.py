"""Bounds of arguments: `Meta` in a signature declares them, and the method itself checks them, whoever calls it."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Container, Iterator, Sized
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta

from rota.errors import OutOfRange, UnknownOption
from rota.values.json import step
from rota.verbs.wire import wired_in

F = TypeVar("F", bound=Callable[..., Any])


class Bound(NamedTuple):
    """Parameter with bounds. `position` is its place among positional arguments, `self` included; None: it has none.
    `path` leads to it in a body."""

    name: str
    wire_name: str
    annotation: Any
    position: int | None
    path: str | None


Problem = tuple[str, str]
Find = Callable[[Callable[..., Any]], tuple[Bound, ...]]


def bounded(find: Find) -> Callable[[F], F]:
    """Let a coroutine function refuse arguments outside the bounds that `find` returns for it, which is called once."""

    def wrap(function: F) -> F:
        bounds: tuple[Bound, ...] | None = None

        @functools.wraps(function)
        async def checked(*positional: Any, **named: Any) -> Any:
            nonlocal bounds
            if bounds is None:  # not before: annotations may name what is imported later
                bounds = find(checked)
            for bound in bounds:
                if bound.name in named:
                    check(named[bound.name], bound)
                elif bound.position is not None and bound.position < len(positional):
                    check(positional[bound.position], bound)
            try:
                return await function(*positional, **named)
            except UnknownOption as error:
                raise placed(error, named) from None

        return checked  # type: ignore[return-value]

    return wrap


def placed(error: UnknownOption, options: Container[str]) -> UnknownOption:
    """Let the error point to the option if it is one of these: those that a body has at its top."""
    if error.path is None and error.option in options:
        error.path = step("$", error.option)
    return error


def within_bounds(*in_body: str) -> Callable[[F], F]:
    """Check the bounds of a method that is not declared as a verb. `in_body` are the parameters that requests have in
    their body."""

    def find(function: Callable[..., Any]) -> tuple[Bound, ...]:
        hints = get_type_hints(function, include_extras=True)
        return tuple(
            Bound(name, name, hint, None, f"$.{name}" if name in in_body else None)
            for name, hint in hints.items()
            if has_bounds(hint)
        )

    return bounded(find)


def has_bounds(annotation: Any) -> bool:
    """Return whether a type has bounds."""
    return any(_limits(meta) for meta in _metas(annotation))


def check(value: Any, bound: Bound) -> None:
    """Raise `OutOfRange` if a value is outside the bounds of its parameter."""
    if value is None:
        return
    problem = _problem(value, bound.annotation)
    if problem is not None:
        raise OutOfRange(bound.wire_name, *problem, path=bound.path)


def unbounded(annotation: Any) -> Any:
    """Return a type without its bounds: what a request is converted to, so that the verb alone judges."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind = unbounded(parts[0])
        kept = [Meta(tz=True) if meta.tz else None for meta in _own(annotation)]
        metas = [meta for meta in kept if meta is not None]
        return Annotated[(kind, *metas)] if metas else kind
    if origin in (Union, types.UnionType):
        return Union[tuple(map(unbounded, parts))]  # noqa: UP007  # of a variable number of types
    if origin is list:
        return list[unbounded(parts[0])]  # type: ignore[misc]  # a type made at run time
    return annotation


def _problem(value: Any, annotation: Any) -> Problem | None:
    """Return what is wrong with a value, and what is allowed. A value of another type is refused elsewhere."""
    wired = wired_in(annotation)
    if wired is not None:
        annotation = wired.type
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        problems = [_exceeded(value, meta) for meta in _own(annotation)] if _is_of(value, parts[0]) else []
        return next((problem for problem in problems if problem), None) or _problem(value, parts[0])
    if origin in (Union, types.UnionType):
        return next((problem for part in parts if (problem := _problem(value, part))), None)
    if origin is list and isinstance(value, list | tuple):
        return next((problem for item in value if (problem := _problem(item, parts[0]))), None)
    return None


def _is_of(value: Any, kind: Any) -> bool:
    """Return whether bounds of this type are those of the value: a text has characters, a list has items."""
    if kind in (int, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str) if kind is str else isinstance(value, Sized) and not isinstance(value, str)


def _exceeded(value: Any, meta: Meta) -> Problem | None:
    if isinstance(value, int | float):
        if (meta.ge is None or value >= meta.ge) and (meta.le is None or value <= meta.le):
            return None
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        return f"cannot be {number!r:.40}", _range(meta.ge, meta.le)
    least, most, size = meta.min_length, meta.max_length, len(value)
    if (least is None or size >= least) and (most is None or size <= most):
        return None
    unit = "characters" if isinstance(value, str) else "items"
    return f"cannot have {size} {unit}", f"{_range(least, most)} {unit}"


def _range(least: float | None, most: float | None) -> str:
    if most is None:
        return f"at least {least}"
    return f"at most {most}" if least is None else f"{least} to {most}"


def _limits(meta: Meta) -> bool:
    return any(bound is not None for bound in (meta.ge, meta.le, meta.min_length, meta.max_length))


def _own(annotation: Any) -> list[Meta]:
    return [part for part in annotation.__metadata__ if isinstance(part, Meta)]


def _metas(annotation: Any) -> Iterator[Meta]:
    wired = wired_in(annotation)
    if wired is not None:
        annotation = wired.type
    if get_origin(annotation) is Annotated:
        yield from _own(annotation)
    if get_origin(annotation) in (Annotated, Union, types.UnionType, list):
        for part in get_args(annotation):
            yield from _metas(part)
