"""`RemoteClient`: the verbs of `Client` over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rota.client.jobs.jobs import JobVerbs
from rota.client.monitoring.audit import AuditVerbs
from rota.client.monitoring.health import HealthVerbs
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
from rota.remote.limits.quotas import RemoteQuotas
from rota.remote.monitoring.error_groups import RemoteErrorGroups
from rota.remote.monitoring.monitoring import RemoteMonitoring
from rota.remote.problems import NotOffered, Problem, ServerTrouble, raised
from rota.remote.schedules.schedules import RemoteSchedules
from rota.remote.transport import Transport, once, path_of
from rota.remote.verbs import Remote
from rota.remote.workers.workers import RemoteWorkers
from rota.values.durations import Duration, parse_duration
from rota.values.json import Limits

_MOST_LISTED = 500
_MOST_COUNTED = 1_000_000
_LINES = "application/x-ndjson"
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5
_AT_ONCE = 8


class _Next(msgspec.Struct):
    next_cursor: str | None = None


class _Enqueued(msgspec.Struct):
    items: list[Run]
    created: list[bool]


class _Part(msgspec.Struct):
    """One line of a bulk command's response: its progress, its result, or a problem."""

    progress: BulkResult | None = None
    result: BulkResult | None = None
    code: str | None = None


