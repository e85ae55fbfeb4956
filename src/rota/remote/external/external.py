"""`client.external` of a server."""

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


class _RunStands(msgspec.Struct):
    state: RunState


class _StepStands(msgspec.Struct):
    state: StepState


class RemoteExternal:
    """Every act but a claim is about one run, under its fence; a stale one raises `LeaseLost`, and changes nothing.

    What is said under a fence can be said again: it is, if the server is away for a moment.
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
        **described: Any,
    ) -> list[Assignment]:
        """Up to `max` runs of external jobs, from these queues in their order; none if there are none within `wait`.

        `worker` is a name, or `name@boot` of a program that tells its starts apart; this client adds its own boot to a
        bare name. `held`: all runs and fences that it knows of; leases under the same id that are not among them are
        handed back first, as after an answer that got lost. `labels` (`["gpu", "zone=eu"]`) and `version` are what it
        can do: runs that need something are claimed by whoever meets it, as workers of ours do.
        """
        patience = checked_wait(wait)
        body = {
            **described,
            "worker": identity_of(worker, self._boot).id,
            "queues": [queues] if isinstance(queues, str) else [*queues],
            "jobs": [jobs] if isinstance(jobs, str) else jobs and [*jobs],
            "max": max,
            "wait": duration(patience),
            "lease": None if lease is None else duration(lease),
            "held": None if held is None else [{"id": id, "fence": fence} for id, fence in held],
        }
        asked = self._transport.ask("POST", path_of("worker", "claim"), body=body, waits=patience.total_seconds())
        return read((await asked).body, _Claimed).runs

    async def heartbeat(self, run_id: str, fence: int) -> Heartbeat:
        """The lease lasts as long again as the claim asked for. One that waits has a deadline, which stays."""
        return read(await self._say(run_id, fence, "heartbeat"), Heartbeat)

    async def progress(
        self, run_id: str, fence: int, percent: float | None = None, summary: str | None = None
    ) -> Heartbeat:
        """How far it is, from 0 to 100, and with what; also a heartbeat. What is not given stays as it was said."""
        return read(await self._say(run_id, fence, "progress", percentage=percent, summary=summary), Heartbeat)

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
        """Record what became of a step; the answer is the state that it is in. One recorded as done stays done."""
        told: dict[str, Any] = {"id": id, "state": state, "result": self._json(result), "error": _error(error)}
        return read(await self._say(run_id, fence, "step", **told), _StepStands).state

    async def logs(
        self, run_id: str, fence: int, lines: Iterable[str | Mapping[str, Any]], *, no: int | None = None
    ) -> None:
        """Lines of its log: text, or `{"text", "level", "logger"}`. With a `no` that grows from 1, said again they are
        not there twice."""
        given = [lines] if isinstance(lines, str | Mapping) else [*lines]
        await self._say(run_id, fence, "logs", again=no is not None, lines=given, no=no)

    async def complete(self, run_id: str, fence: int, result: Any = None) -> RunState:
        """It is done. Of a run that waits for a step, that step: the run is queued again, and goes on with its result.

        What this makes of the run is the answer; said again, it is the first one.
        """
        return read(await self._say(run_id, fence, "complete", result=self._json(result)), _RunStands).state

    async def fail(
        self,
        run_id: str,
        fence: int,
        error: str | RunError | Mapping[str, Any],
        *,
        retry: bool = True,
        after: Duration | None = None,
    ) -> RunState:
        """It went wrong: tried again as its policy says, or `after` so long; without `retry`, not at all."""
        try:
            rest = None if after is None else duration(after)
        except BadDuration as refused:
            raise refused.within("after") from None
        told: dict[str, Any] = {"error": _error(error), "retry": retry, "after": rest}
        return read(await self._say(run_id, fence, "fail", **told), _RunStands).state

    async def cancelled(self, run_id: str, fence: int) -> RunState:
        """It has stopped, because it was asked to."""
        return read(await self._say(run_id, fence, "cancelled"), _RunStands).state

    async def _say(self, run_id: str, fence: int, verb: str, *, again: bool = True, **told: Any) -> bytes:
        run_id, fence = checked_run(run_id, fence)
        path, body = path_of("worker", "runs", run_id, verb), {"fence": fence, **told}
        return (await self._transport.ask("POST", path, body=body, again=again)).body

    def _json(self, result: Any) -> msgspec.Raw | None:
        try:
            return None if result is None else msgspec.Raw(json.encode(result, self._limits).encode())
        except BadPayload as error:
            raise Invalid(f"the result cannot be stored: {error.problem}") from None


def _error(error: str | RunError | Mapping[str, Any] | None) -> msgspec.Raw | None:
    """Checked, and made whole; the server makes its fingerprint."""
    if error is None:
        return None
    told = msgspec.structs.asdict(checked_error(error))
    return msgspec.Raw(msgspec.json.encode({name: text for name, text in told.items() if text is not None}))
