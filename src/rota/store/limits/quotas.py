"""Quotas: kept in the database, applied to runs that come, and to those that are there when one is set or dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

import msgspec

from rota.core.limits.limits import UNLIMITED, Gate, LimitedRun, WhenFull, is_line, is_settled
from rota.core.limits.lines import in_line, line_key
from rota.core.limits.live import NO_KIND, LimitedThing, place_of, thing_of
from rota.core.limits.quotas import (
    Quota,
    QuotaOf,
    described,
    pause_of,
    prefixes,
    resumed,
    scope_of_key,
    within_kind,
)
from rota.core.runs.admission import Hold
from rota.core.runs.claim import NIL_ID
from rota.core.runs.run import NewRun
from rota.core.workers.requirements import CONDUCTS
from rota.errors import KindPaused
from rota.store.databases.database import Database, Row, Tx, Work
from rota.store.databases.pinned_plans import last_of
from rota.store.ledger import audit
from rota.store.limits import admit, rates
from rota.values.clock import HostClock
from rota.values.durations import in_micros
from rota.values.scope import GLOBAL, Scope, kind_text, scope_text

T = TypeVar("T")

_BATCH = 500
NOBODY = "operator"
_UNDER_LIMITS = (Hold.LIMITED, Hold.LIMITED_LATER)
_UNDER_NONE = (Hold.OPEN, Hold.OPEN_LATER, Hold.RESTRICTED, Hold.RESTRICTED_LATER)
# Most databases have no quota: then an enqueue asks once in this many seconds instead of each time. What slips through
# in another process is settled `_STRAGGLERS` after the change.
_CACHED_FOR = 1.0
# After this many seconds no process relies on an older answer; more, for an enqueue that has just asked.
_NOTICED_AFTER = 1.25
_STRAGGLERS = in_micros(timedelta(seconds=5))


class Under(dict[Scope, tuple[Gate, ...]]):
    """Gates of runs besides those of their job and schedule, by place: quotas of scopes, live limits."""

    def gates(self, job: str, queue: str, scope: Scope) -> tuple[Gate, ...]:
        """Return the gates of a run, the widest last."""
        places = (scope, place_of(LimitedThing.JOB, job), place_of(LimitedThing.QUEUE, queue))
        return tuple(gate for place in places for gate in self.get(place, ()))

    def gate(self, place: Scope | None, key: str) -> Gate | None:
        """Return the gate with this key, of a scope or another place."""
        return next((gate for gate in self.get(place or GLOBAL, ()) if gate.key == key), None)


NOTHING = Under()


async def under(tx: Tx, scopes: Iterable[Scope], works: Iterable[tuple[str, str]], *, planned: bool = False) -> Under:
    """Read in the transaction that makes the runs. `works` are their jobs and queues.

    `planned`: for plan times that are due. Those of a paused scope are skipped; what anybody asks for waits.
    """
    gates: dict[Scope, tuple[Gate, ...]] = {}
    for place, quota in (await in_force(tx, scopes, works)).items():
        found = quota.gates(place)
        if planned and quota.paused:
            found = tuple(msgspec.structs.replace(gate, when_full=WhenFull.SKIP) for gate in found)
        gates[place] = found
    return Under(gates)


async def in_force(tx: Tx, scopes: Iterable[Scope], works: Iterable[tuple[str, str]]) -> dict[Scope, Quota]:
    """Read the quotas of scopes, and the live limits of jobs and queues, by their places."""
    places = {scope for scope in scopes if scope != GLOBAL}
    for job, queue in works:
        places |= {place_of(LimitedThing.JOB, job), place_of(LimitedThing.QUEUE, queue)}
    rows = sorted((place.kind, place.id) for place in places)
    quotas: dict[Scope, Quota] = {}
    for kind, id, own, general, now in await tx.fetch("quotas_for", rows) if rows else ():
        quota = within_kind(_maybe(own), _maybe(general))
        assert quota is not None
        if quota.until is None or quota.until > now:  # nobody may have cleared it yet
            quotas[Scope(kind, id)] = quota
    return quotas


def decoded(text: str) -> Quota:
    return msgspec.json.decode(text, type=Quota)


def _maybe(text: str | None) -> Quota | None:
    return None if text is None else decoded(text)


async def gated(tx: Tx, runs: Sequence[NewRun]) -> Sequence[NewRun]:
    """Return the same runs, under the quotas of their scopes and live limits, too."""
    wider = await under(tx, {_scope(run) for run in runs}, {(run.job, run.queue) for run in runs})
    if not wider:
        return runs
    models: dict[int, NewRun] = {}

    def with_quota(run: NewRun) -> NewRun:
        gates = wider.gates(run.job, run.queue, _scope(run))
        if not gates:
            return run
        if run.like is not None and id(run.like) not in models:
            models[id(run.like)] = with_quota(run.like)
        like = None if run.like is None else models[id(run.like)]
        return msgspec.structs.replace(run, gates=(*run.gates, *gates), like=like)

    return [with_quota(run) for run in runs]


def _scope(run: NewRun) -> Scope:
    return Scope(run.scope_kind, run.scope_id)


def _label(kind: str, id: str) -> str:
    return scope_text(Scope(kind, id)) if id else kind_text(kind)


class QuotaStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._any = False
        self._changes = 0
        self.live = False
        """Whether there may be live limits. An enqueue that does not know of them is told, and asks."""
        self._forget()

    def _forget(self) -> None:
        """Ask again whether there is any quota. What a question that is under way brings counts no more."""
        self._changes += 1
        self._checked_at = float("-inf")

    async def exist(self) -> bool:
        """Return whether there may be any quota. That there is none is known from a look not long ago; what is enqueued
        meanwhile comes under the first one when it is settled a second time. Runs without a scope are under none, and
        need not ask.
        """
        now = self._database.clock.monotonic()
        if 0 <= now - self._checked_at < _CACHED_FOR:
            return self._any
        changes = self._changes
        ((scoped, live),) = await self._database.glance(lambda tx: tx.fetch("any_quota"))
        # Race: a quota may have been set since the database was asked.
        if changes == self._changes:
            self._any, self._checked_at, self.live = bool(scoped), now, bool(live)
        return bool(scoped)

    async def concern(self, *, scoped: bool) -> bool:
        """Return whether runs that come may be under a quota or a live limit; `scoped`: some of them have a scope."""
        if not scoped and not self.live:
            return False
        return (await self.exist() and scoped) or self.live

    async def list(self) -> list[QuotaOf]:
        rows = await self._database.read(lambda tx: tx.fetch("list_quotas"))
        return [described(kind, id, decoded(text), owner) for kind, id, text, owner in rows]

    async def get(self, kind: str, id: str) -> QuotaOf | None:
        """Return the quota of a scope, or of a kind if `id` is empty; None if it has none of its own."""
        return await self._database.read(lambda tx: _stored(tx, kind, id))

    async def update(self, kind: str, id: str, quota: Quota, owner: str) -> QuotaOf | None:
        """Set a quota, and return what is in force: a declaration in code does not replace what a person has set.

        It applies to all its runs when this returns, except those that are being enqueued at this moment.
        """

        async def body(tx: Tx) -> QuotaOf | None:
            # The pause of a scope outlasts the numbers that are set meanwhile: only `resume` ends it. That of a kind
            # is a number itself, 0, and cannot be resumed: the next one replaces it.
            stored, _ = await lock(tx, kind, id, reserve=True)
            was_paused = stored is not None and stored.paused
            kept = quota
            if stored is not None and was_paused and (id or quota.paused):
                kept = pause_of(quota, stored.reason, stored.since, stored.by)
            elif quota.paused:
                kept = pause_of(quota, since=await _now(tx), by=owner)
            if await put(tx, kind, id, kept, owner):
                await audit.note(tx, "quota", _label(kind, id), "set", owner, msgspec.to_builtins(quota))
            return await _stored(tx, kind, id)

        return await self.change(kind, id, body, pauses=quota.paused)

    async def pause(self, kind: str, id: str, reason: str | None, actor: str | None) -> QuotaOf:
        """Let nothing of a scope begin, or be planned, until it is resumed. What runs, runs on.

        If there was no quota, this takes a second: until then other processes may enqueue without asking for one.
        """

        async def body(tx: Tx) -> QuotaOf:
            stored, owner = await lock(tx, kind, id, reserve=True)
            if stored is None or not stored.paused:
                paused = pause_of(stored, reason, await _now(tx), actor)
                await put(tx, kind, id, paused, owner or actor or NOBODY)
                await audit.note(tx, "quota", _label(kind, id), "paused", actor, {"reason": reason})
            answer = await _stored(tx, kind, id)
            assert answer is not None
            return answer

        return await self.change(kind, id, body, pauses=True)

    async def resume(self, kind: str, id: str, actor: str | None) -> bool:
        """End the pause of a scope; return whether there was one. Refuse what would leave it paused, with its kind."""

        async def body(tx: Tx) -> bool:
            stored, owner = await lock(tx, kind, id)
            rest = resumed(stored) if stored is not None else None
            if rest is None:
                # Not locked: whoever pauses the kind at this moment comes before or after this.
                for text, _ in await tx.fetch("get_quota", kind=kind, id=""):
                    if decoded(text).paused:
                        raise KindPaused(kind, _label(kind, id))
            if stored is None or not stored.paused:
                return False
            if rest is None:
                await tx.fetch("drop_quota", kind=kind, id=id)
            else:
                await put(tx, kind, id, rest, owner or actor or NOBODY)
            await audit.note(tx, "quota", _label(kind, id), "resumed", actor, {})
            return True

        return await self.change(kind, id, body)

    async def delete(self, kind: str, id: str, actor: str | None = None) -> bool:
        """Delete a quota; return whether there was one."""

        async def body(tx: Tx) -> bool:
            stored, owner = await lock(tx, kind, id)
            if stored is None:
                return False
            if id and stored.paused and not stored.bare:  # of a kind, the pause is what is deleted
                rest = pause_of(None, stored.reason, stored.since, stored.by)
                await put(tx, kind, id, rest, owner or actor or NOBODY)
            else:
                await tx.fetch("drop_quota", kind=kind, id=id)
            await audit.note(tx, "quota", _label(kind, id), "dropped", actor, {})
            return True

        return await self.change(kind, id, body)

    async def change(self, kind: str, id: str, change: Work[T], *, pauses: bool = False) -> T:
        """Change a quota, and settle its runs unless they are settled. If it `pauses`, none of them begins after this.

        The first batch of runs is settled with the change: most scopes have no more. Further batches are transactions
        of their own, because settling locks the runs that it goes through.
        """

        async def body(tx: Tx) -> tuple[T, str | None, bool, bool]:
            # Before the change. One that is there for long enough is known to every process.
            noticed = not pauses or await _is_noticed(tx, kind)
            result = await change(tx)
            unsettled = await _is_unsettled(tx, kind, id)
            # Lock order: the quota's row before ready rows. Nobody who has locked a ready row waits for a quota's.
            rest = await _settle_runs(tx, kind, id, NIL_ID) if unsettled else None
            if unsettled:
                # Settling may have waited. Runs of those who did not see the change are looked for some seconds after
                # this time.
                await tx.fetch("quota_changed", kind=kind, id=id)
            return result, rest, unsettled, noticed

        result, rest, unsettled, noticed = await self._database.transact(body)
        # After the commit: an enqueue of this process that follows must not rely on an older answer.
        self._forget()
        if unsettled and not noticed:
            # Race: another process that knows of no quota may enqueue runs which do not ask for a pause, and begin.
            # What is not settled yet is settled with these.
            await self._rest(_NOTICED_AFTER)
            rest = NIL_ID
        if unsettled:
            await self._settle(kind, id, rest)
        return result

    async def now(self) -> int:
        """Return the database's time, in µs."""
        return await self._database.read(_now)

    async def _rest(self, seconds: float) -> None:
        if isinstance(self._database.clock, HostClock):  # one that is moved by hand stands still meanwhile
            await asyncio.sleep(seconds)

    async def settle_changed(self) -> dict[str, Quota]:
        """Settle once more, some seconds after each change: for those that were being enqueued then, and should whoever
        changed it have died halfway. Return the live limits, by their ids, because the same look finds them."""
        rows = await self._database.read(lambda tx: tx.fetch("unsettled_quotas", age=_STRAGGLERS))
        for kind, id, changed_at, settled, _ in rows:
            if settled:
                continue
            await self._settle(kind, id)
            # Fenced by the time of the change: a quota that was changed again meanwhile stays unsettled.
            values = {"kind": kind, "id": id, "changed_at": changed_at}
            await self._database.transact(lambda tx, values=values: tx.fetch("quota_settled", **values))  # type: ignore[misc]
            await self._database.transact(lambda tx, values=values: tx.fetch("quota_gone", **values))  # type: ignore[misc]
        return {id: decoded(text) for kind, id, _, _, text in rows if kind == NO_KIND and text is not None}

    async def _settle(self, kind: str, id: str, after: str | None = NIL_ID) -> None:
        """Settle in batches: all live runs of that scope, or of that kind of scopes, come under what is in force for
        them. `after` is the last run that is settled, None if all are.
        """
        key: str | None = ""
        while after is not None:
            after, key = await self._database.transact(lambda tx, after=after: _settle_some(tx, kind, id, after))  # type: ignore[misc]
        while key is not None:
            key = await self._database.transact(lambda tx, key=key: _settle_limits(tx, kind, id, key))  # type: ignore[misc]
        self._database.notify({None})


