"""`client.data_jobs` over HTTP."""

from __future__ import annotations

from typing import Any

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import backoff_of, written_backoff
from rota.registry.data_jobs import checked_data_job
from rota.remote.decode import job_of, read
from rota.remote.transport import Transport, path_of
from rota.values.durations import worded


class RemoteDataJobs:
    """Jobs defined as data instead of code. Workers learn of changes at their next poll. Returned definitions have
    their secrets masked."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self, name: str, kind: str, *, owner: str = "api", actor: str | None = None, **options: Any
    ) -> JobDefinition:
        """Create a job of `kind` `http`, `command` or `external`. `options` are those of `app.http_job` and
        `app.command_job`."""
        checked_data_job(name, kind, options)
        body = {**_written(options), "name": name, "kind": kind}
        answer = await self._transport.ask("POST", path_of("jobs"), {"owner": owner}, body, again=True)
        return _read(answer.body)

    async def update(
        self, name: str, *, expected: int | None = None, actor: str | None = None, **options: Any
    ) -> JobDefinition:
        """Store a new version of a job with the given options changed; None resets an option to its default. Runs that
        are already enqueued keep their version. With `expected`, raise `ChangedMeanwhile` unless the job still has that
        version."""
        condition = {} if expected is None else {"If-Match": f'"{expected}"'}
        body = _written(options)
        return _read((await self._transport.ask("PATCH", path_of("jobs", name), body=body, headers=condition)).body)

    async def delete(self, name: str, *, force: bool = False, actor: str | None = None) -> None:
        """Delete a job and its own schedule. Raise `JobInUse` while another schedule or a live run uses it; with
        `force`, disable those schedules and cancel those runs."""
        await self._transport.ask("DELETE", path_of("jobs", name), {"force": force})


def _written(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as JSON has them."""
    backoff = options.get("backoff")
    if backoff is None:
        return dict(worded(options))
    written = written_backoff(backoff_of(backoff))
    plain = {"type": "exponential", **written} if isinstance(written, dict) else written
    return {**worded(options), "backoff": plain}


def _read(body: bytes) -> JobDefinition:
    fields = read(body, dict[str, Any])
    return job_of({name: fact for name, fact in fields.items() if name not in ("schedule", "run")})
