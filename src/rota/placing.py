"""Orders become runs: checked, enqueued one by one or together, and known as they were made. Part of `Client`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota import tracing
from rota.core import jsonvalue
from rota.core.jsonvalue import Limits
from rota.core.model import Enqueued, JobDefinition, NewRun, Run
from rota.core.orders import Order
from rota.core.placing import all_as_made
from rota.core.publishing import carrying, gates_of, new_run, scope_of
from rota.core.scope import Scope
from rota.errors import Forbidden
from rota.governing import Governing
from rota.linking import linked
from rota.registry.data_jobs import KINDS
from rota.registry.signature import check_schema
from rota.store.gathering import Gatherer

_NONE: tuple[None, None] = None, None


class Placing(Governing):
    scope: Scope | None
    _limits: Limits
    _traced: bool
    _gatherer: Gatherer[NewRun, Enqueued]
    _models: dict[str, tuple[JobDefinition, NewRun]]
    """By job, the last run without options: the next one differs in little."""

    async def enqueue(self, order: Order) -> Enqueued:
        """Callers that enqueue at the same moment share a transaction; each is answered when it is committed."""
        return (await self._placed(order))[1]

    async def _placed(self, order: Order) -> tuple[NewRun, Enqueued]:
        if self._traced:
            with tracing.enqueue_span(order.job):
                return await self._enqueue(order)
        return await self._enqueue(order)

    async def _enqueue(self, order: Order) -> tuple[NewRun, Enqueued]:
        run = await self.prepare(order)
        if run.may_be_refused or await self.store.quotas.concern([run]):  # it must not spoil it for others
            (answer,) = await self.store.enqueue(await self._linked([order], [run]))
        else:
            answer = await self._gatherer.add(run)
        self.meters.enqueued.add(answer.created)
        return run, answer

    async def enqueue_shown(self, orders: Sequence[Order]) -> Sequence[tuple[Run, bool]]:
        """Enqueued, one or all of many: each run as it was made, or as it stands if it was there, and whether it is
        new. Most of them are known without being asked for."""
        placed = [await self._placed(orders[0])] if len(orders) == 1 else await self._placed_many(list(orders))
        made = all_as_made(placed)
        unknown = [answer.id for run, (_, answer) in zip(made, placed, strict=True) if run is None]
        asked = iter(await self.store.get_runs(unknown) if unknown else ())
        return [(run or next(asked), answer.created) for run, (_, answer) in zip(made, placed, strict=True)]

    async def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Enqueued]:
        """All or nothing. Runs that have a `ref` may be followed by others of the same call (`after`)."""
        return [answer for _, answer in await self._placed_many(list(orders))]

    async def _placed_many(self, kept: Sequence[Order]) -> Sequence[tuple[NewRun, Enqueued]]:
        """While the orders live, no two options share an id."""
        if self._traced and kept:
            with tracing.enqueue_span(kept[0].job):
                return await self._enqueue_many(kept)
        return await self._enqueue_many(kept)

    async def _enqueue_many(self, kept: Sequence[Order]) -> Sequence[tuple[NewRun, Enqueued]]:
        models: dict[tuple[str, int], NewRun] = {}
        runs: list[NewRun] = []
        for order in kept:
            model = models.get((order.job, id(order.options)))
            if model is None or model.holds or order.job not in self.registry:
                model = models[order.job, id(order.options)] = await self.prepare(order)
                runs.append(model)
            else:
                runs.append(self._another(model, order))
        if any(model.after for model in models.values()) or any("ref" in order.options for order in kept):
            runs = await self._linked(kept, runs)
        answers = await self.store.enqueue(runs) if runs else []
        self.meters.enqueued.add(sum([answer.created for answer in answers]))
        return list(zip(runs, answers, strict=True))

    async def _linked(self, orders: Sequence[Order], runs: Sequence[NewRun]) -> list[NewRun]:
        """Within one scope whole ids are looked for, too: a run of another is none that can be followed."""
        options = [order.options for order in orders]
        return await linked(self._find_all, options, runs, whole=self.scope is not None)

    async def _find_all(self, parts: Sequence[str]) -> dict[str, str]:
        return await self.store.find_runs(parts, self.scope)

    def _another(self, model: NewRun, order: Order) -> NewRun:
        """Orders that share their job and options differ in id and payload only, unless a key depends on it."""
        handler = self.registry.newest(order.job)
        payload = handler.payload.encode(order.arguments, self._limits)
        gates = model.gates and gates_of(handler.definition, Scope(model.scope_kind, model.scope_id), payload)
        like = model if gates == model.gates else None
        return msgspec.structs.replace(model, id=self.store.new_id(), payload=payload, gates=gates, like=like)

    def _prepared(self, order: Order) -> NewRun:
        handler = self.registry.newest(order.job)
        definition = handler.definition
        known, model = self._models.get(order.job, _NONE)
        if model is not None and known is definition and not order.options:
            return self._another(model, order)
        payload = handler.payload.encode(order.arguments, self._limits)
        run = new_run(definition, self.store.new_id(), payload, order.options, self.scope)
        if not order.options and not run.holds:
            self._models[order.job] = definition, run
        return run

    async def prepare(self, order: Order) -> NewRun:
        """Checked completely; nothing is written."""
        order = _within(self.scope, order)
        if order.job in self.registry:
            run = self._prepared(order)
            return carrying(run, tracing.traceparent()) if self._traced else run
        return self._of_stored(await self.job(order.job), order, self.store.new_id())

    def _of_stored(self, definition: JobDefinition, order: Order, id: str) -> NewRun:
        """Of a job that this process has no code for."""
        payload = jsonvalue.encode(order.arguments, self._limits)
        check_schema(definition.payload_schema, payload, self._limits)
        run = new_run(definition, id, payload, order.options, self.scope)
        run = msgspec.structs.replace(run, droppable=self._is_droppable(definition))
        return carrying(run, tracing.traceparent()) if self._traced else run

    def _is_droppable(self, definition: JobDefinition) -> bool:
        """Whether it may be a job that a command made, and another may drop: of code, jobs are only added."""
        return definition.kind in KINDS and definition.name not in self.registry


def _within(scope: Scope | None, order: Order) -> Order:
    """Whoever is for one scope only need not name it, and may name no other."""
    if scope is None:
        return order
    if scope_of(order.options.get("scope", scope)) != scope:
        raise Forbidden(f"only runs of {scope.kind}/{scope.id} may be enqueued here")
    return Order(order.job, order.arguments, {**order.options, "scope": (scope.kind, scope.id)})
