"""Counts of what planners decided: plan times that ran, were coalesced, skipped or missed, and how late."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

import msgspec

from rota.core.planning.catch_up import Gap
from rota.core.planning.overlap_and_failure import Create, Skip
from rota.core.planning.tick import Planned

K = TypeVar("K", bound=Hashable)

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


Subject = tuple[str, str]
"""Job and queue of a schedule's runs."""


class Tally(msgspec.Struct):
    """Counts of plan times by job and queue; `skipped` and `missed` also by kind of reason. `lateness` (µs) is of those
    that ran, `retried` counts those whose runs are attempts after a failed one (`failure="retry"`).
    """

    ran: dict[Subject, int] = {}
    coalesced: dict[Subject, int] = {}
    skipped: dict[tuple[Subject, str], int] = {}
    missed: dict[tuple[Subject, str], int] = {}
    lateness: list[int] = []
    retried: dict[Subject, int] = {}

    def ran_or_waits(self, subject: Subject, planned: Planned, now: int) -> None:
        _add(self.ran, subject, 1)
        _add(self.coalesced, subject, planned.covered)
        self.lateness.append(max(0, now - planned.eligible_at))
        _add(self.retried, subject, int(isinstance(planned.decision, Create) and planned.decision.attempt > 1))

    def skipped_for(self, kind: str, subject: Subject, planned: Planned) -> None:
        _add(self.coalesced, subject, planned.covered)
        _add(self.skipped, (subject, kind), 1)

    def missed_in(self, subject: Subject, gaps: Iterable[Gap]) -> None:
        for gap in gaps:
            _add(self.missed, (subject, missed_kind(gap.reason)), gap.count)

    def plus(self, other: Tally) -> Tally:
        return Tally(
            _sums(self.ran, other.ran),
            _sums(self.coalesced, other.coalesced),
            _sums(self.skipped, other.skipped),
            _sums(self.missed, other.missed),
            self.lateness + other.lateness,
            _sums(self.retried, other.retried),
        )


def _add(counts: dict[K, int], key: K, count: int) -> None:
    if count:
        counts[key] = counts.get(key, 0) + count


def _sums(first: dict[K, int], second: dict[K, int]) -> dict[K, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in first | second}


def skip_kind(skip: Skip) -> str:
    """Return the kind of a skip that planning itself decides; those by limits and keys come later."""
    if skip.failure:
        return "failure"
    return "overlap" if skip.reason.startswith("overlap") else "disabled"


def missed_kind(reason: str) -> str:
    return next((kind for words, kind in _MISSED if reason.startswith(words)), "other")
