"""`client.database`: the standing of the database, and its acceptance as the original."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from rota.client.limits.live import Why
from rota.core.access.roles import Role
from rota.core.ledger.database_state import DatabaseStanding
from rota.core.monitoring.doctor import Check
from rota.values.actor import checked_actor
from rota.verbs.examples import CHECK, STANDING
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.store import Store


class DatabaseClient:
    """The database as such. A copy (a restored dump, another server) does nothing by itself until it is accepted.

    Callers may read it, enqueue, and change it. Nothing is planned, claimed, reclaimed, deleted by retention, or sent.
    """

    def __init__(self, store: Store, examined: Callable[[], AsyncIterator[Check]]) -> None:
        self._store = store
        self._examined = examined

    @verb("GET", "/database", Role.VIEWER, gives=STANDING)
    async def get(self) -> DatabaseStanding:
        """Return the standing of the database: its epoch, and whether it is a copy that waits to be accepted."""
        return await self._store.standing.read()

    @verb("GET", "/database/checks", Role.VIEWER, gives=CHECK)
    async def examine(self) -> Sequence[Check]:
        """Check the installation, as `rota doctor` does: disk, server, versions, settings, clock, leases, ledgers.

        Each check is `ok`, a `warning` or a `problem`, and changes nothing. The process that is asked does it: clock,
        zone data and settings are its own. It verifies the ledgers of at most 100 schedules, and names no address.
        """
        return [check async for check in self._examined()]

    @verb("POST", "/database/accept", Role.ADMIN, repeatable=True, takes={"reason": "restored"}, gives=STANDING)
    async def accept(self, *, reason: Why = None, actor: str | None = None) -> DatabaseStanding:
        """Accept the database as the original: what is due is planned, claimed and sent from now on.

        Make sure first that nobody works with the database that it was copied from. A database that is not held stays
        as it is.
        """
        return await self._store.standing.accept(reason, checked_actor(actor))
