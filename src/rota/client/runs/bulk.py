"""Cancel or retry all runs that match a filter: find them first, then act in batches so that workers get their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from rota.core.runs.bulk import MOST_COUNTED, BulkResult, Counted, Found, SoFar
from rota.core.runs.run import NewRun, RunFilter
from rota.core.states import RunState
from rota.errors import BulkMismatch, Invalid, NotCancellable, RotaError, RunIsFinal, Unavailable, UnknownRun
from rota.observability.metrics import Counter
from rota.store import Store
from rota.store.runs.bulk import Refusals
from rota.store.runs.waits import DEPENDENCY
from rota.values.durations import Duration, parse_duration

_BATCH = 500
_AT_ONCE = 4  # leaves connections of the pool to others


class Bulk:
    """Bulk commands. `again` builds the retry of a run and writes nothing. `ended` counts runs that a cancel ended at
    once."""

    def __init__(self, store: Store, again: Callable[[str, str | None], Awaitable[NewRun]], ended: Counter) -> None:
        self._store = store
        self._again = again
        self._ended = ended

    async def count(self, run_filter: RunFilter, most: int, within: Duration | None) -> Counted:
        """Count matching runs, up to `most`."""
        if not 1 <= most <= MOST_COUNTED:
            raise Invalid(f"most must be from 1 to {MOST_COUNTED}, not {most}")
        patience = None if within is None else parse_duration(within).total_seconds()
        return await self._store.searching.count(run_filter, most, patience)

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
                    if (await self._store.cancel(run_id, reason, actor)).state is RunState.CANCELLED:
                        self._ended.add()
                except RunIsFinal as error:
                    if not await self._ended_with_parent(run_id):
                        refused[run_id] = error
                except (NotCancellable, UnknownRun) as error:
                    refused[run_id] = error
            return refused

        async def cancel_waiting(run_ids: Sequence[str]) -> Refusals:
            remaining = await self._store.bulk.cancel_waiting(run_ids, reason, actor)
            self._ended.add(len(run_ids) - len(remaining))
            return await cancel_each(remaining)

        result = await _in_batches(BulkResult(len(runs)), waiting, _BATCH, cancel_waiting, progress)
        result = await _in_batches(result, claimed, 1, cancel_each, progress)
        await self._store.bulk.note("cancelled", run_filter, result, actor)
        return result

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

    async def _find(self, run_filter: RunFilter, expected: int | None) -> list[Found]:
        """Return all runs that match now, oldest first. Runs that come to match later are not touched."""
        runs = await self._store.searching.find(run_filter, expected)
        if expected is not None and len(runs) > expected:
            raise BulkMismatch(expected)
        return runs[::-1]

    async def _retry_batch(self, run_ids: Sequence[str], actor: str | None) -> Refusals:
        answers: list[NewRun | BaseException] = []
        for start in range(0, len(run_ids), _AT_ONCE):
            part = run_ids[start : start + _AT_ONCE]
            answers += await asyncio.gather(*[self._again(id, actor) for id in part], return_exceptions=True)
        runs: list[NewRun] = []
        refused: Refusals = {}
        for run_id, answer in zip(run_ids, answers, strict=True):
            match answer:
                case NewRun():
                    runs.append(answer)
                case RotaError() if not isinstance(answer, Unavailable):
                    refused[run_id] = answer
                case _:
                    raise answer
        return refused | await self._enqueue(runs)

    async def _enqueue(self, runs: Sequence[NewRun]) -> Refusals:
        """Enqueue retries together; if one is refused, each by itself."""
        if not runs:
            return {}
        try:
            return await self._store.bulk.retry(runs)
        except Unavailable:
            raise
        except RotaError as error:
            if len(runs) == 1:
                return {str(runs[0].retry_of): error}
        refused: Refusals = {}
        for run in runs:
            refused |= await self._enqueue([run])
        return refused


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
