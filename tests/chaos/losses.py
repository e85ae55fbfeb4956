"""What a failover may have lost: what was committed in its last moments, and nothing that was acknowledged before.

Whoever heard of a commit before the loss began, heard of one that is kept. Afterwards nobody knows: an answer may be on
its way for a while, and a worker may be frozen between its claim and its handler's first word.
"""

from __future__ import annotations

from functools import cached_property

from tests.chaos.evidence import Evidence
from tests.chaos.faults import LEASE
from tests.chaos.ledger import Entry
from tests.chaos.observer import Glimpse
from tests.chaos.producer import Cancelled, Refused, Told

_SLEPT = 3 * LEASE + 2.0
"""Seconds: how long a process is frozen at most, and what a busy machine adds."""
_SHARED = 0.5
"""Seconds: what may lie between the database's clock and the monotonic one."""


class Losses:
    """Which of the witnesses' words may be of commits that are lost."""

    def __init__(self, seen: Evidence) -> None:
        self._seen = seen

    @cached_property
    def spans(self) -> list[tuple[float, float]]:
        return [stroke.lost for stroke in self._seen.strokes if stroke.lost is not None]

    def of_answer(self, line: Told) -> bool:
        """The run is not there, and was asked for before the loss was over, and acknowledged after it began."""
        asked_at = self._seen.asked[line.key].at if line.key in self._seen.asked else line.at
        lost = any(asked_at <= until and line.at >= since for since, until in self.spans)
        return lost and line.run_id not in self._seen.runs

    @cached_property
    def runs(self) -> set[str]:
        """Runs that were acknowledged and are lost."""
        return {line.run_id for line in self._seen.told if self.of_answer(line)}

    def of_refusal(self, line: Refused) -> bool:
        """It was to follow a run that is lost."""
        options = str(self._seen.asked[line.key].options)
        return any(run_id in options for run_id in self.runs)

    def of_begin(self, entry: Entry) -> bool:
        """It began under a claim that is lost, with its fence."""
        return (entry.run_id, entry.fence) not in self._seen.attempt and self._may_be_lost(entry.at)

    def of_cancel(self, line: Cancelled) -> bool:
        return self._may_be_lost(line.at)

    def of_end(self, glimpse: Glimpse) -> bool:
        """Seen after the loss began, of an end before it was over."""
        *_, finished_at, _ = glimpse.end
        ended = (finished_at or 0) / 1e6 - self._seen.wall
        return any(glimpse.at >= since and ended <= until + _SHARED for since, until in self.spans)

    def _may_be_lost(self, at: float) -> bool:
        return any(since <= at <= until + _SLEPT for since, until in self.spans)
