"""Chains and groups: runs of one call that follow each other and take each other's results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar, cast, overload

from rota.client.client import Order
from rota.client.handle import Handle, lacks
from rota.core.runs.options import RUN_OPTIONS, RunOptions
from rota.errors import BadPayload, Invalid, UnknownOption

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rota.app import Rota
    from rota.job import Job

X_contra = TypeVar("X_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

Source = str | list[Any] | None
"""Where the result of a stage comes from: the ref of a run, or a list of such; None before the first stage."""

_OF_THE_FIRST = ("delay", "run_at", "after")
_OF_ONE = ("key", "unique", "inputs", "ref")

_ELSEWHERE = {
    **dict.fromkeys(("delay", "apply_async", "send", "run", "kiq", "defer"), "`enqueue()`, of a chain or a group"),
    **dict.fromkeys(("set", "link", "clone"), "`job.options(…).s(…)`, before the chain"),
}
"""Methods of signatures in other libraries, and what they are called here."""


class _Plan:
    """Orders of one flow, made from its first stage to its last."""

    def __init__(self, options: Mapping[str, Any], taken: set[str]) -> None:
        self.orders: list[Order] = []
        self.apps: list[Rota] = []
        self._options = options
        self._names = (name for number in count(1) if (name := f"stage-{number}") not in taken)

    def add(self, step: Step[Any, Any], source: Source) -> str:
        options = self._of_all(first=source is None) | step.job.given
        ref = options["ref"] = options.get("ref") or next(self._names)
        if source is not None:
            if step.takes is None:
                options["after"] = [*options.get("after", ()), *_refs(source)]
            else:
                options["inputs"] = {**options.get("inputs", {}), step.takes: source}
        self.orders.append(Order(step.job.name, step.arguments, options))
        self.apps.append(step.job.app)
        return ref

    def _of_all(self, *, first: bool) -> dict[str, Any]:
        options = {name: value for name, value in self._options.items() if first or name not in _OF_THE_FIRST}
        if "idempotency_key" in options:
            options["idempotency_key"] = f"{options['idempotency_key']}#{len(self.orders) + 1}"
        return options


def _refs(source: Source) -> list[str]:
    if isinstance(source, list):
        return [ref for part in source for ref in _refs(part)]
    return [] if source is None else [source]


class Stage(Generic[X_contra, R_co]):
    """Part of a flow: it takes the result of what comes before it, and its own goes to what follows.

    A stage that takes nothing, and so can be the first, is a `Stage[object, …]`.
    """

    given: Mapping[str, Any] = {}

    if not TYPE_CHECKING:  # for type checkers, there are no such names

        def __getattr__(self, name: str) -> NoReturn:
            raise lacks(self, name, "a part of a flow", _ELSEWHERE)

        def __or__(self, other: object) -> NoReturn:
            raise Invalid("parts of a flow are not joined by |", hint=f"chain({self!r:.40}, …)")

    def _add(self, plan: _Plan, source: Source) -> Source:
        raise NotImplementedError

    def _jobs(self) -> Iterator[Job[..., Any]]:
        raise NotImplementedError


class Step(Stage[X_contra, R_co]):
    """A job with arguments, `job.s(…)`. `takes`: the argument that is the result of what comes before it, if any."""

    def __init__(self, job: Job[..., R_co], args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        self.job = job
        payload = job.handler.payload
        own = frozenset(job.given.get("inputs") or ())
        self.takes: str | None = None
        try:
            self.arguments = payload.without(own).bind(args, kwargs)
        except BadPayload as lacking:
            if payload.first is None or payload.first in own:
                raise
            try:
                self.arguments = payload.without(own | {payload.first}).bind(args, kwargs)
            except BadPayload:
                raise lacking from None
            self.takes = payload.first

    def __repr__(self) -> str:
        return f"{self.job.name}.s({', '.join(f'{name}={value!r:.40}' for name, value in self.arguments.items())})"

    def _add(self, plan: _Plan, source: Source) -> Source:
        if source is None and self.takes is not None:
            raise Invalid(
                f"{self!r} takes {self.takes!r} from what comes before it, and nothing does",
                hint=f"give it: {self.job.name}.s({self.takes}=…)",
            )
        return plan.add(self, source)

    def _jobs(self) -> Iterator[Job[..., Any]]:
        yield self.job


class Flow(Stage[X_contra, R_co]):
    """Stages that are enqueued together, all or none."""

    def __init__(self, stages: Sequence[Stage[Any, Any]], options: Mapping[str, Any] | None = None) -> None:
        for stage in stages:
            if not isinstance(stage, Stage):
                raise Invalid(
                    f"{stage!r:.80} is no part of a {self._word}",
                    hint=f"{self._word}(*steps)" if isinstance(stage, Iterable) else "job.s(…), chain(…) or group(…)",
                )
        if not stages:
            raise Invalid(f"an empty {self._word}", hint=f"{self._word}(job.s(…), …)")
        self.stages = tuple(stages)
        self.given = dict(options or {})

    @property
    def _word(self) -> str:
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        return f"{self._word}({', '.join(map(repr, self.stages))})"

    def options(self, **options: Unpack[RunOptions]) -> Self:
        """Return the same flow with options for all of its runs; what a job has from `job.options(…)` stands.

        `delay`, `run_at` and `after` are for the first runs, which the others follow. An `idempotency_key` names the
        flow: enqueued again, it leads to the same runs.
        """
        for option in options:
            if option not in RUN_OPTIONS:
                raise UnknownOption(option, RUN_OPTIONS, where=f"a {self._word}")
            if option in _OF_ONE:
                raise Invalid(f"{option} cannot be the same for all runs of a {self._word}", hint="job.options(…).s(…)")
        return type(self)(self.stages, {**self.given, **options})

    def orders(self) -> list[Order]:
        """Return the runs that are not enqueued yet, for `enqueue_many` of an app or a client."""
        return self._planned()[0].orders

    def enqueue_all(self) -> Sequence[Handle[Any]]:
        """Enqueue the flow, all or none; return the handles of all its runs, in the order in which they were given."""
        plan, _ = self._planned()
        return _app_of(plan).enqueue_many(plan.orders)

    async def aenqueue_all(self) -> Sequence[Handle[Any]]:
        """Enqueue the flow, in async code; return the handles of all its runs."""
        plan, _ = self._planned()
        return await _app_of(plan).aenqueue_many(plan.orders)

    def enqueue_in(self, connection: Any) -> list[str]:
        """Enqueue the flow inside your own transaction; return the ids of all its runs."""
        plan, _ = self._planned()
        return _app_of(plan).enqueue_many_in(connection, plan.orders)

    async def aenqueue_in(self, connection: Any) -> list[str]:
        """Enqueue the flow inside your own transaction, in async code; return the ids of all its runs."""
        plan, _ = self._planned()
        return await _app_of(plan).aenqueue_many_in(connection, plan.orders)

    def _planned(self) -> tuple[_Plan, list[int]]:
        """Return the orders, and the places of those whose results are the flow's."""
        for stage in self._nested():
            if stage.given:
                raise Invalid("options of a flow inside another mean nothing", hint="give them to the whole")
        plan = _Plan(self.given, {str(job.given["ref"]) for job in self._jobs() if job.given.get("ref")})
        ends = _refs(self._add(plan, None))
        places = {str(order.options["ref"]): place for place, order in enumerate(plan.orders)}
        return plan, [places[ref] for ref in ends]

    def _nested(self) -> Iterator[Stage[Any, Any]]:
        for stage in self.stages:
            yield stage
            if isinstance(stage, Flow):
                yield from stage._nested()

    def _jobs(self) -> Iterator[Job[..., Any]]:
        for stage in self.stages:
            yield from stage._jobs()


