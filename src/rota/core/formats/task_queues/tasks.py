"""Tasks of other schedulers as jobs: names of functions, and arguments by position, become jobs and payloads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rota.core.jobs.payload_template import check_template
from rota.errors import Invalid

_TASK = re.compile(r"\s*(?P<task>[^=\s]+)\s*=\s*(?P<job>[^()\s]+)\s*(?:\((?P<parameters>[^()]*)\))?\s*")
_MOST_VALUES = 10_000


class Task(msgspec.Struct, frozen=True):
    """Job of a task; `parameters`: names of its arguments by position, None: not known."""

    job: str
    parameters: tuple[str, ...] | None = None


class Tasks:
    """Jobs of tasks by their names. A task that nobody named is called as its function, the last word of its path.

    `known` tells the parameters of a task whose function is at hand.
    """

    def __init__(
        self, named: Mapping[str, Task] | None = None, known: Callable[[str], Sequence[str] | None] | None = None
    ) -> None:
        self._named = named or {}
        self._known = known
        self._taken: dict[str, str] = {}

    def call(self, task: object, args: object, kwargs: object) -> dict[str, Any]:
        """Return `job` and `payload` of a document; raise if the arguments cannot be a payload."""
        if not isinstance(task, str) or not task:
            raise ValueError("it names no task")
        named = self._named.get(task, Task(re.split(r"[.:]", task)[-1]))
        other = self._taken.setdefault(named.job, task)
        if other != task:
            raise ValueError(f"its job would be {named.job!r}, as that of {other}: give --task {task}=NAME")
        payload = self._payload(task, named, list(_listed(args)), dict(_table(kwargs)))
        if check_template(payload):
            raise ValueError("its arguments have a word in braces that rota would fill in")
        return {"job": named.job, **({"payload": payload} if payload else {})}

    def _payload(self, task: str, named: Task, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        if not args:
            return plain(kwargs)
        parameters = named.parameters
        if parameters is None and self._known is not None:
            parameters = tuple(self._known(task) or ()) or None
        if parameters is None:
            form = f"{task}={named.job}({', '.join('abc'[: len(args)]) if len(args) <= 3 else '…'})"
            raise ValueError(f"it passes arguments by position, payloads have names: give --task '{form}'")
        if len(args) > len(parameters):
            raise ValueError(f"it passes {len(args)} arguments by position, and {named.job} has {len(parameters)}")
        by_name = dict(zip(parameters, args, strict=False))
        twice = by_name.keys() & kwargs.keys()
        if twice:
            raise ValueError(f"it passes {min(twice)} by position and by name")
        return plain(by_name | kwargs)


def _listed(args: object) -> Iterable[Any]:
    if args is None or isinstance(args, list | tuple):
        return args or ()
    raise ValueError(f"args must be a list, not {args!r:.60}")


def _table(kwargs: object) -> Mapping[str, Any]:
    if kwargs is None or isinstance(kwargs, Mapping):
        return kwargs or {}
    raise ValueError(f"kwargs must be a table, not {kwargs!r:.60}")


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON values; raise for anything that JSON does not have."""
    left = [_MOST_VALUES]
    return {name: _plain(value, name, left) for name, value in arguments.items()}


def _plain(value: Any, name: str, left: list[int]) -> Any:
    left[0] -= 1  # values may share parts, so that a short source stands for more than memory holds
    if left[0] < 0:
        raise ValueError(f"its argument {name!r} has too many values")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, name, left) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, name, left) for key, item in value.items()}
    raise ValueError(f"its argument {name!r} is a {kind_of(value)}, which JSON does not have")


def kind_of(value: object) -> str:
    """Return the name of a value's type, or of the one that it stands for."""
    return str(getattr(value, "name_of_class", type(value).__name__))


def tasks_of(written: Iterable[str]) -> dict[str, Task]:
    """Parse `--task 'shop.bill=bill(who, amount)'`."""
    named: dict[str, Task] = {}
    for text in written:
        shape = _TASK.fullmatch(text)
        if shape is None:
            raise Invalid(f"--task cannot be {text!r:.80}", hint="--task 'shop.bill=bill(who, amount)'")
        words = shape["parameters"]
        parameters = None if words is None else tuple(word.strip() for word in words.split(",") if word.strip())
        named[shape["task"]] = Task(shape["job"], parameters)
    return named
