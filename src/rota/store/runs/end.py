"""Steps common to every way a run ends. Call `end` in the transaction that made the rows final.

Runs end by reports, lost leases, cancels, policies, limits, dependencies that went wrong, and with their last replica.
Each of these makes the rows final by a statement of its own, under its own locks, and then calls `end`. It goes on in
the order of locks that everybody keeps: lease or ready row, run, runs that wait for it, limits. So the slots that come
back are returned, and `slots.open_limits` is called once, at the end of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.core.runs.dependencies import NEEDS_SUCCESS, ORDER, REPLICA, TOO_LARGE, Edge, Unmet, in_vain, is_met
from rota.core.runs.outcome import EndedRun
from rota.core.states import RunState
from rota.store.alerts import emit_signal
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.store.limits import slots
from rota.store.runs import waits
from rota.store.runs.waits import DEPENDENCY
from rota.store.workers import replicas

States = Mapping[str, str | None]
"""Final states by run; None: the run is gone, and not known to have gone well."""
Notes = Sequence[tuple[str, str | None, int, audit.Details]]
"""Events of one type: run, actor, fence, details."""


class EndedRuns(msgspec.Struct, frozen=True):
    """A batch of runs whose rows have just been made final.

    `held`: those of them that had slots. `again`: leases, as (run, fence), that ended in the same act, but whose runs
    wait again. `unclaimed`: nobody had these runs, so they leave their places under limits but no slots. `alone`: they
    waited for the turn of no other, and so leave nothing to those that wait for theirs. `is_new`: they
    were made in this transaction, so nobody waits for them, and they came under no limit. `signalled`: the statement
    that ended them wrote their signals. `notes`: events to note in the trail, by type.
    """

    states: States
    held: Sequence[str] = ()
    again: Sequence[tuple[str, int]] = ()
    unclaimed: bool = False
    alone: bool = False
    is_new: bool = False
    signalled: bool = False
    notes: Mapping[str, Notes] = {}


class EndEffects(msgspec.Struct, frozen=True):
    """Consequences of ends. `freed`: limits with freed slots, for one call of `slots.open_limits` at the end.

    `in_vain`: how runs ended because what they depend on did not go well.
    """

    freed: list[Row] = []
    in_vain: list[EndedRun] = []


async def end(tx: Tx, runs: EndedRuns) -> EndEffects:
    """Note the ends, give slots back, tell who listens, and release who waits."""
    freed = await _settle(tx, runs)
    if runs.is_new or not runs.states:
        return EndEffects(freed)
    if runs.unclaimed and not runs.alone:
        # Before `release`, which deletes the rows that say who waits for these runs.
        for run_id in runs.states:
            await waits.bequeath(tx, run_id)
    return EndEffects(freed, await release(tx, runs.states))


async def _settle(tx: Tx, runs: EndedRuns) -> list[Row]:
    """Do what concerns the ended runs themselves; return the slots that come back."""
    for event, notes in runs.notes.items():
        await audit.note_runs(tx, event, notes)
    freed: list[Row] = []
    if runs.unclaimed:
        # What is dropped here held no slot. To open its limits would lock them, and a policy that ends this run to let
        # another in holds one already: out of the order of keys, the two could deadlock.
        await tx.fetch("drop_gates", [(run_id,) for run_id in runs.states])
    elif runs.held or runs.again:
        freed = await slots.leave(tx, ended=runs.held, again=runs.again)
    if not runs.signalled:
        await emit_signal.tell(tx, list(runs.states))
    return freed


async def release(tx: Tx, ended: States) -> list[EndedRun]:
    """Let go on whoever waited for these runs, which are final, each in its state, and waits for nothing else.

    Whoever needed a success that did not come ends, and with it those that needed its own; returned is how.
    Of those that waited, some may be over: cancelled, they leave their waits to whoever ends what they waited for.
    """
    after: dict[str, str] = {}
    over: set[str] = set()
    takers: set[str] = set()
    vain: list[EndedRun] = []
    # Runs that end in vain may be awaited, too. Each round goes one step on from those that ended in the last one.
    while ended:
        waiting = await tx.fetch("end_waits_for", [(id,) for id in ended])
        edges = [(str(run), str(awaited), int(kind)) for run, awaited, kind, _ in waiting if str(run) not in over]
        takers |= {str(run) for run, _, _, takes in waiting if takes}
        turns = [(run, awaited) for run, awaited, kind in edges if kind == ORDER and awaited in over]
        if turns:
            await waits.follow(tx, turns)  # a dependency is not handed on: what it needed has ended
        parents = {run for run, _, kind in edges if kind == REPLICA}
        if parents:
            await replicas.look_at(tx, parents)
        after |= {run: awaited for run, awaited, kind in edges if kind != REPLICA}
        taking = {str(run) for run, _, _, takes in waiting if takes} - over
        if taking:
            # Under the locks of all: two predecessors that end at once must not each see its own result alone.
            await tx.fetch("lock_waiting", [(run,) for run in sorted({run for run, _, _ in edges})])
        large = await waits.too_large(tx, taking) if taking else set[str]()
        filling = [edge for edge in edges if edge[0] in large and edge[2] in NEEDS_SUCCESS]
        failed = [edge for edge in edges if not is_met(edge[2], ended[edge[1]])]
        failed += [edge for edge in filling if edge not in failed]
        how = {**ended, **{awaited: TOO_LARGE for _, awaited, kind in filling if is_met(kind, ended[awaited])}}
        ended = await _end_in_vain(tx, failed, how, vain) if failed else {}
        over |= ended.keys()
    going = sorted(after.keys() - over)
    if going:
        # Once, after all ends: dependents are locked in the order of ids, and each is released once.
        await waits.go_on(tx, going, after, takers)
    return vain


async def _end_in_vain(tx: Tx, failed: Sequence[Edge], ended: States, told: list[EndedRun]) -> States:
    """End runs that need what did not come, and all that depend on them likewise; return, and add to `told`, how each
    has ended.

    All at once: a long chain takes no more statements than a short one. Whoever comes to follow one of them meanwhile
    is seen when its waits are ended.
    """
    further = await tx.fetch("beyond", [(run,) for run, _, _ in failed])
    beyond = [(str(run), str(awaited), int(kind)) for run, awaited, kind in further]
    touched = sorted({run for run, _, _ in (*failed, *beyond)})
    # Locked in the order of ids, as everybody does who goes from ended runs to those that wait for them.
    live = {str(id) for (id, *_) in await tx.fetch("lock_waiting", [(id,) for id in touched])}
    vain = in_vain([edge for edge in failed if edge[0] in live], ended, [edge for edge in beyond if edge[0] in live])
    rows = sorted((unmet.run,) for unmet in vain)
    dropped = await tx.fetch("drop_waiting", rows) if rows else ()
    last = {str(id): (attempt, fence + 1) for id, attempt, fence in dropped}
    vain = [unmet for unmet in vain if unmet.run in last]
    ended_as = {unmet.run: unmet.state for unmet in vain}
    states: States = {run: state.value for run, state in ended_as.items()}
    if vain:
        ends = sorted((unmet.run, unmet.state.value, *last[unmet.run], unmet.reason) for unmet in vain)
        for id, job, queue in await tx.fetch("end_each", ends, actor=DEPENDENCY):
            told.append(EndedRun(ended_as[str(id)], job, queue))
        fences = {id: fence for id, (_, fence) in last.items()}
        await _settle(tx, EndedRuns(states, unclaimed=True, notes=_notes_of(vain, fences)))
    return states


def _notes_of(vain: Sequence[Unmet], fences: Mapping[str, int]) -> dict[str, Notes]:
    notes: dict[str, Notes] = {}
    for state in (RunState.SKIPPED, RunState.CANCELLED):
        change = {"from": RunState.SCHEDULED, "to": state}
        notes[state.value] = [
            (unmet.run, DEPENDENCY, fences[unmet.run], {**change, "reason": unmet.reason})
            for unmet in vain
            if unmet.state is state
        ]
    return notes