async def lock(tx: Tx, kind: str, id: str, *, reserve: bool = False) -> tuple[Quota | None, str | None]:
    """Return the quota and its owner, its row locked until the transaction ends.

    Without a row nothing could be locked, so whoever will put one has it reserved.
    """
    if reserve:
        await tx.fetch("reserve_quota", kind=kind, id=id)
    for text, owner in await tx.fetch("lock_quota", kind=kind, id=id):
        if text is not None:
            return decoded(text), owner
    return None, None


async def put(tx: Tx, kind: str, id: str, quota: Quota, owner: str) -> bool:
    definition = msgspec.json.encode(quota).decode()
    return bool(await tx.fetch("put_quota", kind=kind, id=id, definition=definition, owner=owner))


async def _stored(tx: Tx, kind: str, id: str) -> QuotaOf | None:
    rows = await tx.fetch("get_quota", kind=kind, id=id)
    return next((described(kind, id, decoded(text), owner) for text, owner in rows), None)


async def _now(tx: Tx) -> int:
    ((now,),) = await tx.fetch("now")
    return int(now)


async def _is_noticed(tx: Tx, kind: str) -> bool:
    """Return whether every process asks for quotas of scopes. Live limits are told to whoever does not ask."""
    return kind == NO_KIND or bool(await tx.fetch("noticed_quota", age=int(_NOTICED_AFTER * 1_000_000)))


