"""Send reports to the store in batches, and repeat them until the store has answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import Report
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from rota.engine.observability.meters import Meters
from rota.errors import DeadlineExceeded, Invalid, RotaError
from rota.store import Store

_BATCH = 2_000
_BYTES = 8_000_000
_REST_AFTER_TROUBLE = 0.5
_PATIENCE = 3.0
_TRIES = 3

log = logging.getLogger("rota.worker")


class Reporter:
    """Queue of reports. A report leaves it only when the store has answered: accepted, or refused as stale."""

    def __init__(
        self,
        store: Store,
        settled: Callable[[Report], None],
        meters: Meters | None = None,
        before: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`before` is awaited before each batch: what it writes must precede the end of a run."""
        self._store = store
        self._before = before
        self._settled = settled
        self._meters = meters or Meters()
        self.pending: list[Report] = []
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._size = _BATCH
        self._unprepared = 0
        self.refused = 0

    def add(self, report: Report) -> None:
        if not self.pending:  # else that was done already, and nobody undoes it before they are sent
            self._empty.clear()
            self._wake.set()
        self.pending.append(report)

    async def flush(self, seconds: float) -> None:
        """Wait until all reports are settled, at most `seconds`. The reaper takes care of those that are left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()

    async def step(self) -> None:
        """Send one batch. After an error it stays queued and is sent again: reports are idempotent."""
        batch = self._next_batch()
        if not batch:
            return
        await self._prepare()
        try:
            reported = await self._store.report(batch)
        except DeadlineExceeded:  # perhaps too much for one statement: halve the batch
            self._size = max(1, len(batch) // 2)
            raise
        except Invalid as error:
            if len(batch) == 1:
                self.pending[0] = unusable(batch[0], error)
            self._size = 1  # one bad report fails the whole batch: send each on its own to find it
            raise
        self._size = min(_BATCH, 2 * self._size)
        # Reports added during the transaction stand behind the batch, so its length still marks it.
        del self.pending[: len(batch)]
        self._meters.reported(batch, reported)
        for report in reported.refused:
            self.refused += 1
            log.warning(
                "run %s: report %s refused, fence %d is stale",
                *(report.run_id, report.outcome, report.fence),
                extra={"run_id": report.run_id, "fence": report.fence},
            )
        for report in batch:
            self._settled(report)
        if not self.pending:
            self._empty.set()

    async def _prepare(self) -> None:
        """Await `before`, but report without it after a few failures: the report matters more."""
        if self._before is None:
            return
        try:
            await self._do_before(self._before)
        except Exception as error:
            self._unprepared += 1
            if self._unprepared < _TRIES:
                raise
            log.warning("reporting although not all notes are written: %s", error)
        self._unprepared = 0

    async def _do_before(self, before: Callable[[], Awaitable[object]]) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await before()
        except TimeoutError:
            raise DeadlineExceeded("writing notes before a report", _PATIENCE) from None

    def _next_batch(self) -> list[Report]:
        """Return the next reports, limited in number and in bytes of results."""
        room = _BYTES
        for count, report in enumerate(self.pending[: self._size]):
            room -= len(report.result or "")
            if room < 0:
                return self.pending[: count + 1]
        return self.pending[: self._size]

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            try:
                await self.step()
            except Exception as error:
                expected = isinstance(error, RotaError)
                log.warning("cannot send %d reports yet: %s", len(self.pending), error, exc_info=not expected)
                await asyncio.sleep(_REST_AFTER_TROUBLE)
            if not self.pending:
                self._wake.clear()


def unusable(report: Report, error: Invalid) -> Report:
    """Return a failure in ASCII in place of a report that the database cannot store."""
    problem = RunError(type="BadResult", message=ascii(str(error))[1:-1], code="bad_result")
    return Report(report.run_id, report.fence, Outcome.FAILED, report.busy, error=stored_error(problem))