class Chain(Flow[X_contra, R_co]):
    """Stages one after the other."""

    def enqueue(self: Chain[object, R]) -> Handle[R]:
        """Enqueue the runs, all or none; return the handle of the last one, whose result is the chain's."""
        plan, last = self._ending()
        return cast("Handle[R]", _app_of(plan).enqueue_many(plan.orders)[last])

    async def aenqueue(self: Chain[object, R]) -> Handle[R]:
        """Enqueue the runs, all or none, in async code."""
        plan, last = self._ending()
        return cast("Handle[R]", (await _app_of(plan).aenqueue_many(plan.orders))[last])

    def _ending(self) -> tuple[_Plan, int]:
        last: Stage[Any, Any] = self
        while isinstance(last, Chain):
            last = last.stages[-1]
        if isinstance(last, Step):
            plan, (end,) = self._planned()
            return plan, end
        hint = "add a job that takes the list of results, or call enqueue_all()"
        raise Invalid("a chain that ends with a group has no last run", hint=hint)

    def _add(self, plan: _Plan, source: Source) -> Source:
        for stage in self.stages:
            source = stage._add(plan, source)
        return source


class Group(Flow[X_contra, R_co]):
    """Stages side by side, each of which takes the same; the result is the list of theirs."""

    def enqueue(self: Group[object, Sequence[R]]) -> list[Handle[R]]:
        """Enqueue the runs, all or none; return the handle of the last run of each member."""
        plan, ends = self._planned()
        handles = _app_of(plan).enqueue_many(plan.orders)
        return [handles[place] for place in ends]

    async def aenqueue(self: Group[object, Sequence[R]]) -> list[Handle[R]]:
        """Enqueue the runs, all or none, in async code."""
        plan, ends = self._planned()
        handles = await _app_of(plan).aenqueue_many(plan.orders)
        return [handles[place] for place in ends]

    def _add(self, plan: _Plan, source: Source) -> Source:
        return [stage._add(plan, source) for stage in self.stages]


