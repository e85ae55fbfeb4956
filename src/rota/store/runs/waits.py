"""Runs that wait: for their time, and for the end of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.core.ledger.audit import RELEASED
from rota.core.runs.dependencies import ORDER, REPLICA, Edge, Unmet, in_vain, is_met
from rota.core.states import RunState
from rota.store.alerts import emit_signal
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.store.workers import replicas
from rota.values.actor import POLICY

DEPENDENCY = f"{POLICY}dependency"
_CONDUCTS_WHEN_DUE = 5


async def follow(tx: Tx, pairs: Iterable[tuple[str, str]]) -> set[str]:
    """(run, the run whose end it waits for). Returns the runs that have something to wait for: they need hold 3.

    A completion of the same run either comes first, and then there is nothing to wait for, or it waits for this
    transaction, sees the mark, and looks for whoever waits. One that was cancelled before it began leaves what it
    waited for: who came to follow it waits for that, or would overtake.
    """
    wanted, waiting = set(pairs), set[tuple[str, str]]()
    while wanted:
        rows = [(after,) for after in sorted({after for _, after in wanted})]
        live = {str(row[0]) for row in await tx.fetch("mark_followed", rows)}
        waiting |= {(run, after) for run, after in wanted if after in live}
        over = [row for row in rows if row[0] not in live]
        left = [(str(run), str(after)) for run, after in await tx.fetch("awaited_by_each", over)] if over else []
        wanted = {(run, left_to) for run, after in wanted for ended, left_to in left if ended == after}
    if waiting:
        await tx.fetch("insert_waits", sorted(waiting))
    return {run for run, _ in waiting}


async def release(tx: Tx, ended: Mapping[str, str | None], vain: list[RunState] | None = None) -> None:
    """Let go on whoever waited for these runs, which are final, each in its state, and waits for nothing else.

    Whoever needed a success that did not come ends, and with it those that needed its own. None: the run is gone, and
    not known to have gone well. Of those that waited, some may be over: cancelled, they leave their waits to whoever
    ends what they waited for. `vain` gets the states of those that ended because of it.
    """
    after: dict[str, str] = {}
    over: set[str] = set()
    while ended:
        waiting = await tx.fetch("end_waits_for", [(id,) for id in ended])
        edges = [(str(run), str(one), int(kind)) for run, one, kind in waiting if str(run) not in over]
        await _pass_turns_on(tx, [(run, one) for run, one, kind in edges if kind == ORDER and one in over])
        conducting = {run for run, _, kind in edges if kind == REPLICA}
        if conducting:
            await replicas.look_at(tx, conducting)
        after |= {run: one for run, one, kind in edges if kind != REPLICA}
        failed = [(run, one, kind) for run, one, kind in edges if not is_met(kind, ended[one])]
        ended = await _end_in_vain(tx, failed, ended) if failed else {}
        over |= ended.keys()
        if vain is not None:
            vain += [RunState(state) for state in ended.values() if state is not None]
    going = sorted(after.keys() - over)
    if going:
        await go_on(tx, going, after)


async def _end_in_vain(tx: Tx, failed: Sequence[Edge], ended: Mapping[str, str | None]) -> dict[str, str | None]:
    """Runs that need what did not come, and all that depend on them likewise: how each of them has ended now.

    All at once: a long chain takes no more statements than a short one. Whoever comes to follow one of them meanwhile
    is seen when its waits are ended.
    """
    further = await tx.fetch("beyond", [(run,) for run, _, _ in failed])
    beyond = [(str(run), str(one), int(kind)) for run, one, kind in further]
    touched = sorted({run for run, _, _ in (*failed, *beyond)})
    live = {str(row[0]) for row in await tx.fetch("lock_waiting", [(id,) for id in touched])}
    vain = in_vain([edge for edge in failed if edge[0] in live], ended, [edge for edge in beyond if edge[0] in live])
    rows = sorted((one.run,) for one in vain)
    dropped = await tx.fetch("drop_waiting", rows) if rows else ()
    left = {str(id): (attempt, fence + 1) for id, attempt, fence in dropped}
    vain = [one for one in vain if one.run in left]
    if vain:
        ends = sorted((one.run, one.state.value, *left[one.run], one.reason) for one in vain)
        await tx.fetch("end_in_vain", ends, actor=DEPENDENCY)
        await tx.fetch("drop_gates", [(one.run,) for one in vain])
        await _note_vain(tx, vain, {id: fence for id, (_, fence) in left.items()})
        await emit_signal.tell(tx, [one.run for one in vain])
    return {one.run: one.state.value for one in vain}


async def _note_vain(tx: Tx, vain: Sequence[Unmet], fences: Mapping[str, int]) -> None:
    for state in (RunState.SKIPPED, RunState.CANCELLED):
        change = {"from": RunState.SCHEDULED, "to": state}
        those = [one for one in vain if one.state is state]
        rows = [(one.run, DEPENDENCY, fences[one.run], {**change, "reason": one.reason}) for one in those]
        await audit.note_runs(tx, state.value, rows)


async def bequeath(tx: Tx, run_id: str) -> None:
    """It has ended before it began: whoever waits for it to have its turn waits for what it waited for."""
    await _pass_turns_on(tx, [(str(row[0]), run_id) for row in await tx.fetch("waiting_for", id=run_id)])


async def _pass_turns_on(tx: Tx, pairs: Sequence[tuple[str, str]]) -> None:
    """A dependency is not handed on: what it needed has ended."""
    if pairs:
        await follow(tx, pairs)


async def go_on(tx: Tx, run_ids: Sequence[str], after: Mapping[str, str] | None = None) -> None:
    """Let those of these runs go on that wait for no other; `after` says whose end they waited for, where known."""
    rows = [(id,) for id in run_ids]
    # Two predecessors that end at once must not each see the other's wait: the second one waits here for the first.
    await tx.fetch("lock_waiting", rows)
    gone_on = await tx.fetch("go_on", rows)
    await _come(tx, [(id, key) for id, _, hold, key, _ in gone_on if hold == 2 and key is not None])
    await _note_released(tx, gone_on, after or {})
    tx.wake(*[queue for _, queue, _, _, _ in gone_on])
    if any(hold == _CONDUCTS_WHEN_DUE for _, _, hold, _, _ in gone_on):
        tx.wake(replicas.CONDUCTOR)


async def _note_released(tx: Tx, gone_on: Sequence[Row], after: Mapping[str, str]) -> None:
    """When that was cannot be read off anything; those that wait for their time now are due when it comes."""
    change = {"from": RunState.SCHEDULED, "to": RunState.QUEUED}
    released = [(str(id), fence) for id, _, hold, _, fence in gone_on if hold in (0, 2, 6)]
    rows = [(id, None, fence, {**change, "after": after.get(id)}) for id, fence in released]
    await audit.note_runs(tx, RELEASED, rows)


async def promote(tx: Tx, limit: int, *, needed: bool = True) -> int:
    """Promote runs whose time has come, `limit` of those with limits and of those without; return how many.

    `needed`: there are such with requirements, too.
    """
    promoted = [*await tx.fetch("promote", limit=limit), *await tx.fetch("promote_limited", limit=limit)]
    promoted += await tx.fetch("promote_needed", limit=limit) if needed else []
    await _come(tx, [(id, key) for id, _, key in promoted if key is not None])
    tx.wake(*[queue for _, queue, _ in promoted])
    return len(promoted)


async def _come(tx: Tx, runs: Sequence[Row]) -> None:
    """Runs (id, limit key) that nothing but their limits holds back any more."""
    if runs:
        await tx.fetch("wake_limits", [(key,) for key in sorted({row[1] for row in runs})])
        await tx.fetch("make_limits_of", [(str(row[0]),) for row in runs])
