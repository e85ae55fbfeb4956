"""`RemoteClient`: the verbs of `Client` over HTTP."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Meta

from rota.client.handle import Handle
from rota.client.jobs.jobs import Reason
from rota.client.own_verbs import OwnVerbs
from rota.client.subscription import Subscription
from rota.config import Config
from rota.core.runs.bulk import BulkResult, Purged, SoFar
from rota.core.runs.options import Order
from rota.core.runs.run import Run, RunFilter
from rota.errors import Invalid, StillRunning, UnknownRun
from rota.remote.access.tokens import RemoteTokens
from rota.remote.alerts.expectations import RemoteExpectations
from rota.remote.alerts.notifications import RemoteNotifications
from rota.remote.changes import RemoteHints
from rota.remote.decode import handle_of, read
from rota.remote.encode import body_of, key_of
from rota.remote.external.external import RemoteExternal
from rota.remote.jobs.data_jobs import RemoteDataJobs
from rota.remote.limits.quotas import RemoteQuotas
from rota.remote.monitoring.attention import RemoteAttention
from rota.remote.monitoring.database import RemoteDatabase
from rota.remote.monitoring.error_groups import RemoteErrorGroups
from rota.remote.monitoring.monitoring import RemoteMonitoring
from rota.remote.problems import Problem, ServerTrouble, raised
from rota.remote.schedules.schedules import RemoteSchedules
from rota.remote.transport import Transport, once, path_of
from rota.remote.verbs import Remote, local
from rota.remote.workers.workers import RemoteWorkers
from rota.values.durations import Duration, format_duration, parse_duration
from rota.values.json import Limits
from rota.verbs.spread import spread

_MOST_LISTED = 500
_LINES = "application/x-ndjson"
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5
_AT_ONCE = 8


class _Enqueued(msgspec.Struct):
    items: list[Run]
    created: list[bool]


R = TypeVar("R", bound=BulkResult)


class _Part(msgspec.Struct):
    """One line of a bulk command's response: its progress, its result, or a problem."""

    progress: BulkResult | None = None
    result: msgspec.Raw = msgspec.Raw()
    code: str | None = None


