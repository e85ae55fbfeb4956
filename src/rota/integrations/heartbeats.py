"""Dead man's switches: a service tells people if a job did not run, `install(app, "crawl", to="healthchecks:https://…")`."""

from __future__ import annotations

import contextlib
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPException

from rota.app import Rota
from rota.core.alerts.message_formats import PINGS, format_of, formatted, started, told_of
from rota.errors import Invalid
from rota.registry.hooks.middleware import Call

_TIMEOUT = 5.0


def install(app: Rota, job: str, *, to: str) -> None:
    """Ping `to` when a handler of `job` begins, and after its runs succeeded or failed.

    Ends are notifications: they are sent at least once, also if the worker dies. A begin is told by the worker that has
    the run, once, in the background: if that fails, nothing but the measured duration is missing.
    """
    found = format_of(to)
    if found is None or found[0] not in PINGS:
        raise Invalid(f"`to` must be one of {', '.join(PINGS)} and a URL", hint="healthchecks:https://hc-ping.com/…")
    app.notify(f"heartbeat:{job}", to=to, jobs=[job], on=["success", "failure"])

    def around(call: Call) -> Iterator[None]:
        if call.job == job:
            _tell(to, call)
        yield

    async def around_coroutine(call: Call) -> AsyncIterator[None]:
        if call.job == job:
            _tell(to, call)
        yield

    app.around(around)
    app.around(around_coroutine)


def _tell(to: str, call: Call) -> None:
    event = started(call.job, call.run_id, call.attempt)
    url = formatted(to, event, told_of(f"{call.job} begins", event), None).url
    threading.Thread(target=_ping, args=[url], daemon=True, name="rota-heartbeat").start()


def _ping(url: str) -> None:
    # The URL is one of http or https that the application's own code named: `notify` has checked it.
    with contextlib.suppress(OSError, HTTPException), urllib.request.urlopen(url, b"", _TIMEOUT):  # noqa: S310
        pass
