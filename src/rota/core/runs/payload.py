"""Values in payloads: those that a search compares, and arguments that are results of other runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import Conflict, Invalid, did_you_mean
from rota.values.names import checked_name

if TYPE_CHECKING:
    from rota.core.runs.dependencies import Identified

InputOption = Mapping[str, "str | Identified | Sequence[Any]"]
"""Argument → the run whose result it is, or a list of runs, whose results it is a list of."""

Path = tuple[str | int, ...]
"""Place in a payload: an argument, then positions in lists."""

SMALLER = "store the data elsewhere, and return a reference to it"
_HINT = '{"pages": run}, or a list of runs; each a handle, an id, or the ref of another run of the same call'
_DEEPEST = 16
_MOST_PLACES = 1_000
MOST_FILLED = 16_777_216
"""Characters of results that a payload takes: as many as the largest payload that can be allowed."""
_NOTHING: frozenset[str] = frozenset()


def inputs_of(value: object) -> dict[str, tuple[Path, ...]]:
    """Parse the `inputs` option: the places that each run's result fills, by the name of the run."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"inputs must map arguments to runs, not {value!r:.80}", hint=_HINT)
    places: dict[str, list[Path]] = {}
    for argument, source in value.items():
        for run, place in _sources(source, (checked_name(argument, "an argument of inputs"),)):
            places.setdefault(run, []).append(place)
    # One result may fill many places: a short request would stand for more than memory holds.
    if (count := sum(map(len, places.values()))) > _MOST_PLACES:
        raise Invalid(f"inputs fill at most {_MOST_PLACES} places, not {count}", hint="take each result once")
    return {run: tuple(paths) for run, paths in places.items()}