class RemoteClient(Remote, OwnVerbs):
    """Client of a server. The server takes the actor from the token: an `actor` argument is not sent.

    Each request ends within `timeout`; verbs that wait or follow send several.
    """

    def __init__(self, url: str, token: str | None = None, timeout: Duration = "15s") -> None:
        self._transport = Transport(url, token, timeout)
        self.config = Config()
        """Configuration of this process, not of the server."""
        self._limits = Limits(self.config.max_payload)
        self._changes = RemoteHints(self._transport)
        self.schedules = RemoteSchedules(self._transport, self._limits, self.job, self.time)
        self.workers = RemoteWorkers(self._transport)
        self.tokens = RemoteTokens(self._transport)
        self.monitoring = RemoteMonitoring(self._transport)
        self.attention = RemoteAttention(self._transport)
        self.quotas = RemoteQuotas(self._transport)
        self.external = RemoteExternal(self._transport)
        self.expectations = RemoteExpectations(self._transport)
        self.notifications = RemoteNotifications(self._transport)
        self.data_jobs = RemoteDataJobs(self._transport)
        self.error_groups = RemoteErrorGroups(self._transport)
        self.database = RemoteDatabase(self._transport)

    def __repr__(self) -> str:
        return f"RemoteClient({self._transport.url!r})"

    def __reduce__(self) -> tuple[Callable[..., RemoteClient], tuple[str]]:
        """Pickle the server's address only: a token is a secret, and the process that reads it has its own."""
        return _client_again, (self._transport.url,)

    async def close(self) -> None:
        """Close the client's connections."""
        await self._changes.close()
        await self._transport.close()

    async def __aenter__(self) -> RemoteClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _get(self, *path: str, **query: Any) -> bytes:
        return (await self._transport.ask("GET", path_of(*path), query)).body

    async def _post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> bytes:
        return (await self._transport.ask("POST", path, body=body, headers=headers)).body

    async def metrics(self) -> str:
        """Return the server process's counters and the database's gauges in Prometheus format."""
        return (await self._transport.ask("GET", "/metrics")).body.decode()

    async def check_ready(self) -> None:
        """Raise unless the server and its database answer and the schema fits the server's version."""
        await self._transport.ask("GET", "/readyz")

    async def enqueue(self, order: Order) -> Handle[Any]:
        """Enqueue a run. If the response is lost, the request is repeated under the same idempotency key, so that there
        is one run."""
        body = body_of(order, self._limits)
        answer = await self._transport.ask("POST", path_of("runs"), body=body, headers=once(key_of(order)))
        return handle_of(read(answer.body, Run), self.door or self, created=answer.status == 201)

    async def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]:
        """Enqueue up to 500 runs, all or nothing. Runs of the same call may depend on each other: `after` names the
        `ref` of another."""
        order_list = list(orders)
        if not order_list:
            return []
        if any(key_of(order) is not None for order in order_list):
            raise Invalid("a run in a batch cannot have its own idempotency_key", hint="enqueue it separately")
        body = {"runs": [body_of(order, self._limits) for order in order_list]}
        enqueued = read(await self._post(path_of("runs"), body, once()), _Enqueued)
        door = self.door or self
        return [handle_of(run, door, created=new) for run, new in zip(enqueued.items, enqueued.created, strict=True)]

    async def get_many(self, run_ids: Iterable[str], *, gone_ok: bool = False) -> Sequence[Run]:
        """Return runs by whole ids, in the order given. A missing run raises `UnknownRun`, or is left out with
        `gone_ok`."""
        ids = list(run_ids)
        runs: list[Run] = []

        async def get(id: str) -> list[Run]:
            try:
                return [await self.get(id, steps=False)]
            except UnknownRun:
                if not gone_ok:
                    raise
                return []

        for start in range(0, len(ids), _AT_ONCE):
            for part in await asyncio.gather(*map(get, ids[start : start + _AT_ONCE])):
                runs += part
        return runs

    async def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        """Wait until a run is final and return it; raise `StillRunning` after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + parse_duration(timeout).total_seconds()
        pause = _FIRST_LOOK
        run = await self.get(run_id, steps=False)
        while not run.state.is_final:
            if deadline is not None and time.monotonic() >= deadline:
                raise StillRunning(run.id, run.state)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_LOOK, pause * 1.5)
            run = await self.get(run.id, steps=False)
        return run

    async def cancel_many(
        self,
        run_filter: RunFilter,
        *,
        reason: Reason = None,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """Cancel all matching runs that are not final. If more than `expected` match, raise `BulkMismatch` and change
        nothing."""
        body = {"action": "cancel", "reason": reason, "expected": expected, "everything": everything}
        return await self._send_bulk(run_filter, body, progress, BulkResult)

    async def retry_many(
        self,
        run_filter: RunFilter,
        *,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """Retry all matching runs that did not succeed (unless the filter names states) and have not been retried
        since."""
        body = {"action": "retry", "expected": expected, "everything": everything}
        return await self._send_bulk(run_filter, body, progress, BulkResult)

    async def purge(
        self,
        run_filter: RunFilter,
        *,
        older_than: Annotated[Duration | None, Meta(description="Only runs that ended longer ago")] = None,
        dry_run: bool = False,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> Purged:
        """Delete all matching runs that have ended and that nothing needs, whatever their job's retention."""
        age = format_duration(older_than) if isinstance(older_than, timedelta) else older_than
        body = {"older_than": age, "dry_run": dry_run, "expected": expected, "everything": everything}
        return await self._send_bulk(run_filter, body, progress, Purged, "runs:purge")

    async def _send_bulk(
        self,
        run_filter: RunFilter,
        body: Mapping[str, Any],
        progress: SoFar | None,
        answers: type[R],
        path: str = "runs:bulk",
    ) -> R:
        """Stream a bulk command's progress line by line, so that it may take longer than one request's timeout."""
        request = {**body, "filter": spread(run_filter)}
        async with self._transport.stream("POST", path_of(path), body=request, accept=_LINES) as lines:
            async for line in lines:
                part = read(line, _Part) if line else _Part()
                if part.code is not None:
                    raise raised(read(line, Problem))
                if part.progress is not None and progress is not None:
                    progress(part.progress)
                if result := bytes(part.result):
                    return read(result, answers)
        raise ServerTrouble("the connection to the server was lost", hint="repeat the command: nothing is done twice")

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Subscribe to change hints for topics: `run:<id>`, `runs`, `schedules`, `workers` or `queues`."""
        return self._changes.subscribe(topics)

    def follow(self, run_id: str) -> AsyncGenerator[Run]:
        """Yield the run now, and again whenever its state, progress or log changes, until it is final."""
        return self._changes.follow(partial(self.get, steps=False), run_id)

    def _typed_result(self, run: Run) -> Any:
        """Return the JSON: this process does not have the function, whose annotation would tell the type."""
        return run.result

    list = local(OwnVerbs.list)
    result = local(OwnVerbs.result)


_read_clients: WeakValueDictionary[tuple[str, int], RemoteClient] = WeakValueDictionary()


def _client_again(url: str) -> RemoteClient:
    """Return a client with this process's ROTA_TOKEN, the same for all handles that an event loop reads."""
    client = RemoteClient(url, os.environ.get("ROTA_TOKEN"))
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return client
    # The id of an event loop is not used again while a client has a connection in it.
    return _read_clients.setdefault((url, id(loop)), client)
