"""The store's operations on workers: their sign of life, who they are, what operators ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

import msgspec

from rota.core.workers.worker import (
    OperatorRequest,
    Pace,
    Presence,
    Worker,
    WorkerInfo,
    WorkerRun,
    WorkerSettings,
    WorkerState,
    also_asked,
    matching,
    presence,
    read_asked,
    require_heartbeat_within,
    require_one_to_resume,
    write_asked,
)
from rota.store.databases.database import Database, Row, Tx
from rota.store.databases.statements import schema_version
from rota.store.ledger import audit
from rota.values.instants import instant

T = TypeVar("T")

_MOST_RUNS = 20


class WorkerStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(
        self,
        who: str,
        actor: str | None,
        *,
        state: WorkerState | None = None,
        settings: WorkerSettings | None = None,
    ) -> list[Worker]:
        """Ask something of all workers that are meant, or of none. They hear of it with their next heartbeat, and with
        each one after it.
        """

        async def body(tx: Tx) -> list[Worker]:
            # Matched in the transaction that asks: all that are meant, as of one moment, or none.
            ids = matching(who, [(id, name) for id, name in await tx.fetch("worker_names")])
            await ask_workers(tx, ids, actor, state, settings)
            return await list_workers(tx, who)

        return await self._database.transact(body)

    async def beat(self, worker: WorkerInfo) -> None:
        """Save a worker's sign of life, without any lease."""
        await self._database.transact(lambda tx: save_worker(tx, worker))

    async def list(self, who: str | None = None) -> list[Worker]:
        """List workers by name; `who` is an id, the beginning of one, or a name."""
        return await self._database.read(lambda tx: list_workers(tx, who))


async def save_worker(tx: Tx, worker: WorkerInfo) -> str | None:
    """Save a worker's sign of life; return what operators ask of it."""
    pace = worker.pace
    ((request,),) = await tx.fetch(
        "save_worker",
        id=worker.id,
        name=worker.name,
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        queues=_json(worker.queues),
        jobs=_json(worker.jobs),
        slots=worker.slots,
        state=worker.state.value,
        weights=_json(worker.weights) if worker.weights else None,
        settings=None if pace is None else _json(pace),
        asked=worker.asked,
        labels=_json(worker.labels) if worker.labels else None,
        app_version=worker.app_version,
        schema=schema_version(),
    )
    return None if request is None else str(request)


async def ask_workers(
    tx: Tx, ids: Sequence[str], actor: str | None, state: WorkerState | None, settings: WorkerSettings | None
) -> None:
    # Locked, in the order of ids: a request is merged with the one before, and of two operators neither may be lost.
    workers = [
        (id, _pace(pace), read_asked(request)) for id, pace, request in await tx.fetch("lock_workers", _keys(ids))
    ]
    if state is WorkerState.WORKING:
        require_one_to_resume([(id, request) for id, _, request in workers])
    rows = []
    for id, pace, before in workers:
        if settings is not None:
            require_heartbeat_within(_lease(pace), settings)
        after = also_asked(before, state, settings)
        if after != before:
            rows.append((id, write_asked(after)))
    if rows:
        await tx.fetch("ask_workers", rows, actor=actor)
        for id, request in rows:
            await audit.note(tx, "worker", id, "asked", actor, msgspec.json.decode(request))


async def list_workers(tx: Tx, who: str | None = None) -> list[Worker]:
    names = [(id, name) for id, name in await tx.fetch("worker_names")]
    ids = [id for id, _ in names] if who is None else matching(who, names)
    ((now,),) = await tx.fetch("now")
    held: dict[str, list[Row]] = {}
    for id, *run in await tx.fetch("runs_of_workers", _keys(ids), most=_MOST_RUNS):
        held.setdefault(id, []).append(run)
    return [_worker(row, held, int(now)) for row in await tx.fetch("list_workers", _keys(ids))]


def _keys(ids: Sequence[str]) -> list[tuple[str]]:
    return [(id,) for id in ids]


def _worker(row: Row, held_by: Mapping[str, Sequence[Row]], now: int) -> Worker:
    (id, name, host, pid, version, state, queues, weights, jobs, slots, started_at, seen_at, settings, request_text, by,
     labels, app_version) = row  # fmt: skip
    held = held_by.get(id, ())
    pace = _pace(settings)
    alive = presence(seen_at, now, _lease(pace)) is Presence.ALIVE
    weight_of = _read(weights, dict[str, int]) if weights else {}
    return Worker(
        id=id,
        name=name,
        host=host,
        pid=pid,
        version=version,
        state=WorkerState(state) if alive else WorkerState.GONE,
        queues={queue: weight_of.get(queue, 1) for queue in _read(queues, tuple[str, ...])},
        jobs=_read(jobs, tuple[str, ...]),
        slots=slots,
        held=max((int(count) for *_, count in held), default=0),  # each run tells how many there are
        runs=tuple(WorkerRun(str(run), job, attempt, instant(at)) for run, job, attempt, at, _ in held),
        started_at=instant(started_at),
        seen_at=instant(seen_at),
        heartbeat=pace.heartbeat if pace else None,
        poll=pace.poll if pace else None,
        asked=None if request_text is None or (request := read_asked(request_text)) == OperatorRequest() else request,
        asked_by=by,
        labels=_read(labels, tuple[str, ...]) if labels else (),
        app_version=version if app_version is None else app_version,
    )


def _pace(text: str | None) -> Pace | None:
    return None if text is None else _read(text, Pace)


def _lease(pace: Pace | None) -> timedelta | None:
    return pace.lease if pace else None


def _read(text: str, kind: type[T]) -> T:
    return msgspec.json.decode(text, type=kind)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
