"""Runs that follow others: made to wait when they come, and who followed whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.core.runs.dependencies import Dependency, Edge, RelatedRun, both, in_order, is_met, written
from rota.core.runs.payload import MOST_FILLED, SMALLER, shown_places, written_places
from rota.core.runs.run import Enqueued, NewRun
from rota.core.states import RunState
from rota.errors import Invalid, UnknownRun
from rota.store.databases.database import Database, Row, Tx
from rota.store.runs import waits
from rota.store.runs.end import release
from rota.store.runs.read import about, of_scope
from rota.values.scope import Scope

MOST_CHILDREN = 1_000


def external(runs: Sequence[NewRun]) -> set[str]:
    """Runs that are there already, if they are, and that these follow."""
    followed = {dependency.run for run in runs for dependency in run.after}
    return followed - {run.id for run in runs} if followed else followed


async def lock(tx: Tx, run_ids: Iterable[str]) -> dict[str, str | None]:
    """Their final states, None while they are live: none of them ends until this transaction has.

    An end of one that is under way is waited for. After this, each either is known to have ended, or will look for
    whoever came to follow it.
    """
    # Runs before limits and keys, in the order of ids: a batch of completions takes them so.
    rows = [(id,) for id in sorted(run_ids)]
    states = {str(id): state for id, state in await tx.fetch("lock_followed", rows)}
    for (id,) in rows:
        if id not in states:
            raise UnknownRun(id)
    return states


async def attach(tx: Tx, runs: Sequence[NewRun], answers: Sequence[Enqueued]) -> None:
    """Let the runs that were made wait for what they follow; what has ended already counts at once.

    One that a key led to another run is not there, and waits for nothing; whoever follows it follows that other run.
    Some may end with it, for what they need did not go well.
    """
    instead = {run.id: answer.id for run, answer in zip(runs, answers, strict=True)}
    created = [run for run, answer in zip(runs, answers, strict=True) if answer.created]
    followed = {run.id: _followed(run, instead) for run in created}
    edges = [(run, after, it.kind) for run, dependencies in followed.items() for after, it in dependencies.items()]
    if any(id != other for id, other in instead.items()):
        # Among themselves they were checked before. Only a key that led to another run can close a cycle.
        _refuse_cycles(created, edges)
    if not edges:
        return
    states = await lock(tx, {after for _, after, _ in edges})  # as of now: a limit may have ended one to let these in
    await tx.fetch("insert_followed", _numbered(followed))
    takers = {run for run, dependencies in followed.items() if any(it.inputs for it in dependencies.values())}
    open_ends = [edge for edge in edges if states[edge[1]] is None or not is_met(edge[2], states[edge[1]])]
    if open_ends:
        await _wait(tx, open_ends, states, takers)
    ready = takers - {run for run, _, _ in open_ends}
    if ready and await waits.too_large(tx, ready):
        raise Invalid(f"the results that it takes are larger than {MOST_FILLED} characters", hint=SMALLER)
    await waits.fill(tx, ready)


def _followed(run: NewRun, instead: Mapping[str, str]) -> dict[str, Dependency]:
    """Two that it follows may be the same run by now."""
    followed: dict[str, Dependency] = {}
    for dependency in run.after:
        after = instead.get(dependency.run, dependency.run)
        followed[after] = both(followed[after], dependency) if after in followed else dependency
    return followed


def _refuse_cycles(runs: Sequence[NewRun], edges: Sequence[Edge]) -> None:
    """Keys may have led one of them to a run that follows it."""
    places = {run.id: place for place, run in enumerate(runs)}
    follows: list[list[int]] = [[] for _ in runs]
    for run, after, _ in edges:
        if after in places:
            follows[places[run]].append(places[after])
    in_order(follows, lambda place: runs[place].id)


def _numbered(followed: Mapping[str, Mapping[str, Dependency]]) -> list[Row]:
    return [
        (run, number, after, dependency.kind, written_places(dependency.inputs))
        for run, dependencies in followed.items()
        for number, (after, dependency) in enumerate(dependencies.items(), 1)
    ]


async def _wait(tx: Tx, edges: Sequence[Edge], states: Mapping[str, str | None], takers: set[str]) -> None:
    await tx.fetch("insert_needs", [(*edge, 1 if edge[0] in takers else None) for edge in sorted(edges)])
    await tx.fetch("hold_for_runs", [(run,) for run in sorted({run for run, _, _ in edges})])
    live = sorted({after for _, after, _ in edges if states[after] is None})
    if live:
        # Under the lock of `attach`: an end that waits for it sees the mark, and only then looks for followers. Without
        # a mark it looks for none, which keeps the ordinary completion cheap.
        await tx.fetch("mark_followed", [(after,) for after in live])
    await release(tx, {after: state for _, after, _ in edges if (state := states[after]) is not None})


class DependencyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def parents(self, part: str, within: Scope | None = None) -> list[RelatedRun]:
        """Whom it has followed, in the order given."""
        return await about(self._database, part, within, lambda tx, id: _parents(tx, id, within))

    async def children(self, part: str, within: Scope | None = None) -> list[RelatedRun]:
        """List the runs that follow it, the oldest first."""
        return await about(self._database, part, within, lambda tx, id: _children(tx, id, within))


async def _parents(tx: Tx, run_id: str, within: Scope | None) -> list[RelatedRun]:
    return await _visible(tx, await tx.fetch("parents", id=run_id), within)


async def _children(tx: Tx, run_id: str, within: Scope | None) -> list[RelatedRun]:
    return await _visible(tx, await tx.fetch("children", id=run_id, limit=MOST_CHILDREN), within)


async def _visible(tx: Tx, rows: Sequence[Row], within: Scope | None) -> list[RelatedRun]:
    """Keep related runs of the caller's scope: who sees all scopes may link runs across them. Of what was pruned,
    nobody knows whose it was."""
    related = [_related(row) for row in rows]
    if within is None:
        return related
    own = await of_scope(tx, [run.id for run in related], within)
    return [run for run in related if run.id in own]


def _related(row: Row) -> RelatedRun:
    id, job, state, result, kind, places = row
    on, otherwise = written(kind)
    return RelatedRun(
        id=str(id),
        job=job,
        state=None if state is None else RunState(state),
        result=msgspec.json.decode(result) if result else None,
        on=on,
        otherwise=otherwise,
        inputs=shown_places(places),
    )
