"""Dependencies between runs: the `after` option, refs within one call, cycles, and runs whose dependency failed."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeVar, assert_never

import msgspec

from rota.core.runs.payload import Path, inputs_of
from rota.core.states import RunState
from rota.errors import Invalid, UnknownOption, did_you_mean
from rota.values.names import checked_name

ORDER, SUCCESS_OR_SKIP, SUCCESS_OR_CANCEL, ANY_END, REPLICA = range(5)
"""Kinds of dependency, as stored in `rota_wait.kind`."""

NEEDS_SUCCESS = (SUCCESS_OR_SKIP, SUCCESS_OR_CANCEL)
MOST_FOLLOWED = 1_000
_PART_OF_ID = re.compile(r"[0-9a-fA-F-]+")
_WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HINT = "a run's id, what an enqueue answered, the ref of another run of the same call, or Follows(run, on=…)"


M = TypeVar("M", bound=StrEnum)


class On(StrEnum):
    """End of a predecessor for which its dependents wait."""

    SUCCESS = "success"
    END = "end"


class Otherwise(StrEnum):
    """End of a run whose predecessor did not succeed."""

    SKIP = "skip"
    CANCEL = "cancel"


class Identified(Protocol):
    """Anything with a run's id: the answer of an enqueue, or a run."""

    @property
    def id(self) -> str: ...


class Follows(msgspec.Struct, frozen=True):
    """Dependency on `run`: on its `success`, or on any `end` of it.

    `otherwise`: what becomes of the dependent run if its predecessor does not succeed: `skip` or `cancel`.
    """

    run: str | Identified
    on: Literal["success", "end"] = "success"
    otherwise: Literal["skip", "cancel"] = "skip"


AfterOption = Sequence[str | Identified | Follows | Mapping[str, Any]]


