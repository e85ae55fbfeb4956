"""The verbs of `Client`, asked of a server over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.client.schedules.definition import require_limit
from rota.client.subscription import Subscription
from rota.config import Config
from rota.core.ledger.audit import Event
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.progress.notes import LogLine, Progress, checked_count, progress_of
from rota.core.progress.steps import Step
from rota.core.runs.bulk import BulkResult, Counted, SoFar
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.options import Order
from rota.core.runs.run import Attempt, Enqueued, Run, RunFilter
from rota.core.runs.search import RunPage
from rota.core.states import RunState
from rota.core.workers.replicas import Replica
from rota.errors import Invalid, StillRunning, UnknownRun
from rota.remote.access.tokens import RemoteTokens
from rota.remote.alerts.expectations import RemoteExpectations
from rota.remote.alerts.notifications import RemoteNotifications
from rota.remote.changes import RemoteHints
from rota.remote.decode import enqueued_of, event_of, items, read
from rota.remote.encode import body_of, cursor_of_run, filter_of, key_of, query_of, run_of_cursor
from rota.remote.external.external import RemoteExternal
from rota.remote.jobs.data_jobs import RemoteDataJobs
from rota.remote.jobs.jobs import RemoteJobs
from rota.remote.limits.quotas import RemoteQuotas
from rota.remote.monitoring.error_groups import RemoteErrorGroups
from rota.remote.monitoring.monitoring import RemoteMonitoring
from rota.remote.problems import NotOffered, Problem, ServerTrouble, raised
from rota.remote.schedules.schedules import RemoteSchedules
from rota.remote.transport import Transport, once, path_of
from rota.remote.workers.workers import RemoteWorkers
from rota.values.durations import Duration, parse_duration
from rota.values.json import Limits

_MOST_LISTED = 500
_MOST_COUNTED = 1_000_000
_LINES = "application/x-ndjson"
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5
_AT_ONCE = 8


class _Now(msgspec.Struct):
    now: datetime


class _Next(msgspec.Struct):
    next_cursor: str | None = None


class _Enqueued(msgspec.Struct):
    items: list[Run]
    created: list[bool]


class _Part(msgspec.Struct):
    """A line of a bulk command's answer: how far it is, what came of it, or why nothing did."""

    progress: BulkResult | None = None
    result: BulkResult | None = None
    code: str | None = None


