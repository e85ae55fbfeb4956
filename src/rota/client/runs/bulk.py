"""Cancel or retry all runs that match a filter: find them first, then act in batches so that workers get their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from rota.core.runs.bulk import BulkResult, Counted, Found, SoFar
from rota.core.runs.run import NewRun, RunFilter
from rota.core.states import RunState
from rota.errors import BulkMismatch, Invalid, NotCancellable, RotaError, RunIsFinal, Unavailable, UnknownRun
from rota.observability.metrics import Counter
from rota.store import Store
from rota.store.runs.bulk import Refusals
from rota.store.runs.waits import DEPENDENCY
from rota.values.durations import Duration, parse_duration

_BITE = 200
_AT_ONCE = 4  # leaves connections of the pool to others


class Bulk:
    """Bulk commands. `again` builds the retry of a run and writes nothing. `ended` counts runs that a cancel ended at
    once."""

    def __init__(self, store: Store, again: Callable[[str, str | None], Awaitable[NewRun]], ended: Counter) -> None:
        self._store = store
        self._again = again
        self._ended = ended

    async def count(self, wanted: RunFilter, most: int, within: Duration | None) -> Counted:
        """Count matching runs, up to `most`."""
        if most < 1:
            raise Invalid(f"most must be 1 or more, not {most}")
        patience = None if within is None else parse_duration(within).total_seconds()
        return await self._store.searching.count(wanted, most, patience)

    async def cancel(
        self, wanted: RunFilter, reason: str | None, actor: str | None, expected: int | None, progress: SoFar | None
    ) -> BulkResult:
        """Cancel all matching runs: first those that wait, before more of them start, then those that run.

        Running ones are cancelled one by one: a batch of completions holds many lease locks at once, in an order of its
        own, so a batch here could deadlock with it.
        """
        found = await self._find(wanted, expected)
        waiting = [run.id for run in found if not run.claimed]
        claimed = [run.id for run in found if run.claimed]

        async def cancel_each(run_ids: Sequence[str]) -> Refusals:
            refused: Refusals = {}
            for run_id in run_ids:
                try:
                    if await self._store.cancel(run_id, reason, actor) is RunState.CANCELLED:
                        self._ended.add()
                except RunIsFinal as error:
                    if not await self._followed_in_vain(run_id):
                        refused[run_id] = error
                except (NotCancellable, UnknownRun) as error:
                    refused[run_id] = error
            return refused

        async def cancel_waiting(run_ids: Sequence[str]) -> Refusals:
            left = await self._store.bulk.cancel_waiting(run_ids, reason, actor)
            self._ended.add(len(run_ids) - len(left))
            return await cancel_each(left)

        result = await _in_bites(BulkResult(len(found)), waiting, _BITE, cancel_waiting, progress)
        return await _in_bites(result, claimed, 1, cancel_each, progress)

    async def _followed_in_vain(self, run_id: str) -> bool:
        """Return whether the run ended because a run it depends on was cancelled first: that counts as cancelled."""
        return (await self._store.get_run(run_id)).cancelled_by == DEPENDENCY

    async def retry(
        self, wanted: RunFilter, actor: str | None, expected: int | None, progress: SoFar | None
    ) -> BulkResult:
        """Retry all matching runs."""
        found = await self._find(wanted, expected)

        async def retry(bite: Sequence[str]) -> Refusals:
            return await self._retry_some(bite, actor)

        return await _in_bites(BulkResult(len(found)), [run.id for run in found], _BITE, retry, progress)

    async def _find(self, wanted: RunFilter, expected: int | None) -> list[Found]:
        """Return all runs that match now, oldest first. Runs that come to match later are not touched."""
        found = await self._store.searching.find(wanted, expected)
        if expected is not None and len(found) > expected:
            raise BulkMismatch(expected)
        return found[::-1]

    async def _retry_some(self, run_ids: Sequence[str], actor: str | None) -> Refusals:
        answers: list[NewRun | BaseException] = []
        for place in range(0, len(run_ids), _AT_ONCE):
            some = run_ids[place : place + _AT_ONCE]
            answers += await asyncio.gather(*[self._again(id, actor) for id in some], return_exceptions=True)
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


async def _in_bites(
    result: BulkResult,
    run_ids: Sequence[str],
    size: int,
    act: Callable[[Sequence[str]], Awaitable[Refusals]],
    progress: SoFar | None,
) -> BulkResult:
    for place in range(0, len(run_ids), size):
        bite = run_ids[place : place + size]
        result = result.after(len(bite), await act(bite))
        if progress:
            progress(result)
        await asyncio.sleep(0)  # let other tasks of this process run between batches
    return result