def _app_of(plan: _Plan) -> Rota:
    for app in plan.apps:
        if app is not plan.apps[0]:
            raise Invalid("the jobs of a flow belong to several apps", hint="declare them on one app")
    return plan.apps[0]


@overload
def chain(first: Stage[X, A], /) -> Chain[X, A]: ...
@overload
def chain(first: Stage[X, A], second: Stage[A, B], /) -> Chain[X, B]: ...
@overload
def chain(first: Stage[X, A], second: Stage[A, B], third: Stage[B, C], /) -> Chain[X, C]: ...
@overload
def chain(first: Stage[X, A], second: Stage[A, B], third: Stage[B, C], fourth: Stage[C, D], /) -> Chain[X, D]: ...
@overload
def chain(
    first: Stage[X, A], second: Stage[A, B], third: Stage[B, C], fourth: Stage[C, D], fifth: Stage[D, E], /
) -> Chain[X, E]: ...
@overload
def chain(
    first: Stage[X, Any],
    second: Stage[Any, Any],
    third: Stage[Any, Any],
    fourth: Stage[Any, Any],
    fifth: Stage[Any, Any],
    sixth: Stage[Any, Any],
    /,
    *more: Stage[Any, Any],
) -> Chain[X, Any]: ...
def chain(*stages: Stage[Any, Any]) -> Chain[Any, Any]:
    """Put stages one after the other: `chain(fetch.s(url), parse.s(), store.s("pages"))`.

    Each takes the result of the one before it as its first argument. One that has all its arguments takes nothing, and
    only waits.
    """
    return Chain(stages)


def group(*stages: Stage[X, R]) -> Group[X, list[R]]:
    """Put stages side by side: `chain(group(fetch.s(a), fetch.s(b)), total.s())`; `total` takes the list of results."""
    return Group(stages)