async def _is_unsettled(tx: Tx, kind: str, id: str) -> bool:
    """Return whether its runs are not under it yet: whoever changed it may have died before, or may be asking again."""
    return bool(await tx.fetch("unsettled_quota", kind=kind, id=id))


async def _settle_some(tx: Tx, kind: str, id: str, after: str) -> tuple[str | None, str | None]:
    """Settle a batch of runs and, with the last one, the limits of one scope. Return where to go on in either."""
    rest = await _settle_runs(tx, kind, id, after)
    # Lock order: limits by key. The runs of one scope lock its own, the first of those that follow. Those of a kind may
    # lock any: its limits are settled in transactions of their own.
    return rest, await _settle_limits(tx, kind, id, "") if id and rest is None else ""


async def _settle_runs(tx: Tx, kind: str, id: str, after: str) -> str | None:
    """Returns where to go on."""
    live = await tx.fetch("live_runs_at", **_at(kind, id), after=after, limit=_BATCH)
    runs = {
        str(run_id): _Place(job, queue, Scope(kind, scope_id), bool(in_parts))
        for run_id, job, queue, kind, scope_id, in_parts in live
    }
    if not runs:
        return None
    rows = [(run_id,) for run_id in runs]
    # Lock order: ready rows before gates and limits. Leases are not locked, so that settling waits for no report: a
    # gate whose lease ends meanwhile is a stray, which `strays.tidy` drops.
    ready = {str(run_id): _ReadyRow(*columns) for run_id, *columns in await tx.fetch("lock_ready_runs", rows)}
    fences = {str(run_id): fence for run_id, fence in await tx.fetch("fences_of", rows)}
    current: dict[str, list[Gate]] = {}
    for run_id, key, most, period in await tx.fetch("gates_of_runs", rows):
        current.setdefault(str(run_id), []).append(Gate(key, most, period=period))
    places = set(runs.values())
    wider = await under(tx, {run.scope for run in places}, {(run.job, run.queue) for run in places})
    changed: list[LimitedRun] = []
    for run_id, run in runs.items():
        if run_id not in ready and run_id not in fences:  # it has ended meanwhile, or conducts: its replicas are asked
            continue
        narrow = [gate for gate in current.get(run_id, ()) if not is_settled(gate.key) and not is_line(gate.key)]
        gates = (*narrow, *wider.gates(run.job, run.queue, run.scope))
        if _differ(gates, current.get(run_id, []), ready.get(run_id)):
            changed.append(LimitedRun(run_id, run.job, gates, run.pipeline))
    if changed:
        await _put_under(tx, changed, ready, fences)
    return max(runs) if len(live) >= _BATCH else None


