"""Standing of the database: its epoch, and whether it is a copy that waits to be accepted."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from rota.values.durations import span

_IS_NEWS = timedelta(days=7)


class DatabaseStanding(msgspec.Struct, frozen=True):
    """Standing of the database: where it is in its history, and whether it may work."""

    kind: str
    epoch: int
    """How many failovers and restores the database has gone through; fences of a later epoch are larger."""
    held: bool
    """True: it is a copy that nobody has accepted, and does nothing by itself."""
    since: datetime | None = None
    """When its epoch began; null in the first epoch, or if the server does not tell where it is."""
    accepted_at: datetime | None = None
    """When the copy was accepted as the original."""
    accepted_by: str | None = None
    """Who accepted it."""
    lost_runs: int = 0
    """Runs of this epoch that workers held or reported, and that the database did not know any more."""

    def is_news(self, now: datetime) -> bool:
        """Return whether a failover or a restore is recent enough to look after what it may have lost."""
        return self.epoch > 0 and self.since is not None and now - self.since <= _IS_NEWS

    def words(self, now: datetime) -> str:
        """Say when the epoch began, and what is known to be lost."""
        age = f"epoch {self.epoch} began {span(now - self.since)} ago, by a failover or a restore" if self.since else ""
        if not self.lost_runs:
            return age
        runs = "1 run" if self.lost_runs == 1 else f"{self.lost_runs} runs"
        return f"{age}; workers had {runs} that the database does not know any more"

    @property
    def hint(self) -> str:
        """Say what to do about it."""
        if self.lost_runs:
            return "`rota audit --kind database` names them; compare with what clients and workers logged"
        return "changes of the moments before may be lost: compare with what clients and workers logged"


ORIGINAL = DatabaseStanding("sqlite", 0, held=False)
"""Standing of a database that was never moved."""
