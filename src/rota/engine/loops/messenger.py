"""Process signals: fire schedules that follow others, enqueue notifications and digests of those that were too many.

Safe in any number of processes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from rota.errors import Unavailable
from rota.store import Store
from rota.store.alerts.signals import Undeliverable

log = logging.getLogger("rota.messenger")

_BATCH = 100
_TRIES = 3
_ASIDE = 10.0


class Messenger:
    """Loop over the table of signals; when idle, one query of an empty table.

    After an error it takes signals one by one. The one that causes the error is set aside, tried again later, and
    dropped after a few tries. `noticed` is called at least once when there are notifications to send.
    """

    def __init__(self, store: Store, poll: timedelta, on_notifications: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._clock = store.clock
        self._poll = poll
        self._on_notifications = on_notifications
        self._singly = 0
        self._set_aside_until: dict[tuple[int, int], tuple[int, float]] = {}

    def on_error(self) -> None:
        """Keep the signals that are set aside."""

    async def step(self) -> timedelta:
        look = await self._store.signals.look()
        if look.notifications:
            self._on_notifications()
        if look.digests:
            await self._store.signals.send_digests()
        if not look.signals:
            self._set_aside_until.clear()
            return self._poll
        return timedelta(0) if await self._deliver() else self._poll

    async def _deliver(self) -> bool:
        """Process one batch; return whether there may be more."""
        now = self._clock.monotonic()
        besides = [no for (no, _), (_, until) in self._set_aside_until.items() if until > now]
        try:
            done = await self._store.signals.deliver(1 if self._singly else _BATCH, besides)
        except Undeliverable as trouble:
            await self._set_aside(trouble, now)
            return True
        except Unavailable:
            raise
        except Exception:
            log.exception("cannot process a batch of signals; processing them one by one")
            self._singly = _BATCH
            return True
        self._singly = max(0, self._singly - 1) if done.signals else 0
        return done.signals > 0

    async def _set_aside(self, trouble: Undeliverable, now: float) -> None:
        signal, cause = trouble.signal, trouble.__cause__
        place = signal.no, signal.at
        tries = self._set_aside_until.get(place, (0, now))[0] + 1
        log.error("%s cannot be processed: %s", trouble, cause, exc_info=cause)
        if tries < _TRIES:
            self._set_aside_until[place] = tries, now + _ASIDE
            return
        self._set_aside_until.pop(place, None)
        reason = f"{type(cause).__name__}: {cause}".replace("\0", "").encode(errors="replace").decode()
        await self._store.signals.drop(signal, reason[:1_000])
        log.error("%s is dropped after %d tries", trouble, tries)
