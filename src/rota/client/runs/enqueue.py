"""Build runs from orders, check and enqueue them, singly or in batches. Part of `Client`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from rota.client.handle import Door, Handle, Handles
from rota.client.jobs.jobs import JobVerbs
from rota.core.jobs.job import JobDefinition
from rota.core.runs.dependencies import Dependency, link, parts_of, places_of
from rota.core.runs.options import Order, carrying, gates_of, hold_maker, new_run, scope_of
from rota.core.runs.payload import pending_of
from rota.core.runs.run import Enqueued, NewRun, Run
from rota.core.states import RunState
from rota.errors import Forbidden, Invalid
from rota.observability import tracing
from rota.registry.data_jobs import KINDS
from rota.registry.jobs import Handler
from rota.registry.signature import check_schema, without
from rota.values import json
from rota.values.instants import instant
from rota.values.json import Limits
from rota.values.scope import GLOBAL, Scope, scope_text

if TYPE_CHECKING:
    from rota.registry.hooks.enqueue_middleware import EnqueueMiddleware
    from rota.store.databases.batcher import Batcher

Build = Callable[[Order], NewRun]
Find = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""Maps shortened ids to whole ones."""


async def no_parts(parts: Sequence[str]) -> Mapping[str, str]:
    """Refuse shortened ids, where nobody can look them up."""
    for part in parts:
        raise Invalid(
            f"{part!r} is a part of an id", hint="inside your transaction a run follows whole ids, or handles"
        )
    return {}


async def linked(
    find: Find, options: Iterable[Mapping[str, Any]], runs: Sequence[NewRun], *, whole: bool = False
) -> list[NewRun]:
    """Return the runs with their dependencies resolved, each with a later id than those it depends on.

    `whole` also looks up whole ids, because not every existing run may be depended on. Locks on runs are taken in the
    order of ids. When the end of a run ends its dependents, it therefore locks in the same order as their own
    completion does (no deadlock).
    """
    places = places_of(run_options.get("ref") for run_options in options)
    afters = [run.after for run in runs]
    whole_ids = await find(parts_of(afters, places, whole=whole))
    links = link(afters, places, whole_ids)
    ids = dict(zip(links.order, sorted(run.id for run in runs), strict=True))
    # Each follows others, so it is like none.
    return [
        replace(run, id=ids[place], after=_after(links.follows[place], ids), like=None)
        for place, run in enumerate(runs)
    ]


def _after(follows: Mapping[int | str, Dependency], ids: Mapping[int, str]) -> tuple[Dependency, ...]:
    return tuple(
        replace(dependency, run=ids[parent] if isinstance(parent, int) else parent)
        for parent, dependency in follows.items()
    )


_decoded = msgspec.json.Decoder().decode
_UNTOUCHED = Run(
    id="",
    job="",
    job_version=0,
    queue="",
    priority=0,
    scope=GLOBAL,
    key=None,
    state=RunState.QUEUED,
    reason=None,
    fence=0,
    attempt=0,
    max_attempts=0,
    payload=None,
    result=None,
    error=None,
    created_at=instant(0),
    run_at=instant(0),
    started_at=None,
    finished_at=None,
    retry_of=None,
    worker_id=None,
    tags=(),
    metadata={},
)
"""Fields that are empty until a run is claimed. A copy of this takes half the time of a run built with all fields."""


def as_made(run: NewRun, enqueued: Enqueued) -> Run | None:
    """Return a newly enqueued run without reading it, or None if only the database knows it: it existed already, or a
    limit, a requirement or another run decides its state."""
    created_at, run_at = enqueued.created_micros, enqueued.run_micros
    if not enqueued.created or created_at is None or run_at is None:
        return None
    if run.gates or run.after or run.eligibility or run.pipeline or run.retry_of:
        return None
    return built(run, created_at, run_at)


def built(run: NewRun, created_at: int, run_at: int) -> Run:
    """Return the run as it is read once it is stored and nothing has happened to it; times are in µs."""
    at = instant(created_at)
    return replace(
        _UNTOUCHED,
        id=run.id,
        job=run.job,
        job_version=run.job_version,
        queue=run.queue,
        priority=run.priority,
        scope=Scope(run.scope_kind, run.scope_id),
        key=run.key,
        state=RunState.SCHEDULED if run_at > created_at else RunState.QUEUED,
        max_attempts=run.max_attempts,
        payload=_decoded(run.payload),
        created_at=at,
        run_at=at if run_at == created_at else instant(run_at),
        tags=tuple(_decoded(run.tags)) if run.tags else (),
        metadata=_decoded(run.metadata) if run.metadata else {},
    )


def all_as_made(enqueued_runs: Iterable[tuple[NewRun, Enqueued]]) -> list[Run | None]:
    """Return `as_made` of each. Runs prepared from the same model in one batch differ only in id and payload."""
    runs: list[Run | None] = []
    models: dict[tuple[int, int | None, int | None], Run] = {}
    for run, enqueued in enqueued_runs:
        times = id(run.like or run), enqueued.created_micros, enqueued.run_micros
        model = models.get(times) if enqueued.created and run.like else None
        if model is not None:
            runs.append(replace(model, id=run.id, payload=_decoded(run.payload)))
            continue
        built = as_made(run, enqueued)
        if built is not None:
            models[times] = built
        runs.append(built)
    return runs


