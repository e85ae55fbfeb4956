"""Bulk operations: which runs a filter selects for cancel, retry or purge, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from rota.core.jobs.status import RETRIED_BY_HAND
from rota.core.runs.run import RunFilter
from rota.core.states import FINAL_STATES, LIVE_STATES, RunState
from rota.errors import Invalid, RotaError, RunIsKept

MOST_COUNTED = 1_000_000
_EXAMPLES = 5


class Counted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Number of matching runs; a lower bound if not `exact`, because counting stopped at a limit or a timeout."""

    count: int
    exact: bool
    run_time_ms: int | None = None
    """Sum of the durations of those that have ended, if it was asked for."""


class Found(msgspec.Struct, frozen=True):
    """Matching run, and whether a worker held it then."""

    id: str
    claimed: bool


class Refused(msgspec.Struct, frozen=True):
    """Runs that were refused for the same reason."""

    code: str
    """Code of the error."""
    count: int
    """Number of runs that were refused for this reason."""
    message: str
    """Message of the first one."""
    examples: tuple[str, ...]

    def with_one_more(self, run_id: str) -> Refused:
        return Refused(self.code, self.count + 1, self.message, (*self.examples, run_id)[:_EXAMPLES])


class BulkResult(msgspec.Struct, frozen=True):
    """Result of a bulk operation: of `matched` runs, `done` were changed, the others are counted in `refused`."""

    matched: int
    done: int = 0
    """Number of those that were changed."""
    refused: tuple[Refused, ...] = ()

    def after(self, handled: int, refusals: Mapping[str, RotaError]) -> BulkResult:
        """Return the result after `handled` more runs, all done except those in `refusals` (run id → error)."""
        groups = {_group(refused): refused for refused in self.refused}
        for run_id, error in refusals.items():
            refused = groups.get(_group(error)) or Refused(error.code, 0, error.message, ())
            groups[_group(error)] = refused.with_one_more(run_id)
        return BulkResult(self.matched, self.done + handled - len(refusals), tuple(groups.values()))

    @property
    def handled(self) -> int:
        return self.done + sum(refused.count for refused in self.refused)


def _group(refusal: Refused | RotaError) -> tuple[str, str]:
    """Return what refusals that are counted together have in common; why a run is kept does not name the run."""
    return refusal.code, refusal.message if refusal.code == RunIsKept.code else ""


class Purged(BulkResult, frozen=True):
    """Result of a purge: of `matched` runs, `done` were deleted, or would be; something needs those in `refused`."""

    reusable_bytes: int | None = None
    """Space in the file that new rows take before it grows, on SQLite."""
    advice: str = ""
    """How to give the space back to the system."""


SoFar = Callable[[BulkResult], None]
"""Callback that gets the intermediate result after each batch."""


def to_cancel(query: RunFilter, *, everything: bool = False) -> RunFilter:
    """Narrow the filter to runs that have not ended."""
    _require_choice(query, everything, "cancel")
    _require_states(query, FINAL_STATES, "cancelled: it is final")
    return _with_states(query, tuple(state for state in RunState if state in LIVE_STATES))


def to_retry(query: RunFilter, *, everything: bool = False) -> RunFilter:
    """Narrow the filter to runs that were not retried yet and did not succeed, or ended as the filter says."""
    _require_choice(query, everything, "retry")
    _require_states(query, LIVE_STATES, "retried: it has not ended")
    if query.retried:
        raise Invalid("runs that were retried already are not retried again", hint="retry a single run by its id")
    states = _with_states(query, tuple(state for state in RunState if state in RETRIED_BY_HAND))
    return msgspec.structs.replace(states, retried=False)


def to_purge(query: RunFilter, *, everything: bool = False) -> RunFilter:
    """Narrow the filter to runs that have ended."""
    _require_choice(query, everything, "purge")
    _require_states(query, LIVE_STATES, "purged: it has not ended")
    return _with_states(query, tuple(state for state in RunState if state in FINAL_STATES))


def _require_choice(query: RunFilter, everything: bool, act: str) -> None:
    if query == RunFilter() and not everything:
        hint = "add a condition, or pass everything=True (--all)"
        raise Invalid(f"the filter is empty, and would {act} every run", hint=hint)


def _require_states(query: RunFilter, impossible: frozenset[RunState], why_not: str) -> None:
    for state in query.states:
        if state in impossible:
            raise Invalid(f"a run that is {state.value} cannot be {why_not}")


def _with_states(query: RunFilter, states: tuple[RunState, ...]) -> RunFilter:
    return query if query.states else msgspec.structs.replace(query, states=states)