class Dependency(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Predecessor of a new run; `run` is a ref or part of an id until the call is linked, then a whole id."""

    run: str
    kind: int
    inputs: tuple[Path, ...] = ()
    """Places in the payload of the new run that the predecessor's result fills."""


class RelatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Predecessor or successor of a run. `job` and `state` are None if it was pruned."""

    id: str
    job: str | None
    state: RunState | None
    result: Any
    on: str
    """When the later run may start: after `success`, or after any `end`."""
    otherwise: str
    """What becomes of it without a success: `skip` or `cancel`."""
    inputs: tuple[str, ...] = ()
    """Arguments of the later run that are the result of the earlier one."""


class Unmet(msgspec.Struct, frozen=True):
    """Run that will never begin, the final state it gets, and the reason."""

    run: str
    state: RunState
    reason: str


def followed_by(after: object, inputs: object = None) -> tuple[Dependency, ...]:
    """Parse the options `after` and `inputs`: a run follows those whose results it takes."""
    explicit, sources = _followed_by(after), inputs_of(inputs)
    if not sources:
        return explicit
    if len(explicit) + len(sources) > MOST_FOLLOWED:
        raise _too_many(len(explicit) + len(sources))
    dependencies = [_taking(item, sources.pop(item.run, ())) for item in explicit]
    return (*dependencies, *(Dependency(run, SUCCESS_OR_SKIP, places) for run, places in sources.items()))


def _taking(dependency: Dependency, places: tuple[Path, ...]) -> Dependency:
    if places and dependency.kind not in NEEDS_SUCCESS:
        raise Invalid(f"inputs need the success of {dependency.run!r}", hint='leave out on="end"')
    return msgspec.structs.replace(dependency, inputs=places) if places else dependency


def _too_many(count: int) -> Invalid:
    return Invalid(
        f"a run follows at most {MOST_FOLLOWED} others, not {count}", hint="let a run in between follow some of them"
    )


def _followed_by(value: object) -> tuple[Dependency, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise Invalid(f"after must be a list, not {value!r:.80}", hint=f"[…], each of them {_HINT}")
    if len(value) > MOST_FOLLOWED:
        raise _too_many(len(value))
    return tuple(_dependency(item) for item in value)


def _dependency(item: object) -> Dependency:
    if isinstance(item, Follows):
        return Dependency(_run_of(item.run), _kind(item.on, item.otherwise))
    if isinstance(item, Mapping):
        for name in item:
            if name not in Follows.__struct_fields__:
                raise UnknownOption(str(name), Follows.__struct_fields__, where="after")
        if "run" not in item:
            raise Invalid("an item of after names no run", hint='{"run": …, "on": "success", "otherwise": "skip"}')
        return Dependency(_run_of(item["run"]), _kind(item.get("on", "success"), item.get("otherwise", "skip")))
    return Dependency(_run_of(item), SUCCESS_OR_SKIP)


def _run_of(item: object) -> str:
    name = item if isinstance(item, str) else getattr(item, "id", None)
    if not isinstance(name, str):
        raise Invalid(f"a run cannot follow {item!r:.80}", hint=_HINT)
    return checked_name(name, "a run to follow")


def _kind(on: object, otherwise: object) -> int:
    mode, last = _mode(On, on, "on"), _mode(Otherwise, otherwise, "otherwise")
    match mode:
        case On.SUCCESS:
            return _kind_of_success(last)
        case On.END:
            return _kind_of_end(last)
        case _:
            assert_never(mode)


def _kind_of_success(otherwise: Otherwise) -> int:
    match otherwise:
        case Otherwise.SKIP:
            return SUCCESS_OR_SKIP
        case Otherwise.CANCEL:
            return SUCCESS_OR_CANCEL
        case _:
            assert_never(otherwise)


def _kind_of_end(otherwise: Otherwise) -> int:
    match otherwise:
        case Otherwise.SKIP:  # the default
            return ANY_END
        case Otherwise.CANCEL:
            raise Invalid('otherwise means nothing with on="end"', hint='leave it out, or use on="success"')
        case _:
            assert_never(otherwise)


def _mode(modes: type[M], word: object, option: str) -> M:
    for mode in modes:
        if word == mode:
            return mode
    hint = did_you_mean(str(word)[:80], [mode.value for mode in modes])
    raise Invalid(f"{option} of after cannot be {word!r:.80}", hint=hint)


def written(kind: int) -> tuple[str, str]:
    """Return `on` and `otherwise` of a dependency kind, as callers write them."""
    on = On.END if kind == ANY_END else On.SUCCESS
    otherwise = Otherwise.CANCEL if kind == SUCCESS_OR_CANCEL else Otherwise.SKIP
    return on.value, otherwise.value


def checked_ref(value: object) -> str:
    return checked_name(value, "ref")


def places_of(refs: Iterable[str | None]) -> dict[str, int]:
    """Map the refs of one call to the positions of their runs; a ref may occur once."""
    places: dict[str, int] = {}
    for place, ref in enumerate(refs):
        if ref is not None and places.setdefault(ref, place) != place:
            raise Invalid(f"two runs of this call have the ref {ref!r}", hint="a ref names one of them")
    return places


def parts_of(afters: Iterable[Sequence[Dependency]], places: Mapping[str, int], *, whole: bool = False) -> list[str]:
    """Return the ids to look up: every name that is not a ref must be an id or part of one.

    Whole ids need no lookup, and are included only with `whole`.
    """
    named = {dependency.run for dependencies in afters for dependency in dependencies} - places.keys()
    for name in named:
        if not _PART_OF_ID.fullmatch(name):
            hint = did_you_mean(name, places) or _HINT
            raise Invalid(f"no run of this call has the ref {name!r}", hint=hint)
    return sorted(name for name in named if whole or not is_whole(name))


def is_whole(id: str) -> bool:
    return _WHOLE_ID.fullmatch(id) is not None


class DependencyGraph(msgspec.Struct, frozen=True):
    """Runs of one call by position: an order in which they can run, and the predecessors (position or id) of each."""

    order: Sequence[int]
    follows: Sequence[Mapping[int | str, Dependency]]
    """Predecessor → the dependency on it, for each run."""


def link(afters: Sequence[Sequence[Dependency]], places: Mapping[str, int], ids: Mapping[str, str]) -> DependencyGraph:
    """Resolve the dependencies of one call; cycles are refused. `ids` maps parts of ids to whole ids."""
    follows: list[dict[int | str, Dependency]] = []
    for dependencies in afters:
        predecessors: dict[int | str, Dependency] = {}
        for dependency in dependencies:
            predecessor = (
                places[dependency.run] if dependency.run in places else ids.get(dependency.run, dependency.run)
            )
            # `rota_wait` has one row per pair of runs, so there cannot be two kinds.
            known = predecessors.get(predecessor)
            if known is not None and known.kind != dependency.kind:
                raise Invalid(f"a run follows {dependency.run!r} in two ways", hint="keep one of them")
            predecessors[predecessor] = dependency if known is None else both(known, dependency)
        follows.append(predecessors)
    names = {place: ref for ref, place in places.items()}
    within = [[predecessor for predecessor in predecessors if isinstance(predecessor, int)] for predecessors in follows]
    return DependencyGraph(in_order(within, lambda place: names[place]), follows)


def both(first: Dependency, second: Dependency) -> Dependency:
    """Return one dependency for two on the same run: it needs what is harder, and takes what both take."""
    kind = second.kind if first.kind == ANY_END else first.kind
    return Dependency(first.run, kind, (*first.inputs, *second.inputs))


class _Name(Protocol):
    def __call__(self, place: int, /) -> str: ...


def in_order(follows: Sequence[Iterable[int]], name: _Name) -> list[int]:
    """Sort positions topologically, otherwise stably; a cycle is refused."""
    unmet = [set(places) for places in follows]
    followers: dict[int, list[int]] = {}
    for place, places in enumerate(unmet):
        for first in places:
            followers.setdefault(first, []).append(place)
    free = [place for place, places in enumerate(unmet) if not places]
    order: list[int] = []
    while free:
        place = heapq.heappop(free)
        order.append(place)
        for follower in followers.get(place, ()):
            unmet[follower].discard(place)
            if not unmet[follower]:
                heapq.heappush(free, follower)
    if len(order) < len(unmet):
        raise _ring(unmet, name)
    return order


def _ring(unmet: Sequence[set[int]], name: _Name) -> Invalid:
    """Build the error that names one cycle.

    Every position that is left has a predecessor that is left, so following predecessors leads into a cycle.
    """
    place = next(place for place, places in enumerate(unmet) if places)
    path: list[int] = []
    while place not in path:
        path.append(place)
        place = min(unmet[place])
    ring = [*path[path.index(place) :], place]
    if len(ring) == 2:
        return Invalid(f"run {name(place)!r} cannot follow itself", hint="leave it out of its own after")
    words = " → ".join(name(member) for member in ring)
    return Invalid(f"these runs follow each other in a cycle: {words}", hint="read → as “after”; remove one of them")


def is_met(kind: int, state: str | None) -> bool:
    """Return whether an end satisfies a dependency; a run that is gone (None) is not known to have succeeded."""
    return kind not in NEEDS_SUCCESS or state == RunState.SUCCEEDED


TOO_LARGE = "too_large"
"""Instead of the state of a run that succeeded, if its result and others are too large for who takes them."""

_ENDED = {
    TOO_LARGE: "returned more than fits into its arguments",
    "failed": "failed",
    "timed_out": "timed out",
    "cancelled": "was cancelled",
    "expired": "was lost with its worker",
    "skipped": "was skipped",
}

_REASON = re.compile(rf"\brun {_WHOLE_ID.pattern} (?P<how>{'|'.join(_ENDED.values())}|is gone)")


def unnamed(reason: str) -> str:
    """Remove run ids from a reason, for readers who may not see the run that was followed."""
    return _REASON.sub(r"a run that it follows \g<how>", reason)


Edge = tuple[str, str, int]
"""(run, its predecessor, kind)"""


def in_vain(failed: Sequence[Edge], states: Mapping[str, str | None], beyond: Iterable[Edge]) -> list[Unmet]:
    """Return the runs that end because a dependency failed, predecessors first.

    `failed` are edges to runs that have ended (`states`), `beyond` edges to the dependents of those; only edges that
    need a success. A run with several failed predecessors ends because of the first.
    """
    followers: dict[str, list[Edge]] = {}
    for edge in sorted(beyond):
        followers.setdefault(edge[1], []).append(edge)
    ends: dict[str, Unmet] = {}
    waiting = sorted(failed)
    for run, after, kind in waiting:  # the loop appends to it: dependents of dependents
        if run not in ends:
            state = RunState.SKIPPED if kind == SUCCESS_OR_SKIP else RunState.CANCELLED
            how = ends[after].state.value if after in ends else states.get(after)
            ends[run] = Unmet(run, state, f"run {after} {_ENDED.get(how or '', 'is gone')}")
            waiting += followers.get(run, ())
    return list(ends.values())
