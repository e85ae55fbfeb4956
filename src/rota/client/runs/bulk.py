"""Cancel, retry or purge all runs that match a filter: find them first, then act in batches, so that others come in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

import msgspec

from rota.core.runs.bulk import MOST_COUNTED, BulkResult, Counted, Found, Purged, SoFar
from rota.core.runs.run import NewRun, RunFilter
from rota.core.states import RunState
from rota.engine.observability.meters import Meters
from rota.errors import BulkMismatch, Invalid, NotCancellable, RotaError, RunIsFinal, UnknownRun
from rota.observability.metrics import OTHER, Counter
from rota.store import Store
from rota.store.runs.bulk import Refusals
from rota.store.runs.waits import DEPENDENCY
from rota.values.durations import Duration, format_duration, in_micros, parse_duration
from rota.values.instants import instant

Again = Callable[[Sequence[str], str | None], Awaitable[Mapping[str, NewRun | RotaError]]]
_BATCH = 500
_PURGED_AT_ONCE = 1_000  # as the janitor


class Bulk:
    """Bulk commands. `again` builds the retries of runs, or tells why not, and writes nothing. `meters` count runs that
    a cancel ended at once."""

    def __init__(self, store: Store, again: Again, meters: Meters) -> None:
        self._store = store
        self._again = again
        self._meters = meters

    async def count(
        self, run_filter: RunFilter, most: int, within: Duration | None, *, run_time: bool = False
    ) -> Counted:
        """Count matching runs, up to `most`."""
        if not 1 <= most <= MOST_COUNTED:
            raise Invalid(f"most must be from 1 to {MOST_COUNTED}, not {most}")
        patience = None if within is None else parse_duration(within).total_seconds()
        return await self._store.searching.count(run_filter, most, patience, run_time=run_time)

    async def cancel(
        self, run_filter: RunFilter, reason: str | None, actor: str | None, expected: int | None, progress: SoFar | None
    ) -> BulkResult:
        """Cancel all matching runs: first those that wait, before more of them start, then those that run.

        Running ones are cancelled one by one: a batch of completions holds many lease locks at once, in an order of its
        own, so a batch here could deadlock with it.
        """
        runs = await self._find(run_filter, expected)
        waiting = [run.id for run in runs if not run.claimed]
        claimed = [run.id for run in runs if run.claimed]

        async def cancel_each(run_ids: Sequence[str]) -> Refusals:
            refused: Refusals = {}
            for run_id in run_ids:
                try:
                    run = await self._store.cancel(run_id, reason, actor)
                    if run.state is RunState.CANCELLED:
                        self._meters.of[run.job, run.queue].runs[run.state].add()
                except RunIsFinal as error:
                    if not await self._ended_with_parent(run_id):
                        refused[run_id] = error
                except (NotCancellable, UnknownRun) as error:
                    refused[run_id] = error
            return refused

        async def cancel_waiting(run_ids: Sequence[str]) -> Refusals:
            remaining = await self._store.bulk.cancel_waiting(run_ids, reason, actor)
            self._ended(run_filter).add(len(run_ids) - len(remaining))
            return await cancel_each(remaining)

        result = await _in_batches(BulkResult(len(runs)), waiting, _BATCH, cancel_waiting, progress)
        result = await _in_batches(result, claimed, 1, cancel_each, progress)
        await self._store.bulk.note("cancelled", run_filter, result, actor)
        return result

    def _ended(self, run_filter: RunFilter) -> Counter:
        """Return the counter of runs that were cancelled together: of their job and queue, if the filter names both."""
        job, queue = run_filter.job or OTHER, run_filter.queue or OTHER
        return self._meters.of[job, queue].runs[RunState.CANCELLED]

    async def _ended_with_parent(self, run_id: str) -> bool:
        """Return whether the run ended because a run it depends on was cancelled first: that counts as cancelled."""
        return (await self._store.get_run(run_id)).cancelled_by == DEPENDENCY

    async def retry(
        self, run_filter: RunFilter, actor: str | None, expected: int | None, progress: SoFar | None
    ) -> BulkResult:
        """Retry all matching runs."""
        runs = await self._find(run_filter, expected)

        async def retry(batch: Sequence[str]) -> Refusals:
            return await self._retry_batch(batch, actor)

        result = await _in_batches(BulkResult(len(runs)), [run.id for run in runs], _BATCH, retry, progress)
        await self._store.bulk.note("retried", run_filter, result, actor)
        return result

    async def purge(
        self,
        run_filter: RunFilter,
        older_than: Duration | None,
        actor: str | None,
        expected: int | None,
        progress: SoFar | None,
        *,
        dry_run: bool,
    ) -> Purged:
        """Delete all matching runs that nothing needs."""
        age = parse_duration(older_than, "older_than") if older_than is not None else timedelta(0)
        runs = await self._find(await self._older(run_filter, age), expected)

        async def purge(batch: Sequence[str]) -> Refusals:
            return await self._store.bulk.purge(batch, in_micros(age), dry_run=dry_run)

        result = await _in_batches(BulkResult(len(runs)), [run.id for run in runs], _PURGED_AT_ONCE, purge, progress)
        if not dry_run:
            more = {} if older_than is None else {"older_than": format_duration(age)}
            await self._store.bulk.note("purged", run_filter, result, actor, **more)
        reusable, advice = await self._store.bulk.space()
        return Purged(result.matched, result.done, result.refused, reusable, advice)

    async def _older(self, run_filter: RunFilter, age: timedelta) -> RunFilter:
        """Narrow the filter to runs that can have ended so long ago: nothing ends before it is created."""
        if not age:
            return run_filter
        latest = instant(await self._store.now() - in_micros(age))
        before = min(latest, run_filter.created_before or latest)
        return msgspec.structs.replace(run_filter, created_before=before)

    async def _find(self, run_filter: RunFilter, expected: int | None) -> list[Found]:
        """Return all runs that match now, oldest first. Runs that come to match later are not touched."""
        runs = await self._store.searching.find(run_filter, expected)
        if expected is not None and len(runs) > expected:
            raise BulkMismatch(expected)
        return runs[::-1]

    async def _retry_batch(self, run_ids: Sequence[str], actor: str | None) -> Refusals:
        retries = await self._again(run_ids, actor)
        refused: Refusals = {id: answer for id, answer in retries.items() if isinstance(answer, RotaError)}
        runs = [answer for answer in retries.values() if isinstance(answer, NewRun)]
        return refused | (await self._store.bulk.retry(runs) if runs else {})


async def _in_batches(
    result: BulkResult,
    run_ids: Sequence[str],
    size: int,
    act: Callable[[Sequence[str]], Awaitable[Refusals]],
    progress: SoFar | None,
) -> BulkResult:
    for start in range(0, len(run_ids), size):
        batch = run_ids[start : start + size]
        result = result.after(len(batch), await act(batch))
        if progress:
            progress(result)
        await asyncio.sleep(0)  # let other tasks of this process run between batches
    return result
