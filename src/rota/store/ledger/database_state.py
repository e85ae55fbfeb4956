"""Standing of the database: read it, and accept a copy as the original."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rota.core.ledger.database_state import DatabaseStanding
from rota.store.databases.database import Database, Tx
from rota.store.ledger import audit
from rota.values.instants import instant, maybe_instant

log = logging.getLogger("rota.database")

SUBJECT = "database"
_NAMED = 5


class StandingStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> DatabaseStanding:
        return await self._database.read(read_standing)

    async def is_held(self) -> bool:
        """Return whether the database is a copy that nobody has accepted. Asked of the database only while it was."""
        if self._database.standing.held and not (await self.read()).held:
            self._database.standing.learn(held=False)
        return self._database.standing.held

    async def floor(self) -> int:
        """Return the least fence that is given in this epoch."""

        async def body(tx: Tx) -> int:
            ((floor,),) = await tx.fetch("epoch_floor")
            return int(floor)

        return await self._database.read(body)

    async def note_lost(self, leases: Sequence[tuple[str, int]]) -> None:
        """Note those of these leases whose runs a failover or a restore has lost. Each is noted and logged once."""

        async def look(tx: Tx) -> set[str]:
            return {str(id) for (id,) in await tx.fetch("unknown_runs", leases)}

        unknown = await self._database.read(look)
        lost = [(id, fence) for id, fence in leases if id in unknown]
        if not lost:
            return

        async def body(tx: Tx) -> bool:
            before = (await read_standing(tx)).lost_runs
            for id, fence in lost:
                await audit.note_once(tx, SUBJECT, SUBJECT, "run_lost", None, {"act": id}, fence=fence)
            return (await read_standing(tx)).lost_runs > before

        if not await self._database.transact(body):
            return
        log.warning(
            "the database does not know %s any more: a failover or a restore has lost %s",
            ", ".join(f"run {id}" for id, _ in lost[:_NAMED]) + (" …" if len(lost) > _NAMED else ""),
            "it" if len(lost) == 1 else "them",
        )

    async def accept(self, reason: str | None, actor: str | None) -> DatabaseStanding:
        """Accept the database as the original, and wake everybody. Nothing happens to one that is not held."""

        async def body(tx: Tx) -> DatabaseStanding:
            if await tx.fetch("accept_epoch", epoch=(await read_standing(tx)).epoch, actor=actor):
                await audit.note(tx, SUBJECT, SUBJECT, "accepted", actor, {"reason": reason})
                tx.wake(None)
            return await read_standing(tx)

        standing = await self._database.transact(body)
        self._database.standing.learn(held=standing.held)
        return standing


async def read_standing(tx: Tx) -> DatabaseStanding:
    kind = tx.dialect.name
    rows = await tx.fetch("standing")
    if not rows:
        return DatabaseStanding(kind, 0, held=False)
    ((epoch, since, is_copy, accepted_at, accepted_by, lost),) = rows
    held = bool(is_copy) and accepted_at is None
    return DatabaseStanding(kind, epoch, held, instant(since), maybe_instant(accepted_at), accepted_by, int(lost))
