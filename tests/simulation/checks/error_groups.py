"""Runs that ended and did not succeed have a place of their own where they are found: just those, and as they ended."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tests.simulation.world.observer import Finding, Remains

_THERE = "select run_id, state, job, fingerprint, at from rota_fault order by run_id"
_ENDED = """
select id, state, job, error, coalesce(finished_at, created_at) from rota_run
where state is not null and state <> 'succeeded' order by id
"""


def faults_are_found(world: Remains) -> Iterator[Finding]:
    """P17: what is told of them there is what their runs say."""
    look = world.backend.look
    there = {str(id): (state, job, fingerprint, at) for id, state, job, fingerprint, at in look(_THERE)}
    ended = {str(id): (state, job, _fingerprint(error), at) for id, state, job, error, at in look(_ENDED)}
    for id in sorted(there.keys() | ended.keys()):
        if there.get(id) != ended.get(id):
            yield "P17", f"run {id[-6:]} ended as {ended.get(id)}, and is found as {there.get(id)}"


def _fingerprint(error: str | None) -> str | None:
    said = None if error is None else msgspec.json.decode(error)
    return said.get("fingerprint") if isinstance(said, dict) else None
