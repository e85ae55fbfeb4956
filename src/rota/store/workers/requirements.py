"""Runs for some workers only: their needs, and the claims of workers that meet them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.core.runs.claim import END, SUSPECTS, Candidate, Claim, Position, RestrictedRequest
from rota.core.workers.requirements import (
    NOTHING,
    Eligibility,
    Requirements,
    read_requirements,
    requirement_id,
    requirement_text,
)
from rota.store.databases.database import Row, Tx
from rota.store.workers import replicas

_MANY = 200
_BATCH = 500


class RestrictedClaims(msgspec.Struct, frozen=True):
    """Result of a claim of restricted runs; `waiting`: there may be more of them; `missed`: somebody else was at
    some of them at that moment."""

    claims: list[Claim]
    waiting: bool
    missed: bool = False


async def known(tx: Tx) -> dict[str, Requirements]:
    """All needs that there are, by id."""
    return {id: read_requirements(definition) for id, definition in await tx.fetch("known_needs")}


async def assign(tx: Tx, runs: Iterable[tuple[str, Eligibility]]) -> None:
    """These runs, whose rows are there, wait for workers of that kind."""
    pairs = list(runs)
    await make(tx, (eligibility.requirements for _, eligibility in pairs))
    marks = [(id, eligibility.mark) for id, eligibility in pairs]
    await tx.fetch("assign_needs", marks)
    await tx.fetch("hold_for_needs", marks)


async def make(tx: Tx, requirements: Iterable[Requirements]) -> None:
    """Each is there once, before a run has it."""
    texts = {requirement_id(each): requirement_text(each) for each in requirements if each != NOTHING}
    await keep(tx, texts)


async def keep(tx: Tx, texts: Mapping[str, str]) -> None:
    """Keep requirements until this transaction ends: then a run has them, and nobody drops them.

    One that is made by somebody else, or was dropped, at this moment is not seen by the statement that waited for it.
    """
    missing = dict(texts)
    while missing:
        # Shared locks, in the order of ids: enqueues do not wait for each other, and the janitor skips what is locked.
        for (id,) in await tx.fetch("keep_needs", [(id,) for id in sorted(missing)]):
            del missing[id]
        if missing:
            # Does not lock what somebody else made at the same moment: so the loop goes round until it has them all.
            await tx.fetch("make_needs", sorted(missing.items()))


async def any_unused(tx: Tx) -> bool:
    return bool(await _unused(tx))


async def _unused(tx: Tx) -> Sequence[Row]:
    """Return some requirements whose runs are all over; none while few differ, since those cost nothing."""
    return await tx.fetch("unused_needs", many=_MANY, limit=_BATCH)


async def drop_unused(tx: Tx) -> int:
    """Locked, and looked at once more: a run may have come that has one of them."""
    locked = {id for (id,) in await tx.fetch("lock_needs", await _unused(tx))}
    # The second look has a snapshot from after the locks. The first may be older than an enqueue that has committed.
    still = [(id,) for (id,) in await _unused(tx) if id in locked]
    return len(await tx.fetch("drop_needs", still)) if still else 0


async def requirements_of_run(tx: Tx, run_id: str) -> Requirements:
    for _, _, _, _, _, definition, _, _ in await tx.fetch("needs_of_run", id=run_id):
        return read_requirements(definition)
    return NOTHING


async def claim(tx: Tx, request: RestrictedRequest) -> RestrictedClaims:
    """Every lock is taken only if nobody else has it, so that claims do not wait."""
    found = await _candidates(tx, request, max(1, request.slots))
    bounded = request.before is not END
    candidates = [one for one in found if one.position < request.before] if bounded else found
    if not candidates or not request.slots:
        return RestrictedClaims([], bool(candidates))
    # From several queries, each in its own order: a claim takes the first of all together.
    first = _one_suspect(sorted(candidates))[: request.slots]
    chosen = await replicas.reserve(tx, first, request.name)
    claims = await tx.hot.take(request, [candidate.run_id for candidate in chosen]) if chosen else []
    return RestrictedClaims(claims, len(candidates) >= request.slots, len(claims) < len(first))


async def first(tx: Tx, request: RestrictedRequest) -> Position | None:
    """Return where the first run with requirements that this worker meets is. Nothing is locked."""
    found = await tx.hot.needed_head(request) if request.met.all else []
    found += await tx.hot.open_replicas(request, 1) if request.met.open_to else []
    return min(candidate.position for candidate in found) if found else None


async def _candidates(tx: Tx, request: RestrictedRequest, limit: int) -> list[Candidate]:
    solo = await tx.hot.solo(request, limit) if request.solo else []
    needed = await tx.hot.needed(request, limit) if request.met.all else []
    return [*solo, *needed, *(await tx.hot.open_replicas(request, limit) if request.met.open_to else [])]


def _one_suspect(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return all runs that are beyond suspicion, and the first that is not."""
    first = next((candidate.run_id for candidate in candidates if candidate.solo == SUSPECTS), None)
    return [candidate for candidate in candidates if candidate.solo != SUSPECTS or candidate.run_id == first]
