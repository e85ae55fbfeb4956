"""Counts of what planners decided: plan times that ran, were coalesced, skipped or missed, and how late."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.planning.catch_up import Gap
from rota.core.planning.overlap_and_failure import Create, Skip
from rota.core.planning.tick import Planned

_MISSED = (("later than", "grace"), ("due together", "newer"), ("more than", "keep"), ("older than", "window"))
SKIPPED = ("overlap", "failure", "limit", "unique", "disabled")
SKIPPED_WORDS = {
    "overlap": "the run before it was still going on, and the `overlap` policy lets it neither run nor wait",
    "failure": "the run before it went wrong, and the `failure` policy lets this one not run",
    "limit": "a limit of the job was full, and `when_full` says `skip`",
    "unique": "a run with the same unique key was there",
    "disabled": "the job does not accept runs",
}
MISSED_WORDS = {
    "grace": "it was later than `grace` when planning came to it",
    "newer": "a newer one was due together with it, and `catch_up` is `none`",
    "keep": "more were late than `keep` lets, and it was not among the newest",
    "window": "it was older than the `window` of `catch_up`",
}
MISSED = tuple(kind for _, kind in _MISSED)


class Tally(msgspec.Struct):
    """Counts of plan times; `skipped` and `missed` by kind of reason. `lateness` (µs) is of those that ran, `retried`
    counts those whose runs are attempts after a failed one (`failure="retry"`).
    """

    ran: int = 0
    coalesced: int = 0
    skipped: dict[str, int] = {}
    missed: dict[str, int] = {}
    lateness: list[int] = []
    retried: int = 0

    def ran_or_waits(self, planned: Planned, now: int) -> None:
        self.ran += 1
        self.coalesced += planned.covered
        self.lateness.append(max(0, now - planned.eligible_at))
        self.retried += isinstance(planned.decision, Create) and planned.decision.attempt > 1

    def skipped_for(self, kind: str, planned: Planned) -> None:
        self.coalesced += planned.covered
        self.skipped[kind] = self.skipped.get(kind, 0) + 1

    def missed_in(self, gaps: Iterable[Gap]) -> None:
        for gap in gaps:
            kind = missed_kind(gap.reason)
            self.missed[kind] = self.missed.get(kind, 0) + gap.count

    def plus(self, other: Tally) -> Tally:
        return Tally(
            self.ran + other.ran,
            self.coalesced + other.coalesced,
            _sums(self.skipped, other.skipped),
            _sums(self.missed, other.missed),
            self.lateness + other.lateness,
            self.retried + other.retried,
        )


def _sums(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {kind: first.get(kind, 0) + second.get(kind, 0) for kind in first | second}


def skip_kind(skip: Skip) -> str:
    """Return the kind of a skip that planning itself decides; those by limits and keys come later."""
    if skip.failure:
        return "failure"
    return "overlap" if skip.reason.startswith("overlap") else "disabled"


def missed_kind(reason: str) -> str:
    return next((kind for words, kind in _MISSED if reason.startswith(words)), "other")