class RemoteClient(Remote, JobVerbs, AuditVerbs, HealthVerbs):
    """Client of a server. The server takes the actor from the token: an `actor` argument is not sent.

    Each request ends within `timeout`; verbs that wait or follow send several.
    """

    def __init__(self, url: str, token: str | None = None, timeout: Duration = "15s") -> None:
        self._transport = Transport(url, token, timeout)
        self.config = Config()
        """Configuration of this process, not of the server."""
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
        """Close the client's connections."""
        await self._hints.close()
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

    async def enqueue(self, order: Order) -> Enqueued:
        """Enqueue a run. If the response is lost, the request is repeated under the same idempotency key, so that there
        is one run."""
        body = body_of(order, self._limits)
        answer = await self._transport.ask("POST", path_of("runs"), body=body, headers=once(key_of(order)))
        return enqueued_of(read(answer.body, Run), created=answer.status == 201)

    async def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Enqueued]:
        """Enqueue up to 500 runs, all or nothing. Runs of the same call may depend on each other: `after` names the
        `ref` of another."""
        order_list = list(orders)
        if not order_list:
            return []
        if any(key_of(order) is not None for order in order_list):
            raise Invalid("a run in a batch cannot have its own idempotency_key", hint="enqueue it separately")
        body = {"runs": [body_of(order, self._limits) for order in order_list]}
        enqueued = read(await self._post(path_of("runs"), body, once()), _Enqueued)
        return [enqueued_of(run, created=new) for run, new in zip(enqueued.items, enqueued.created, strict=True)]

    async def get(self, run_id: str) -> Run:
        """Return a run by its id, or by the unique beginning or end of one."""
        return read(await self._get("runs", run_id, steps=False), Run)

    async def get_many(self, run_ids: Iterable[str], *, gone_ok: bool = False) -> Sequence[Run]:
        """Return runs by whole ids, in the order given. A missing run raises `UnknownRun`, or is left out with
        `gone_ok`."""
        ids = list(run_ids)
        runs: list[Run] = []

        async def get(id: str) -> list[Run]:
            try:
                return [await self.get(id)]
            except UnknownRun:
                if not gone_ok:
                    raise
                return []

        for start in range(0, len(ids), _AT_ONCE):
            for part in await asyncio.gather(*map(get, ids[start : start + _AT_ONCE])):
                runs += part
        return runs

    async def list(
        self, run_filter: RunFilter | None = None, *, limit: int = 50, before: str | None = None
    ) -> list[Run]:
        """List matching runs, newest first, up to `limit`, however long the search takes; `page` stops early."""
        page = await self.page(run_filter, limit=limit, before=before)
        runs = list(page.runs)
        while page.next is not None and len(runs) < limit:
            page = await self.page(run_filter, limit=limit - len(runs), before=page.next)
            runs += page.runs
        return runs

    async def page(self, run_filter: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> RunPage:
        """List matching runs like `list`, but stop searching after a quarter of a second. The page may then be short;
        `next` says where to continue."""
        require_limit(limit, _MOST_LISTED)
        query = {**query_of(run_filter or RunFilter()), "limit": limit, "cursor": cursor_of_run(before)}
        body = await self._get("runs", **query)
        return RunPage(items(body, Run), run_of_cursor(read(body, _Next).next_cursor))

    async def attempts(self, run_id: str) -> Sequence[Attempt]:
        """List the attempts of a run, oldest first."""
        return items(await self._get("runs", run_id, "attempts"), Attempt)

    async def steps(self, run_id: str) -> Sequence[Step]:
        """List the steps that a run's job declares and those that the run has opened."""
        return items(await self._get("runs", run_id, "steps"), Step)

    async def progress(self, run_id: str) -> Progress:
        """Return the progress that a run has reported; if it only has steps, derive it from those that are over."""
        run = read(await self._get("runs", run_id), Run)
        return run.progress or progress_of(None, [], run.state)

    async def logs(self, run_id: str, *, after: str | None = None, last: int | None = None) -> Sequence[LogLine]:
        """List log lines of a run's attempts, oldest first, one page at a time. `after` is the cursor of the last line
        seen.

        `last` returns only that many lines from the end.
        """
        count = None if last is None else checked_count(last, "last")
        return items(await self._get("runs", run_id, "logs", after=after, last=count), LogLine)

    async def parents(self, run_id: str) -> Sequence[RelatedRun]:
        """List the runs that a run depends on, in the order given."""
        return items(await self._get("runs", run_id, "parents"), RelatedRun)

    async def children(self, run_id: str) -> Sequence[RelatedRun]:
        """List the runs that depend on a run, oldest first."""
        return items(await self._get("runs", run_id, "children"), RelatedRun)

    async def replicas(self, run_id: str) -> Sequence[Replica]:
        """List the replicas of a run that several workers execute. Each is a run of its own, with its worker and
        state."""
        return items(await self._get("runs", run_id, "replicas"), Replica)

    async def restrict(self, run_id: str, only_workers: Sequence[str] | None, *, actor: str | None = None) -> Run:
        """Let only workers with these names execute the run; None lifts the restriction. If another worker is executing
        it, it loses the run."""
        names = None if only_workers is None else [*only_workers]
        return read(await self._post(path_of("runs", run_id, "restrict"), {"only_workers": names}), Run)

    async def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        """Wait until a run is final and return it; raise `StillRunning` after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + parse_duration(timeout).total_seconds()
        pause = _FIRST_LOOK
        run = await self.get(run_id)
        while not run.state.is_final:
            if deadline is not None and time.monotonic() >= deadline:
                raise StillRunning(run.id, run.state)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_LOOK, pause * 1.5)
            run = await self.get(run.id)
        return run

    async def cancel(self, run_id: str, *, reason: str | None = None, actor: str | None = None) -> RunState:
        """Cancel a run, or ask its worker to stop it; return its new state."""
        return read(await self._post(path_of("runs", run_id, "cancel"), {"reason": reason}), Run).state

    async def retry(
        self,
        run_id: str,
        *,
        keep_steps: bool = False,
        from_step: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Enqueued:
        """Enqueue a copy of a final run and leave the old run as it is. Raise `Conflict` if an active run holds its
        unique key.

        `keep_steps` reuses the results of completed steps; `from_step` reuses only those before that step. With an
        `idempotency_key` the call is safe to repeat: it returns the run created the first time.
        """
        body = {"keep_steps": keep_steps, "from_step": from_step}
        path, keyed = path_of("runs", run_id, "retry"), once(idempotency_key)
        answer = await self._transport.ask("POST", path, body=body, headers=keyed)
        return enqueued_of(read(answer.body, Run), created=answer.status == 201)

    async def retry_job(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> Enqueued:
        """Retry the newest run of a job if it failed, timed out, expired or was cancelled.

        With an `idempotency_key` the call is safe to repeat: it returns the run created the first time.
        """
        path, keyed = path_of("jobs", name, "retry"), once(idempotency_key)
        answer = await self._transport.ask("POST", path, headers=keyed)
        return enqueued_of(read(answer.body, Run), created=answer.status == 201)

    async def count(
        self, run_filter: RunFilter | None = None, *, most: int = 10_000, within: Duration | None = None
    ) -> Counted:
        """Count matching runs; stop at `most`, or after a second, whatever `within` says."""
        if most < 1:
            raise Invalid(f"most must be 1 or more, not {most}")
        query = {**query_of(run_filter or RunFilter()), "most": min(most, _MOST_COUNTED)}
        return read(await self._get("runs:count", **query), Counted)

    async def cancel_many(
        self,
        run_filter: RunFilter,
        *,
        reason: str | None = None,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """Cancel all matching runs that are not final. If more than `expected` match, raise `BulkMismatch` and change
        nothing."""
        body = {"action": "cancel", "reason": reason, "expected": expected, "everything": everything}
        return await self._bulk(run_filter, body, progress)

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
        return await self._bulk(
            run_filter, {"action": "retry", "expected": expected, "everything": everything}, progress
        )

    async def _bulk(self, run_filter: RunFilter, body: Mapping[str, Any], progress: SoFar | None) -> BulkResult:
        """Stream a bulk command's progress line by line, so that it may take longer than one request's timeout."""
        request = {**body, "filter": filter_of(run_filter)}
        async with self._transport.stream("POST", path_of("runs:bulk"), body=request, accept=_LINES) as lines:
            async for line in lines:
                part = read(line, _Part) if line else _Part()
                if part.code is not None:
                    raise raised(read(line, Problem))
                if part.progress is not None and progress is not None:
                    progress(part.progress)
                if part.result is not None:
                    return part.result
        raise ServerTrouble("the connection to the server was lost", hint="repeat the command: nothing is done twice")

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Subscribe to change hints for topics: `run:<id>`, `runs`, `schedules`, `workers` or `queues`."""
        return self._hints.subscribe(topics)

    def follow(self, run_id: str) -> AsyncGenerator[Run]:
        """Yield the run now, and again whenever its state, progress or log changes, until it is final."""
        return self._hints.follow(self.get, run_id)

    async def explain(self, run_id: str) -> Explanation:
        """Explain why a run is in its current state."""
        return read(await self._get("runs", run_id, "explain"), Explanation)

    async def events(self, run_id: str) -> Sequence[Event]:
        """List the state changes of a run, oldest first, each with its time, actor and fence."""
        return [event_of(item) for item in items(await self._get("runs", run_id, "events"), dict[str, Any])]

    async def prune(self) -> int:
        """Raise `NotOffered`: pruning needs the database."""
        raise NotOffered("client.prune")