def _at(kind: str, id: str) -> dict[str, str | None]:
    """Return the conditions for the runs that a quota or a live limit is about."""
    thing, name = thing_of(id) if kind == NO_KIND else (None, "")
    return {
        "kind": kind,
        "id": id,
        "job": name if thing is LimitedThing.JOB else None,
        "queue": name if thing is LimitedThing.QUEUE else None,
    }


class _Place(msgspec.Struct, frozen=True):
    """Facts about a run that decide which quotas and live limits it is under."""

    job: str
    queue: str
    scope: Scope
    pipeline: bool


class _ReadyRow(msgspec.Struct, frozen=True):
    """Columns by which a ready run is found now."""

    hold: int
    limit_key: str | None
    need: str | None

    def key(self, gates: tuple[Gate, ...]) -> str | None:
        """The limit by which it is to be found: none if it conducts, because its replicas do what there is to do."""
        return None if (self.need or "").startswith(CONDUCTS) else line_key(gates)

    def differs(self, gates: tuple[Gate, ...]) -> bool:
        key = self.key(gates)
        return self.limit_key != key or self.hold in (_UNDER_LIMITS if key is None else _UNDER_NONE)


def _differ(gates: tuple[Gate, ...], current: Sequence[Gate], ready: _ReadyRow | None) -> bool:
    if ready is not None and ready.differs(gates):
        return True
    return [_limits(gate) for gate in in_line(gates)] != [_limits(gate) for gate in current]