_NONE: tuple[None, None] = None, None
_REQUEST = {"idempotency_key"}
_MADE_AT_ONCE = {"inputs", "idempotency_key"}
"""Options that no other run of a bulk has."""
_NO_OPTIONS: Mapping[str, Any] = {}


class EnqueueVerbs(JobVerbs):
    """Verbs that enqueue runs."""

    scope: Scope | None
    _limits: Limits
    _traced: bool
    _gatherer: Batcher[NewRun, Enqueued]
    door: Door | None = None
    """The app or blocking client that this client serves: handles ask through it."""
    _builders: dict[tuple[str, bool], tuple[JobDefinition, Build]]
    """Functions that build the next run without options of each job: it differs from the last in id and payload."""

    async def enqueue(self, order: Order) -> Handle[Any]:
        """Enqueue a run and return its handle once it is committed. Concurrent calls share a transaction."""
        if self.registry.around_enqueue is None:
            answer = (await self._traced_enqueue(order))[1]
        else:
            answer = (await self._surrounded_enqueue([order], self.registry.around_enqueue))[0][1]
        handle: Handle[Any] = Handle(answer.id, answer.created, answer.created_micros, answer.run_micros)
        handle.__dict__["door"] = self.door or self  # as `handle_by` does, without a hop on the way of every enqueue
        return handle

    async def _traced_enqueue(self, order: Order) -> tuple[NewRun, Enqueued]:
        if self._traced:
            with tracing.enqueue_span(order.job):
                return await self._enqueue(order)
        return await self._enqueue(order)

    async def _enqueue(self, order: Order) -> tuple[NewRun, Enqueued]:
        run = await self.prepare(order)
        # A run that may be refused gets its own transaction: its refusal must not roll back the batch of other callers.
        if run.may_be_refused or (run.scope_kind != GLOBAL.kind and await self.store.quotas.exist()):
            (answer,) = await self.store.enqueue(await self._linked([order], [run]))
        else:
            answer = await self._gatherer.add(run)
        self.meters.of[run.job, run.queue].enqueued.add(answer.created)
        return run, answer

    async def enqueue_shown(self, orders: Sequence[Order]) -> Sequence[tuple[Run, bool]]:
        """Enqueue runs and return each with whether it is new: as created, or as it is now if it existed. Most need no
        read."""
        if self.registry.around_enqueue is not None:
            pairs = await self._surrounded_enqueue(orders, self.registry.around_enqueue)
        elif len(orders) == 1:
            pairs = [await self._traced_enqueue(orders[0])]
        else:
            pairs = await self._traced_enqueue_many(list(orders))
        runs = all_as_made(pairs)
        unknown = [answer.id for run, (_, answer) in zip(runs, pairs, strict=True) if run is None]
        stored = iter(await self.store.get_runs(unknown) if unknown else ())
        return [(run or next(stored), answer.created) for run, (_, answer) in zip(runs, pairs, strict=True)]

    async def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]:
        """Enqueue several runs, all or nothing. Runs of the same call may depend on each other: `after` names the `ref`
        of another."""
        door = self.door or self
        if self.registry.around_enqueue is not None:
            pairs = await self._surrounded_enqueue(list(orders), self.registry.around_enqueue)
        else:
            pairs = await self._traced_enqueue_many(list(orders))
        return Handles(door, [answer for _, answer in pairs])

    async def _traced_enqueue_many(self, orders: Sequence[Order]) -> Sequence[tuple[NewRun, Enqueued]]:
        if self._traced and orders:
            with tracing.enqueue_span(orders[0].job):
                return await self._enqueue_many(orders)
        return await self._enqueue_many(orders)

    async def _surrounded_enqueue(
        self, orders: Sequence[Order], around: EnqueueMiddleware
    ) -> Sequence[tuple[NewRun, Enqueued]]:
        async with around.entered(orders) as enqueues:
            changed = [enqueue.order for enqueue in enqueues]
            single = len(changed) == 1
            pairs = [await self._traced_enqueue(changed[0])] if single else await self._traced_enqueue_many(changed)
            around.note(enqueues, [answer for _, answer in pairs])
            return pairs

    async def _enqueue_many(self, orders: Sequence[Order]) -> Sequence[tuple[NewRun, Enqueued]]:
        models: dict[tuple[str, int], Build] = {}
        runs: list[NewRun] = []
        related = False
        # Orders of one job and the same options mostly follow each other.
        job, options, build = "", _NO_OPTIONS, None
        for order in orders:
            if order.options is not options or order.job != job:
                job, options = order.job, order.options
                build = models.get((job, id(options)))
            if build is not None:
                runs.append(build(order))
                continue
            run = await self.prepare(order)
            runs.append(run)
            related = related or bool(run.after) or "ref" in options
            handler = self.registry.newest.get(job)
            if handler is not None and _MADE_AT_ONCE.isdisjoint(options):
                build = models[job, id(options)] = self._builder(run, handler, options)
        if related:
            runs = await self._linked(orders, runs)
        answers = await self.store.enqueue(runs) if runs else []
        pairs = list(zip(runs, answers, strict=True))
        for subject, count in Counter([(run.job, run.queue) for run, answer in pairs if answer.created]).items():
            self.meters.of[subject].enqueued.add(count)
        return pairs

    async def _linked(self, orders: Sequence[Order], runs: Sequence[NewRun]) -> list[NewRun]:
        """Resolve dependencies. Within a scope, whole ids are looked up, too: runs of other scopes must not be
        found."""
        options = [order.options for order in orders]
        return await linked(self._find_all, options, runs, whole=self.scope is not None)

    async def _find_all(self, parts: Sequence[str]) -> dict[str, str]:
        return await self.store.find_runs(parts, self.scope)

    async def prepare(self, order: Order) -> NewRun:
        """Build and check a run; write nothing."""
        if self.scope is not None:
            order = _within(self.scope, order)
        handler = self.registry.newest.get(order.job)
        if handler is None:
            return self._of_stored(await self._definition(order.job), order, self.store.new_id())
        run = self._of_declared(handler, order)
        return carrying(run, tracing.traceparent()) if self._traced else run

    def _of_declared(self, handler: Handler, order: Order) -> NewRun:
        definition = handler.definition
        options = order.options
        model = (order.job, bool(options))  # of runs without options, and of those with an idempotency key of their own
        usual = not options or options.keys() == _REQUEST
        built_of, build = self._builders.get(model, _NONE) if usual else _NONE
        if build is not None and built_of is definition:
            return build(order)
        kind = handler.payload
        if "inputs" in order.options:
            kind = kind.without(pending_of(order.options))
        payload = kind.encode(order.arguments, self._limits)
        run = new_run(definition, self.store.new_id(), payload, order.options, self.scope)
        if usual:
            self._builders[model] = definition, self._builder(run, handler, options)
        return run

    def _builder(self, model: NewRun, handler: Handler, options: Mapping[str, Any]) -> Build:
        """Return a function that builds runs of the model's job with the same options, or another idempotency key: only
        id and payload differ, and keys and gates that depend on them."""
        encode, limits, new_id = handler.payload.encode, self._limits, self.store.new_id
        scope = Scope(model.scope_kind, model.scope_id)

        def plain(order: Order) -> NewRun:
            payload = encode(order.arguments, limits)
            return replace(model, id=new_id(), payload=payload, like=model)

        def gated(order: Order) -> NewRun:
            payload = encode(order.arguments, limits)
            gates = gates_of(handler.definition, scope, payload)
            return replace(
                model, id=new_id(), payload=payload, gates=gates, like=model if gates == model.gates else None
            )

        if not model.holds:
            return gated if model.gates else plain
        # A copy: the caller may change the options before the first run is built from them.
        holds_of = hold_maker(handler.definition, scope, model.key, dict(options), self.scope)

        def keyed(order: Order) -> NewRun:
            payload = encode(order.arguments, limits)
            holds = holds_of(payload, order.options.get("idempotency_key"))
            if not model.gates:
                return replace(model, id=new_id(), payload=payload, holds=holds, like=model)
            return replace(gated(order), holds=holds)

        return keyed

    def _of_stored(self, definition: JobDefinition, order: Order, id: str) -> NewRun:
        """Build a run of a job whose code this process does not have."""
        payload = json.encode(order.arguments, self._limits)
        check_schema(without(definition.payload_schema, pending_of(order.options)), payload, self._limits)
        run = new_run(definition, id, payload, order.options, self.scope)
        run = replace(run, droppable=self._is_droppable(definition))
        return carrying(run, tracing.traceparent()) if self._traced else run

    def _checked_payload(self, handler: Handler | None, definition: JobDefinition, arguments: dict[str, Any]) -> str:
        """Encode a payload, checked by the job's function, or by its stored schema without one."""
        if handler is not None:
            return handler.payload.encode(arguments, self._limits)
        payload = json.encode(arguments, self._limits)
        check_schema(definition.payload_schema, payload, self._limits)
        return payload

    def _is_droppable(self, definition: JobDefinition) -> bool:
        """Return whether the job may be a data job, which somebody may delete. Jobs in code are never deleted."""
        return definition.kind in KINDS and definition.name not in self.registry.newest


def _within(scope: Scope, order: Order) -> Order:
    """Return the order within the client's scope. It need not name the scope, and must not name another."""
    if scope_of(order.options.get("scope", scope)) != scope:
        raise Forbidden(f"only runs of {scope_text(scope)} may be enqueued here")
    return Order(order.job, order.arguments, {**order.options, "scope": (scope.kind, scope.id)})
