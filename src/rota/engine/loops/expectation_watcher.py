"""Check expectations. Safe in any number of processes: each breach begins and ends once."""

from __future__ import annotations

import logging
from datetime import timedelta

from rota.store import Store

log = logging.getLogger("rota.watchman")


class ExpectationWatcher:
    """Loop without state of its own: everything it decides by is in the database."""

    def __init__(self, store: Store, interval: timedelta) -> None:
        self._store = store
        self._interval = interval

    def on_error(self) -> None:
        """Do nothing: no state is kept between steps."""

    async def step(self) -> timedelta:
        for change in await self._store.expectations.watch():
            subject = f"{change.subject.kind} {change.subject.name}"
            for breach in change.breached:
                log.warning("%s: %s", subject, breach.message)
            for expectation in change.met:
                log.info("%s: %s is met again", subject, expectation)
        return self._interval