class RemoteClient(RemoteJobs):
    """Every question and command there is, to a server. Who asks is known by the token: an `actor` is not sent.

    Each call ends within `timeout`; what waits or follows does so call by call.
    """

    def __init__(self, url: str, token: str | None = None, timeout: Duration = "15s") -> None:
        self._transport = Transport(url, token, timeout)
        self.config = Config()
        """Of this process, not the server's."""
        self._limits = Limits(self.config.max_payload)
        self._hints = RemoteHints(self._transport)
        self.schedules = RemoteSchedules(self._transport, self._limits, self.job, self.time)
        self.workers = RemoteWorkers(self._transport)
        self.tokens = RemoteTokens(self._transport)
        self.monitoring = RemoteMonitoring(self._transport)
        self.quotas = RemoteQuotas(self._transport)
        self.external = RemoteExternal(self._transport, self._limits)
        self.expectations = RemoteExpectations(self._transport)
        self.notifications = RemoteNotifications(self._transport)
        self.data_jobs = RemoteDataJobs(self._transport)
        self.error_groups = RemoteErrorGroups(self._transport)

    def __repr__(self) -> str:
        return f"RemoteClient({self._transport.url!r})"

    async def close(self) -> None:
        await self._hints.close()
        await self._transport.close()

    async def __aenter__(self) -> RemoteClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, *path: str, **query: Any) -> bytes:
        return (await self._transport.ask("GET", path_of(*path), query)).body

    async def _tell(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> bytes:
        return (await self._transport.ask("POST", path, body=body, headers=headers)).body

    async def time(self) -> datetime:
        return read(await self._ask("time"), _Now).now

    async def metrics(self) -> str:
        """For Prometheus: what the server's process has counted, and how full the database is."""
        return (await self._transport.ask("GET", "/metrics")).body.decode()

    async def check_ready(self) -> None:
        """Raises unless the server answers, its database does, and its schema is the server's."""
        await self._transport.ask("GET", "/readyz")

    async def enqueue(self, order: Order) -> Enqueued:
        """Sent again under the same key if the answer is lost: there will be one run."""
        body = body_of(order, self._limits)
        answer = await self._transport.ask("POST", path_of("runs"), body=body, headers=once(key_of(order)))
        return enqueued_of(read(answer.body, Run), created=answer.status == 201)

    async def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Enqueued]:
        """All or nothing, 500 at most. Runs that have a `ref` may be followed by others of the same call (`after`)."""
        kept = list(orders)
        if not kept:
            return []
        if any(key_of(order) is not None for order in kept):
            raise Invalid("one of many runs cannot have an idempotency_key of its own", hint="enqueue it by itself")
        body = {"runs": [body_of(order, self._limits) for order in kept]}
        made = read(await self._tell(path_of("runs"), body, once()), _Enqueued)
        return [enqueued_of(run, created=new) for run, new in zip(made.items, made.created, strict=True)]

    async def get(self, run_id: str) -> Run:
        return read(await self._ask("runs", run_id, steps=False), Run)

    async def get_many(self, run_ids: Iterable[str], *, gone_ok: bool = False) -> Sequence[Run]:
        """By whole ids, in their order. `UnknownRun` if one is not there; with `gone_ok` it is left out."""
        wanted = list(run_ids)
        found: list[Run] = []

        async def get(id: str) -> list[Run]:
            try:
                return [await self.get(id)]
            except UnknownRun:
                if not gone_ok:
                    raise
                return []

        for place in range(0, len(wanted), _AT_ONCE):
            for one in await asyncio.gather(*map(get, wanted[place : place + _AT_ONCE])):
                found += one
        return found

    async def list(self, wanted: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> list[Run]:
        """Newest first, as many as there are up to `limit`, however long that takes; `page` stops looking in time."""
        found = await self.page(wanted, limit=limit, before=before)
        runs = list(found.runs)
        while found.next is not None and len(runs) < limit:
            found = await self.page(wanted, limit=limit - len(runs), before=found.next)
            runs += found.runs
        return runs

    async def page(self, wanted: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> RunPage:
        """As `list`, but within a moment: so it may be short, and say where to go on."""
        require_limit(limit, _MOST_LISTED)
        query = {**query_of(wanted or RunFilter()), "limit": limit, "cursor": cursor_of_run(before)}
        body = await self._ask("runs", **query)
        return RunPage(items(body, Run), run_of_cursor(read(body, _Next).next_cursor))

    async def attempts(self, run_id: str) -> Sequence[Attempt]:
        return items(await self._ask("runs", run_id, "attempts"), Attempt)

    async def steps(self, run_id: str) -> Sequence[Step]:
        """Those that its job declares, and those that it has opened."""
        return items(await self._ask("runs", run_id, "steps"), Step)

    async def progress(self, run_id: str) -> Progress:
        """How far it says it is; if it only has steps, how many of them are over."""
        run = read(await self._ask("runs", run_id), Run)
        return run.progress or progress_of(None, [], run.state)

    async def logs(self, run_id: str, *, after: str | None = None, last: int | None = None) -> Sequence[LogLine]:
        """What its attempts have logged, oldest first, a page at a time: `after` is the cursor of the last line seen.

        `last`: only so many lines from the end.
        """
        wanted = None if last is None else checked_count(last, "last")
        return items(await self._ask("runs", run_id, "logs", after=after, last=wanted), LogLine)

    async def parents(self, run_id: str) -> Sequence[RelatedRun]:
        """The runs that it follows, or has followed, in the order given."""
        return items(await self._ask("runs", run_id, "parents"), RelatedRun)

    async def children(self, run_id: str) -> Sequence[RelatedRun]:
        """The runs that follow it, the oldest first."""
        return items(await self._ask("runs", run_id, "children"), RelatedRun)

    async def replicas(self, run_id: str) -> Sequence[Replica]:
        """Those of a run that several workers do, each a run of its own: whose it is, and how far."""
        return items(await self._ask("runs", run_id, "replicas"), Replica)

    async def restrict(self, run_id: str, only_workers: Sequence[str] | None, *, actor: str | None = None) -> Run:
        """Only workers of these names may have it; None: of any name. From others that have it, it is taken away."""
        names = None if only_workers is None else [*only_workers]
        return read(await self._tell(path_of("runs", run_id, "restrict"), {"only_workers": names}), Run)

    async def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        """The run once it is final; `StillRunning` after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + parse_duration(timeout).total_seconds()
        rest = _FIRST_LOOK
        run = await self.get(run_id)
        while not run.state.is_final:
            if deadline is not None and time.monotonic() >= deadline:
                raise StillRunning(run.id, run.state)
            await asyncio.sleep(rest)
            rest = min(_LONGEST_LOOK, rest * 1.5)
            run = await self.get(run.id)
        return run

    async def cancel(self, run_id: str, *, reason: str | None = None, actor: str | None = None) -> RunState:
        return read(await self._tell(path_of("runs", run_id, "cancel"), {"reason": reason}), Run).state

    async def retry(
        self,
        run_id: str,
        *,
        keep_steps: bool = False,
        from_step: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Enqueued:
        """A new run of the same work; the old one stays as it ended. An active holder of its key is a conflict.

        `keep_steps`: what its steps have done is not done again; with `from_step`, only what they did before that one.
        With an `idempotency_key` it may be asked again: the answer is the run that was made the first time.
        """
        body = {"keep_steps": keep_steps, "from_step": from_step}
        path, keyed = path_of("runs", run_id, "retry"), once(idempotency_key)
        answer = await self._transport.ask("POST", path, body=body, headers=keyed)
        return enqueued_of(read(answer.body, Run), created=answer.status == 201)

    async def count(
        self, wanted: RunFilter | None = None, *, most: int = 10_000, within: Duration | None = None
    ) -> Counted:
        """How many runs match; it stops counting at `most`, or after a second, whatever `within` says."""
        if most < 1:
            raise Invalid(f"most must be 1 or more, not {most}")
        query = {**query_of(wanted or RunFilter()), "most": min(most, _MOST_COUNTED)}
        return read(await self._ask("runs:count", **query), Counted)

    async def cancel_many(
        self,
        wanted: RunFilter,
        *,
        reason: str | None = None,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """All that match and have not ended. `BulkMismatch`, and nothing is done, if they are more than `expected`."""
        body = {"action": "cancel", "reason": reason, "expected": expected, "everything": everything}
        return await self._bulk(wanted, body, progress)

    async def retry_many(
        self,
        wanted: RunFilter,
        *,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """All that match, did not go well (unless the filter says otherwise) and were not retried since."""
        return await self._bulk(wanted, {"action": "retry", "expected": expected, "everything": everything}, progress)

    async def _bulk(self, wanted: RunFilter, body: Mapping[str, Any], progress: SoFar | None) -> BulkResult:
        """Told line by line, so that many may take longer than a call does."""
        whole = {**body, "filter": filter_of(wanted)}
        async with self._transport.stream("POST", path_of("runs:bulk"), body=whole, accept=_LINES) as lines:
            async for line in lines:
                part = read(line, _Part) if line else _Part()
                if part.code is not None:
                    raise raised(read(line, Problem))
                if part.progress is not None and progress is not None:
                    progress(part.progress)
                if part.result is not None:
                    return part.result
        raise ServerTrouble("the server went away in the middle", hint="ask again: what is done is not done twice")

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Hints that something changed: of `run:<id>`, or of any of the `runs`, `schedules`, `workers`, `queues`."""
        return self._hints.subscribe(topics)

    def follow(self, run_id: str) -> AsyncGenerator[Run]:
        """The run now, and each time that it has changed or said something, until it is final."""
        return self._hints.follow(self.get, run_id)

    async def explain(self, run_id: str) -> Explanation:
        """Why a run is in the state that it is in."""
        return read(await self._ask("runs", run_id, "explain"), Explanation)

    async def events(self, run_id: str) -> Sequence[Event]:
        """Every change of a run's state, the oldest first: when, by whom, under which fence."""
        return [event_of(one) for one in items(await self._ask("runs", run_id, "events"), dict[str, Any])]

    async def audit(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> Sequence[Event]:
        """What people and policies did, the newest first; `before` is the last `seq` of the page before.

        `subject` is the whole id of a run or a worker, or the name of a job, a schedule or a queue.
        """
        require_limit(limit, _MOST_LISTED)
        query = {"kind": kind, "subject": subject, "actor": actor, "limit": limit, "cursor": before}
        return [event_of(one) for one in items(await self._ask("audit", **query), dict[str, Any])]

    async def prune(self) -> int:
        raise NotOffered("client.prune")
