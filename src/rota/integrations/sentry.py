"""Sentry: errors of handlers with the run that they belong to, `install(app)`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import sentry_sdk

from rota.app import Rota
from rota.core.progress.control_flow import Fail, Signal
from rota.registry.hooks.middleware import Call


def install(app: Rota, *, only_last: bool = False) -> None:
    """Report what handlers raise, tagged with job, run and attempt; `only_last`: of the last attempt alone.

    Call `sentry_sdk.init(…)` yourself. Nothing is reported for `Retry`, `Snooze` and cancels.
    """

    def around(call: Call) -> Iterator[None]:
        with _reporting(call, only_last=only_last):
            yield

    async def around_coroutine(call: Call) -> AsyncIterator[None]:
        with _reporting(call, only_last=only_last):
            yield

    app.around(around)
    app.around(around_coroutine)


@contextmanager
def _reporting(call: Call, *, only_last: bool) -> Iterator[None]:
    with sentry_sdk.isolation_scope() as scope:
        scope.set_transaction_name(call.job)
        scope.set_tag("rota.job", call.job)
        scope.set_tag("rota.run", call.run_id)
        scope.set_context("rota", {"run": call.run_id, "attempt": call.attempt, "max_attempts": call.max_attempts})
        try:
            yield
        except Exception as error:
            is_wish = isinstance(error, Signal) and not isinstance(error, Fail)
            if not is_wish and (not only_last or isinstance(error, Fail) or call.attempt >= call.max_attempts):
                sentry_sdk.capture_exception(error)
            raise
