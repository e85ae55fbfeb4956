"""What clients do: an entry of the script becomes calls, and the diary keeps the answers."""

from __future__ import annotations

import asyncio
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rota.client.client import Order
from rota.core.runs.run import RunFilter
from tests.simulation.application.jobs import STEPPED
from tests.simulation.application.pipelines import PIPELINES
from tests.simulation.clients import dependencies, external, jobs, quotas
from tests.simulation.clients.calls import ask, pick
from tests.simulation.clients.triggers import trigger_of
from tests.simulation.script import entries
from tests.simulation.script.entries import (
    AddSchedule,
    Answer,
    Bulk,
    Cancel,
    ChangeJob,
    ChangeSchedule,
    Command,
    Coordination,
    Enqueue,
    ExternalWorker,
    Family,
    Hold,
    Restrict,
    RetryByHand,
    SetQuota,
)

if TYPE_CHECKING:
    from tests.simulation.world.processes import ClientProcess

_IN_STEPS = (*STEPPED, *PIPELINES)


async def perform(process: ClientProcess, entry: Command, place: int) -> None:
    match entry:
        case Enqueue():
            await _enqueue(process, entry, place)
        case Cancel():
            await _cancel(process, entry)
        case RetryByHand():
            await (_retry_keeping if entry.keep else _retry)(process, entry)
        case Bulk():
            await _bulk(process, entry)
        case AddSchedule():
            await _add(process, entry, place)
        case ChangeSchedule():
            await _change(process, entry)
        case ChangeJob():
            await jobs.change(process, entry, place)
        case Hold():
            await _hold(process, entry)
        case entries.Order():
            await _order(process, entry)
        case _:
            await _coordination(process, entry, place)


async def _coordination(process: ClientProcess, entry: Coordination, place: int) -> None:
    match entry:
        case Family():
            await dependencies.enqueue_family(process, entry, place)
        case Answer():
            await external.answer(process, entry)
        case ExternalWorker():
            await external.outsider(process, entry)
        case Restrict():
            await dependencies.restrict(process, entry)
        case SetQuota():
            await quotas.set_quota(process, entry)


async def _enqueue(process: ClientProcess, entry: Enqueue, place: int) -> None:
    client = process.client
    orders = [
        Order(entry.job, {"n": _number(entry, place) + copy, "acts": entry.acts}, dict(entry.options))
        for copy in range(entry.copies)
    ]
    what = f"{entry.job} x {entry.copies} {entry.options or ''} {entry.acts}"
    keyed = "idempotency_key" in entry.options

    async def act() -> list[tuple[str, bool]]:
        if entry.copies > 1:
            return [(one.id, one.created) for one in await client.enqueue_many(orders)]
        one = await client.enqueue(orders[0])
        return [(one.id, one.created)]

    asked = {"scope": tuple(entry.options["scope"]), "copies": entry.copies} if "scope" in entry.options else {}
    await ask(process, "enqueue", what, act, insist=keyed, options=asked)


def _number(entry: Enqueue, place: int) -> int:
    """Names the order; under the same key it is the same one."""
    key = entry.options.get("idempotency_key")
    return place * 100 if key is None else 1_000_000 + 100 * zlib.crc32(key.encode())


async def _cancel(process: ClientProcess, entry: Cancel) -> None:
    run_id = pick(process.world, entry.pick, final=False, at_work=entry.at_work)
    if run_id is not None:
        await ask(
            process,
            "cancel",
            run_id,
            lambda: process.client.cancel(run_id, reason="drawn", actor=process.name),
            insist=True,
        )


async def _retry(process: ClientProcess, entry: RetryByHand) -> None:
    run_id = pick(process.world, entry.pick, final=True)
    if run_id is not None:

        async def act() -> str:
            return (await process.client.retry(run_id, actor=process.name)).id

        await ask(process, "retry", run_id, act)


async def _retry_keeping(process: ClientProcess, entry: RetryByHand) -> None:
    """Of runs that work in steps: all that was done, or what was done before one of the steps."""
    world = process.world
    known = [id for id, seen in sorted(world.observer.runs.items()) if seen.end and seen.job in _IN_STEPS]
    if not known:
        return
    run_id = known[int(entry.pick * len(known))]
    steps = sorted(world.note_observer.steps_of(run_id))
    options: dict[str, Any] = {"keep_steps": True}
    if steps and entry.begin is not None:
        options["from_step"] = steps[int(entry.begin * len(steps))]

    async def act() -> str:
        return (await process.client.retry(run_id, **options, actor=process.name)).id

    await ask(process, "retry", run_id, act, options=options)


async def _bulk(process: ClientProcess, entry: Bulk) -> None:
    wanted = RunFilter(job=entry.job)

    async def act() -> tuple[int, int]:
        if entry.verb == "cancel":
            told = await process.client.cancel_many(wanted, reason="drawn", actor=process.name)
        else:
            told = await process.client.retry_many(wanted, actor=process.name)
        return told.matched, told.done

    await ask(process, f"{entry.verb}_many", entry.job, act, insist=True)


async def _add(process: ClientProcess, entry: AddSchedule, place: int) -> None:
    options = dict(entry.options)
    if isinstance(options.get("scopes"), list):
        options["scopes"] = [tuple(scope) for scope in options["scopes"]]
    payload = {"n": place * 100, "acts": entry.acts}

    async def act() -> str:
        made = await process.client.schedules.create(
            entry.name, entry.job, trigger_of(entry.trigger), payload=payload, **options
        )
        return made.name

    await ask(process, "schedule", f"{entry.name} {entry.trigger} {entry.options}", act)


async def _change(process: ClientProcess, entry: ChangeSchedule) -> None:
    schedules, name, options = process.client.schedules, entry.name, dict(entry.options)

    async def act() -> Any:
        if entry.verb == "update":
            if "trigger" in options:
                options["trigger"] = trigger_of(options["trigger"])
            return (await schedules.update(name, **options)).revision
        if entry.verb == "backfill":
            now = await process.client.time()
            from_at = now - timedelta(seconds=options["back"])
            return (await schedules.backfill(name, from_at, now, ran=options["again"], actor=process.name)).count
        answer = await getattr(schedules, entry.verb)(name, **options, actor=process.name)
        return getattr(answer, "revision", answer)

    await ask(process, entry.verb, f"{name} {entry.options or ''}", act)


async def _hold(process: ClientProcess, entry: Hold) -> None:
    client = process.client

    async def pause() -> None:
        await (client.pause_queue(entry.name, force=True) if entry.kind == "queue" else client.pause_job(entry.name))

    async def resume() -> None:
        if entry.kind == "queue":
            await client.resume_queue(entry.name)
        else:
            await client.resume_job(entry.name, catch_up=entry.catch_up)

    await ask(process, f"pause {entry.kind}", entry.name, pause, insist=True)
    await asyncio.sleep(entry.span)
    await ask(process, f"resume {entry.kind}", entry.name, resume, insist=True)


async def _order(process: ClientProcess, entry: entries.Order) -> None:
    workers = process.client.workers

    async def act() -> list[str]:
        give = workers.drain if entry.verb == "drain" else workers.resume
        return [worker.id for worker in await give(entry.engine, actor=process.name)]

    await ask(process, entry.verb, entry.engine, act, insist=True)
