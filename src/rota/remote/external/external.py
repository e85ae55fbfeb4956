"""`client.external` over HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rota.core.external.external import Assignment, Heartbeat, checked_error, checked_run, checked_wait, identity_of
from rota.core.progress.steps import StepState
from rota.core.runs.run import RunError
from rota.core.states import RunState
from rota.errors import BadDuration, BadPayload, Invalid
from rota.remote.decode import read
from rota.remote.encode import duration
from rota.remote.transport import Transport, path_of
from rota.values import json
from rota.values.durations import Duration
from rota.values.json import Limits

Held = Iterable[tuple[str, int]]


class _Claimed(msgspec.Struct):
    runs: list[Assignment]


class _RunState(msgspec.Struct):
    state: RunState


class _StepState(msgspec.Struct):
    state: StepState


class RemoteExternal:
    """Worker protocol for external jobs. Every verb but `claim` acts on one run under its fence. A stale fence raises
    `LeaseLost` and changes nothing.

    Reports under a fence are idempotent, and are repeated if the server is briefly unavailable.
    """

    def __init__(self, transport: Transport, limits: Limits) -> None:
        self._transport = transport
        self._limits = limits
        self._boot = secrets.token_hex(6)

    async def claim(
        self,
        worker: str,
        *,
        queues: Sequence[str] = ("default",),
        jobs: Sequence[str] | None = None,
        max: int = 1,  # noqa: A002  # its name in the protocol
        wait: Duration | None = None,
        lease: Duration | None = None,
        held: Held | None = None,
        **description: Any,
    ) -> list[Assignment]:
        """Claim up to `max` runs of external jobs from `queues`, in that order; return none if there are none within
        `wait`.

        `worker` is a name, or `name@boot` for a program that tells its starts apart; this client adds its own boot to a
        bare name. `held` lists all runs and fences that the worker knows of. Other leases under the same id are handed
        back first: their claim's response was lost. `labels` (`["gpu", "zone=eu"]`) and `version` describe the worker.
        A run with requirements goes to a worker that meets them, as with Python workers.
        """
        wait_for = checked_wait(wait)
        body = {
            **description,
            "worker": identity_of(worker, self._boot).id,
            "queues": [queues] if isinstance(queues, str) else [*queues],
            "jobs": [jobs] if isinstance(jobs, str) else jobs and [*jobs],
            "max": max,
            "wait": duration(wait_for),
            "lease": None if lease is None else duration(lease),
            "held": None if held is None else [{"id": id, "fence": fence} for id, fence in held],
        }
        request = self._transport.ask("POST", path_of("worker", "claim"), body=body, waits=wait_for.total_seconds())
        return read((await request).body, _Claimed).runs

    async def heartbeat(self, run_id: str, fence: int) -> Heartbeat:
        """Renew the lease for as long as the claim asked for. A run that waits keeps its own deadline."""
        return read(await self._report(run_id, fence, "heartbeat"), Heartbeat)

    async def progress(
        self, run_id: str, fence: int, percent: float | None = None, summary: str | None = None
    ) -> Heartbeat:
        """Report progress (`percent` from 0 to 100, and a `summary`); this is also a heartbeat. An omitted value keeps
        its last report."""
        return read(await self._report(run_id, fence, "progress", percentage=percent, summary=summary), Heartbeat)

    async def step(
        self,
        run_id: str,
        fence: int,
        id: str,
        state: str,
        *,
        result: Any = None,
        error: str | RunError | Mapping[str, Any] | None = None,
    ) -> StepState:
        """Record the state of a step and return the state stored. A step recorded as done stays done."""
        report: dict[str, Any] = {"id": id, "state": state, "result": self._json(result), "error": _error(error)}
        return read(await self._report(run_id, fence, "step", **report), _StepState).state

    async def logs(
        self, run_id: str, fence: int, lines: Iterable[str | Mapping[str, Any]], *, no: int | None = None
    ) -> None:
        """Append lines to the run's log: text, or `{"text", "level", "logger"}`. With `no`, a sequence number that
        grows from 1, repeated calls are idempotent."""
        line_list = [lines] if isinstance(lines, str | Mapping) else [*lines]
        await self._report(run_id, fence, "logs", again=no is not None, lines=line_list, no=no)

    async def complete(self, run_id: str, fence: int, result: Any = None) -> RunState:
        """Complete the run with a result. If the run waits for a step, complete that step; the run is queued again and
        continues with its result.

        Return the run's new state. A repeated call returns the first answer.
        """
        return read(await self._report(run_id, fence, "complete", result=self._json(result)), _RunState).state

    async def fail(
        self,
        run_id: str,
        fence: int,
        error: str | RunError | Mapping[str, Any],
        *,
        retry: bool = True,
        after: Duration | None = None,
    ) -> RunState:
        """Report a failure. The run is retried by its policy, or `after` that long; with `retry=False` it is not
        retried."""
        try:
            delay = None if after is None else duration(after)
        except BadDuration as refused:
            raise refused.within("after") from None
        report: dict[str, Any] = {"error": _error(error), "retry": retry, "after": delay}
        return read(await self._report(run_id, fence, "fail", **report), _RunState).state

    async def cancelled(self, run_id: str, fence: int) -> RunState:
        """Confirm that the run has stopped because its cancellation was requested."""
        return read(await self._report(run_id, fence, "cancelled"), _RunState).state

    async def _report(self, run_id: str, fence: int, verb: str, *, again: bool = True, **report: Any) -> bytes:
        run_id, fence = checked_run(run_id, fence)
        path, body = path_of("worker", "runs", run_id, verb), {"fence": fence, **report}
        return (await self._transport.ask("POST", path, body=body, again=again)).body

    def _json(self, result: Any) -> msgspec.Raw | None:
        try:
            return None if result is None else msgspec.Raw(json.encode(result, self._limits).encode())
        except BadPayload as error:
            raise Invalid(f"the result cannot be stored: {error.problem}") from None


def _error(error: str | RunError | Mapping[str, Any] | None) -> msgspec.Raw | None:
    """Return an error checked and complete; the server computes its fingerprint."""
    if error is None:
        return None
    fields = msgspec.structs.asdict(checked_error(error))
    return msgspec.Raw(msgspec.json.encode({name: text for name, text in fields.items() if text is not None}))