def _limits(gate: Gate) -> tuple[str, int, int | None]:
    """Return what is kept of a gate beside its run: who counts under it depends on all of that."""
    return gate.key, gate.max, gate.period


async def _put_under(
    tx: Tx, runs: Sequence[LimitedRun], ready: Mapping[str, _ReadyRow], fences: Mapping[str, int]
) -> None:
    await tx.fetch("drop_gates", [(run.id,) for run in runs])
    # With the fence of its lease: a slot is held by one attempt, and only that one gives it back.
    held: list[Row] = [
        (run.id, gate.key, place, gate.max, gate.period, fences.get(run.id))
        for run in runs
        for place, gate in enumerate(in_line(run.gates))
    ]
    if held:
        await tx.fetch("insert_held_gates", held)
    waiting = [run for run in runs if run.id in ready]
    if waiting:
        await tx.fetch("come_under", [(run.id, ready[run.id].key(run.gates)) for run in waiting])
    # What the limits of jobs and schedules allow, these say; but a run may wait under another one of them than before.
    placed = [
        (place, run.claimed_as, gate, run.rank)
        for run in runs
        for place, gate in enumerate(in_line(run.gates))
        if place == 0 or is_settled(gate.key)
    ]
    kept = {gate.key for _, _, gate, _ in placed if not is_settled(gate.key)}
    await admit.open_gates(tx, placed, kept)


async def _settle_limits(tx: Tx, kind: str, id: str, after: str) -> str | None:
    """The limits that are there already allow what is in force now; returns where to go on."""
    first, second = prefixes(kind, id)
    rows = await tx.fetch("limits_of_quotas", first=first, second=second, after=after, limit=_BATCH)
    scopes = {key: scope_of_key(key, kind) for key, _, _ in rows}
    wider = await under(tx, {scope for scope in scopes.values() if scope is not None}, ())
    for key, _, _ in rows:
        gate = wider.gate(scopes[key], key)
        if gate is not None:
            await tx.fetch("change_max", key=key, prefix=None, max=gate.max, period=gate.period)
        # All that it blocks, without counting free slots: a claim that finds the limit full shuts it again.
        await rates.unblock(tx, key, UNLIMITED)
    return last_of(rows, _BATCH)
