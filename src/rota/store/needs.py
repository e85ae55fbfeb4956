"""Runs for some workers only: their needs, and the claims of workers that meet them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.core.claims import SUSPECTS, Candidate, Claim, NeededRequest
from rota.core.needs import NOTHING, Needs, Staff, need_id, need_text, read_needs
from rota.store import replicas
from rota.store.database import Tx


class Needed(msgspec.Struct, frozen=True):
    """What a look for runs with needs brought; `waiting`: there may be more of them; `missed`: somebody else was at
    some of them at that moment."""

    claims: list[Claim]
    waiting: bool
    missed: bool = False


async def known(tx: Tx) -> dict[str, Needs]:
    """All needs that there are, by id."""
    return {id: read_needs(definition) for id, definition in await tx.fetch("known_needs")}


async def assign(tx: Tx, runs: Iterable[tuple[str, Staff]]) -> None:
    """These runs, whose rows are there, wait for workers of that kind."""
    staffed = list(runs)
    await make(tx, (staff.needs for _, staff in staffed))
    marks = [(id, staff.mark) for id, staff in staffed]
    await tx.fetch("assign_needs", marks)
    await tx.fetch("hold_for_needs", marks)


async def make(tx: Tx, needs: Iterable[Needs]) -> None:
    """Each is there once, before a run has it."""
    wanted = {need_id(one): need_text(one) for one in needs if one != NOTHING}
    if wanted:
        await tx.fetch("make_needs", sorted(wanted.items()))


async def needs_of_run(tx: Tx, run_id: str) -> Needs:
    rows = await tx.fetch("needs_of_run", id=run_id)
    return read_needs(rows[0][5]) if rows else NOTHING


async def claim(tx: Tx, request: NeededRequest) -> Needed:
    """Every lock is taken only if nobody else has it, so that claims do not wait."""
    wanted = max(1, request.slots)
    found = await tx.hot.needed(request, wanted) if request.met.all else []
    found += await tx.hot.open_replicas(request, wanted) if request.met.open_to else []
    if not found or not request.slots:
        return Needed([], bool(found))
    first = _one_suspect(sorted(found))[: request.slots]
    chosen = await replicas.reserve(tx, first, request.name)
    claims = await tx.hot.take(request, [one.run_id for one in chosen]) if chosen else []
    mine = [msgspec.structs.replace(one, limited=False) for one in claims]
    return Needed(mine, len(found) >= request.slots, len(mine) < len(first))


def _one_suspect(found: Sequence[Candidate]) -> list[Candidate]:
    """All that are beyond suspicion, and the first that is not."""
    first = next((one.run_id for one in found if one.solo == SUSPECTS), None)
    return [one for one in found if one.solo != SUSPECTS or one.run_id == first]