def _sources(source: object, place: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(source, list | tuple):
        if not source or len(place) > _DEEPEST:
            raise Invalid(f"inputs of {place[0]!r} must be a run or a list of runs", hint=_HINT)
        for position, item in enumerate(source):
            yield from _sources(item, (*place, position))
        return
    name = source if isinstance(source, str) else getattr(source, "id", None)
    if not isinstance(name, str):
        raise Invalid(f"the argument {place[0]!r} cannot be the result of {source!r:.80}", hint=_HINT)
    yield checked_name(name, "a run of inputs"), place


def pending_of(options: Mapping[str, Any]) -> frozenset[str]:
    """Return the arguments that results will fill; their runs are checked later."""
    inputs = options.get("inputs")
    if inputs is None:
        return _NOTHING
    return frozenset(place[0] for places in inputs_of(inputs).values() for place in places if isinstance(place[0], str))


def require_free(pending: Iterable[str], payload: str, schema: Mapping[str, Any], job: str) -> None:
    """Refuse inputs that the job does not take, or that the payload has already."""
    given = msgspec.json.decode(payload)
    known = schema.get("properties", {})
    for name in pending:
        if name in given:
            raise Invalid(f"the argument {name!r} is given, and is to be a result", hint="leave one of them out")
        if schema.get("additionalProperties") is False and name not in known:
            raise Invalid(f"{job!r} takes no argument {name!r}", hint=did_you_mean(name, known))


def require_known(pending: frozenset[str], fields: Iterable[str], what: str, job: str) -> None:
    """Refuse a limit or a key by an argument that is not known yet."""
    for field in fields:
        if field.partition(".")[0] in pending:
            raise Invalid(
                f"{what} of {job!r} is by {field!r}, which is not known before the result is there",
                hint="let a run enqueue it when the result is there",
            )


def written_places(places: Sequence[Path]) -> str | None:
    """Write places as they are stored; None if there are none."""
    return msgspec.json.encode(places).decode() if places else None


def shown_places(text: str | None) -> tuple[str, ...]:
    """Show stored places as people write them: `pages`, `pages[2]`."""
    return tuple(_shown(place) for place in _decoded(text)) if text else ()


def _shown(place: Sequence[str | int]) -> str:
    argument, *positions = place
    return str(argument) + "".join(f"[{position}]" for position in positions)


def _decoded(text: str) -> list[list[str | int]]:
    return msgspec.json.decode(text, type=list[list[str | int]])


class TakenResult(msgspec.Struct, frozen=True):
    """Result of `run`, or of its retry, for the stored `places` of an argument. `is_there`: there is one by now."""

    run: str
    places: str
    is_there: bool
    result: str | None


def taken_again(payload: str, taken: Sequence[TakenResult]) -> str:
    """Return the payload for a retry of a run that ended before its arguments were filled."""
    missing = [it for it in taken if not is_filled(payload, it.places)]
    for it in missing:
        if not it.is_there:
            raise Conflict(f"it takes the result of run {it.run}, which has not succeeded", hint="retry that one first")
    if sum(size_of(it.places, len(it.result or "")) for it in missing) > MOST_FILLED:
        raise Conflict(f"the results that it takes are larger than {MOST_FILLED} characters", hint=SMALLER)
    return filled(payload, [(it.places, it.result) for it in missing]) if missing else payload


def is_filled(payload: str, places: str) -> bool:
    """Return whether a payload has the arguments at these places. They come all at once, or not at all."""
    given = msgspec.json.decode(payload)
    return all(place[0] in given for place in _decoded(places))


def size_of(places: str, result: int) -> int:
    """Return how much a result of this length takes in its stored places."""
    return len(_decoded(places)) * result


def filled(payload: str, results: Iterable[tuple[str, str | None]]) -> str:
    """Return the payload with results, each (its stored places, JSON text)."""
    arguments: dict[str, Any] = msgspec.json.decode(payload)
    for places, result in results:
        value = None if result is None else msgspec.json.decode(result)
        for place in _decoded(places):
            _put(arguments, place, value)
    return msgspec.json.encode(arguments).decode()


def _put(arguments: dict[str, Any], place: Sequence[str | int], value: Any) -> None:
    *path, last = place
    at: Any = arguments
    for step in path:
        at = _at(at, step, [])
    if isinstance(last, int):
        _at(at, last, None)
    at[last] = value


def _at(container: Any, step: str | int, empty: list[Any] | None) -> Any:
    """Return what is at a place of an argument or a list, which grows up to it."""
    if isinstance(step, str):
        return container.setdefault(step, empty)
    container.extend([None] * (step + 1 - len(container)))
    if container[step] is None:
        container[step] = empty
    return container[step]


Scalar = str | int | float | bool | None

LONGEST_VALUE = 2_000
_MOST_VALUES = 10
_DEEPEST_NAME = 8
_UNSEARCHABLE = '"\\'


def checked_values(payload: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the text of each value by its path: `{"a.b": 5}` means 5 at b of a. Dots always separate names."""
    if len(payload) > _MOST_VALUES:
        raise Invalid(f"a search takes at most {_MOST_VALUES} payload values")
    return {_path(name): scalar_text(value, name) for name, value in payload.items()}


def _path(name: str) -> tuple[str, ...]:
    keys = tuple(name.split("."))
    if len(keys) > _DEEPEST_NAME:
        raise Invalid(f"payload.{name:.80} is deeper than {_DEEPEST_NAME} names")
    for key in keys:
        checked_name(key, f"a name in payload.{name:.80}")
        if any(sign in key for sign in _UNSEARCHABLE):
            raise Invalid(f"payload.{name:.80} contains a quote or a backslash, and cannot be searched for")
    return keys


def scalar_text(value: Any, name: str) -> str:
    """Return a text as it is, and any other scalar as JSON."""
    if isinstance(value, str):
        if len(value) > LONGEST_VALUE or "\x00" in value or not _is_text(value):
            raise Invalid(f"the value of payload.{name:.80} must be text of up to {LONGEST_VALUE} characters")
        return value
    if value is None or isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    raise Invalid(f"payload.{name:.80} must be compared with a text, a number, true, false or null: not {value!r:.80}")


def _is_text(value: str) -> bool:
    return value.isprintable() or not any(0xD800 <= ord(sign) < 0xE000 for sign in value)
