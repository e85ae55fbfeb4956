"""Enqueue: runs as a set; those whose keys others hold one by one, under the locks of all keys; limited if admitted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import assert_never

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.pipelines import is_pipeline
from rota.core.jobs.status import JobVerb, Standing, require_verb
from rota.core.jobs.unique import KeyHold, replaces
from rota.core.ledger.audit import REPLACED, RETRIED
from rota.core.limits.limits import Gate, LimitedRun, is_quota
from rota.core.runs.admission import Admission, hold_of
from rota.core.runs.admit import (
    Admitted,
    Applicant,
    Conflicting,
    Decision,
    Facts,
    Full,
    Held,
    Holder,
    Superseded,
    decide_all,
    meet,
)
from rota.core.runs.outcome import AT_MOST_ONCE
from rota.core.runs.run import Enqueued, NewRun, Run
from rota.core.states import has_begun
from rota.errors import LimitReached, QuotaExceeded, UnknownJob
from rota.store.databases.database import AlreadyThere, Row, Tx
from rota.store.jobs import pipeline_stages
from rota.store.ledger import audit
from rota.store.limits import admit
from rota.store.limits.quotas import gated as under_quotas
from rota.store.runs import dependencies, read
from rota.store.runs.end import EndedRuns, end
from rota.store.schedules.schedule_row import decoded
from rota.store.workers import replicas, requirements
from rota.values.scope import GLOBAL, Scope, scope_text


class LimitsToOpen(msgspec.Struct):
    """Runs whose limits are to be opened at the end, all at once."""

    placed: list[LimitedRun] = []


class RetryFacts(msgspec.Struct, frozen=True):
    """Parts of a retry: the old run, a copy of it, its job as it is stored, and the limits of its schedule."""

    run: Run
    copy: NewRun
    job: JobDefinition | None
    schedule_gates: tuple[Gate, ...]


_HOLDS = {
    (limited, due): hold_of(Admission.LIMITED if limited else Admission.OPEN, due=due)
    for limited in (False, True)
    for due in (False, True)
}
"""Looked up in a table, because rows are made by the thousand."""


async def enqueue_plain(tx: Tx, runs: Sequence[NewRun]) -> list[Enqueued]:
    """Enqueue runs that nothing but their time concerns: no key, limit, dependency, requirement, or pipeline."""
    tx.wake(*{run.queue for run in runs})
    # There is nothing to lock: nobody knows these ids, and no other row has a say.
    return await _insert_rows(tx, runs) if runs else []


async def _insert_rows(tx: Tx, runs: Sequence[NewRun]) -> list[Enqueued]:
    now = await tx.hot.enqueue(runs)
    return [Enqueued(run.id, True, now, now + run.delay if run.run_at is None else run.run_at) for run in runs]


async def enqueue(tx: Tx, runs: Sequence[NewRun], *, quotas: bool = True) -> list[Enqueued]:
    """Enqueue runs, in the order given; `AlreadyThere` if that was done before. Without `quotas`, there are none."""
    wake(tx, runs)
    await hold_jobs(tx, runs)
    if quotas:
        runs = await under_quotas(tx, runs)
    # One order for all: jobs, runs that are followed or may give way, limits that decide, then keys, then what the runs
    # come under.
    followed = dependencies.external(runs)
    await admit.lock(tx, [_gated(run) for run in runs if run.gates], followed)
    if followed:
        # Where a limit decides, `admit.lock` has reserved these already, and this only reads how they ended.
        await dependencies.lock(tx, followed)
    keyed = [run for run in runs if run.holds]
    pending = LimitsToOpen()
    answers = await (_enqueue_keyed(tx, runs, keyed, pending) if keyed else _insert(tx, runs, pending))
    if any(run.after for run in runs):
        await dependencies.attach(tx, runs, answers)
    # Limits are opened last, all at once and in the order of keys: one by one, two bulk enqueues could deadlock.
    await admit.open_for(tx, pending.placed)
    return answers


def wake(tx: Tx, runs: Sequence[NewRun]) -> None:
    """Wake the queues of these runs. Parts of a pipeline may be of any queue; the conductor begins replicas."""
    tx.wake(*{None if is_pipeline(run.overrides) else run.queue for run in runs})
    if any(run.eligibility and run.eligibility.conducts for run in runs):
        tx.wake(replicas.CONDUCTOR)


async def hold_jobs(tx: Tx, runs: Sequence[NewRun]) -> None:
    """Hold the jobs of these runs that somebody could drop meanwhile; one that is gone is an `UnknownJob`.

    Before anything else is locked: whoever drops a job has it, and comes to its cursors and runs afterwards. One that
    is cancelled refuses them. A job that only code declares is looked at for retries alone: its runs wait until it is
    resumed, and an enqueue has nothing to look up.
    """
    names = sorted({run.job for run in runs if run.droppable or run.retry_of})
    if not names:
        return
    rows = await tx.fetch("hold_jobs", [(name,) for name in names])
    cancelled = {name: cancelled_at is not None for name, cancelled_at in rows}
    for run in runs:
        if run.droppable and run.job not in cancelled:
            raise UnknownJob(run.job)
        if cancelled.get(run.job):
            require_verb(run.job, Standing.CANCELLED, JobVerb.RETRY if run.retry_of else JobVerb.RUN)


async def _enqueue_keyed(
    tx: Tx, runs: Sequence[NewRun], keyed: Sequence[NewRun], pending: LimitsToOpen
) -> list[Enqueued]:
    fresh = await _lock_keys(tx, keyed)
    contended = {run.id for run in keyed if any(fresh.get(hold.key) != run.id for hold in run.holds)}
    answers: list[Enqueued] = []
    # In the order given: what a run does with its keys, and with limits that count it, decides what the next meets.
    # Runs whose keys are all new meet nobody; they are inserted as a set, as many as follow each other.
    for meets, stretch in groupby(runs, key=lambda run: run.id in contended):
        if not meets:
            answers += await _insert(tx, [*stretch], pending)
            continue
        for run in stretch:
            answers.append(await _first_conflict(tx, run, fresh, pending) or (await _insert(tx, [run], pending))[0])
    return answers


async def _insert(tx: Tx, runs: Sequence[NewRun], pending: LimitsToOpen) -> list[Enqueued]:
    """Insert runs; what is to be done at the end, all at once, is added to `pending`."""
    if any(run.gates for run in runs):
        return await _insert_gated(tx, runs, pending)
    return await _insert_plain(tx, runs)


async def _insert_gated(tx: Tx, runs: Sequence[NewRun], pending: LimitsToOpen) -> list[Enqueued]:
    gated = [_gated(run) for run in runs if run.gates]
    decided = [run for run in gated if run.decided]
    if decided and await tx.fetch("which_exist", [(run.id,) for run in decided]):
        raise AlreadyThere  # before they are counted against themselves
    skipped = await _admit(tx, runs, decided) if decided else {}
    answers = await _insert_plain(tx, runs)
    for run_id, reason in skipped.items():
        await tx.fetch("drop_ready", id=run_id)
        # -1, because `end_unclaimed` adds one: nothing ever happened to this run, and its fence is that of a new row.
        facts = {"state": "skipped", "attempt": 0, "fence": -1, "error": None, "reason": reason, "actor": admit.POLICY}
        await tx.fetch("end_unclaimed", id=run_id, **facts)
    if skipped:
        await end(tx, EndedRuns(dict.fromkeys(skipped, "skipped"), is_new=True))
    live = [run for run in gated if run.id not in skipped]
    await admit.place(tx, live)
    pending.placed += live
    return answers


async def _limit_reached(tx: Tx, run: NewRun, gate: Gate, reason: str) -> LimitReached:
    """Build the refusal of a run: it names the run's scope, and the oldest of the runs in the way.

    Only one of the same scope: under a limit of all scopes, another tenant's run must not be named.
    """
    scope = Scope(run.scope_kind, run.scope_id)
    found = await tx.fetch("holder_under", key=gate.key, scope_kind=scope.kind, scope_id=scope.id)
    error = QuotaExceeded if is_quota(gate.key) else LimitReached
    whose = None if scope == GLOBAL else scope_text(scope)
    holder = next((str(run_id) for (run_id,) in found), None)
    return error(run.job, gate.key, gate.max, reason, scope=whose, holder=holder)


async def _admit(tx: Tx, runs: Sequence[NewRun], decided: Sequence[LimitedRun]) -> dict[str, str]:
    """Ask the limits of runs that have taken their keys; return those that are skipped, and why."""
    applicants = [Applicant(run.id, run.job, run.gates) for run in decided]
    skipped: dict[str, str] = {}
    for run, decision in zip(applicants, decide_all(applicants, await admit.read(tx, applicants)), strict=True):
        match decision:
            case Full(gate, refused=True):
                raise await _limit_reached(tx, next(new for new in runs if new.id == run.id), gate, decision.reason)
            case Admitted(stops):
                await admit.give_way(tx, run, stops)
            case Superseded(_, stops):
                await admit.give_way(tx, run, stops)
                skipped[run.id] = decision.reason
            case Full() | Held() | Conflicting():
                skipped[run.id] = decision.reason
            case _:
                assert_never(decision)
    return skipped


def _gated(run: NewRun) -> LimitedRun:
    return LimitedRun(run.id, run.job, run.gates, is_pipeline(run.overrides))


async def _insert_plain(tx: Tx, runs: Sequence[NewRun]) -> list[Enqueued]:
    if not runs:
        return []
    answers = await _insert_rows(tx, runs)
    retries = [(run.id,) for run in runs if run.retry_of]
    if retries:
        await tx.fetch("inherit_plans", retries)
        await tx.fetch("inherit_lanes", retries)
        await tx.fetch("inherit_followed", retries)
        notes = [(run.id, run.actor, 0, {"retry_of": run.retry_of}) for run in runs if run.retry_of]
        await audit.note_runs(tx, RETRIED, notes)
    restricted = [(run.id, run.eligibility) for run in runs if run.eligibility]
    if restricted:
        await requirements.assign(tx, restricted)
    await pipeline_stages.begin(tx, runs)
    return answers


async def enqueue_again(tx: Tx, runs: Sequence[NewRun], *, quotas: bool = True) -> list[Enqueued]:
    """Enqueue runs after an unknown outcome: what is there gets the first answer, whatever became of it since."""
    wake(tx, runs)  # also of those that are there: whoever made them may have died before they told
    # The first try may have committed although its answer was lost. Ids are made before it, so they tell.
    rows = await tx.fetch("which_exist", [(run.id,) for run in runs])
    existing = {str(id): Enqueued(str(id), True, created_at, run_at) for id, created_at, run_at in rows}
    answers = await enqueue(tx, [run for run in runs if run.id not in existing], quotas=quotas)
    return [existing.get(run.id) or answers.pop(0) for run in runs]


async def retry_facts(tx: Tx, part: str, within: Scope | None = None) -> RetryFacts:
    run = await read.run_within(tx, part, within)
    gates: tuple[Gate, ...] = ()
    for id, _, _, definition, *_ in await tx.fetch("get_schedule", name=run.schedule) if run.schedule else ():
        gates = decoded(definition).gates(str(id), run.schedule)
    return RetryFacts(run, await read.copy_of(tx, run.id), await read.job(tx, run.job), gates)


async def _lock_keys(tx: Tx, runs: Sequence[NewRun]) -> dict[str, str]:
    """Lock every key of the call: a free one goes to the first run that wants it. Returns those, key to run."""
    claims: dict[str, tuple[str, KeyHold]] = {}
    for run in runs:
        for hold in run.holds:
            claims.setdefault(hold.key, (run.id, hold))
    # All at once and in the order of keys, whatever the callers' orders: two bulk enqueues cannot deadlock.
    rows = [(key, *_hold_values(run_id, hold).values()) for key, (run_id, hold) in sorted(claims.items())]
    first = {key: run_id for key, (run_id, _) in claims.items()}
    return {key: first[key] for (key,) in await tx.fetch("lock_keys", rows)}


def _hold_values(run_id: str, hold: KeyHold) -> dict[str, object]:
    return {"run_id": run_id, "period": hold.period, "once": int(hold.once), "fingerprint": hold.fingerprint}


async def _first_conflict(tx: Tx, run: NewRun, fresh: dict[str, str], pending: LimitsToOpen) -> Enqueued | None:
    """The run that holds one of its keys; None if all are held for it now."""
    for place, hold in enumerate(run.holds):
        if fresh.get(hold.key) == run.id:
            continue
        answer = await _take_key(tx, run, hold, pending)
        fresh.pop(hold.key, None)  # whosever it was to be
        if answer is not None:
            for taken in run.holds[:place]:  # they lead to the run that is there, not to one that will never be
                await tx.fetch("pass_key_on", key=taken.key, run_id=answer.id)
            for untaken in run.holds[place + 1 :]:
                if fresh.get(untaken.key) == run.id:
                    del fresh[untaken.key]
                    await tx.fetch("free_key", key=untaken.key)
            return answer
    return None


class Keys:
    """The keys of runs that somebody else inserts, locked all at once; written when it is decided who gets them."""

    def __init__(self, tx: Tx, runs: Sequence[NewRun]) -> None:
        self._tx = tx
        self._runs = {run.id: run for run in runs}
        self._fresh: dict[str, str] = {}

    async def lock(self) -> None:
        if self._runs:
            self._fresh = await _lock_keys(self._tx, list(self._runs.values()))

    async def read(self) -> tuple[int, dict[str, Holder]]:
        """Return the holders of those keys that are not new, and the time; 0 if all are: then nobody asks for it."""
        holds = {hold.key: hold for run in self._runs.values() for hold in run.holds if hold.key not in self._fresh}
        now, holders = 0, dict[str, Holder]()
        for hold in holds.values():
            now, holder = await _holder(self._tx, hold)
            if holder is not None:
                holders[hold.key] = holder
        return now, holders

    async def settle(self, answers: Sequence[tuple[str, Decision]]) -> None:
        """Write who holds the keys now, and give holders that are replaced what the new runs have."""
        pending, owners = LimitsToOpen(), dict[str, tuple[str, KeyHold]]()
        for run_id, decision in answers:
            run = self._runs.get(run_id)
            if run is None:
                continue
            if isinstance(decision, Admitted | Superseded):
                owners.update({hold.key: (run_id, hold) for hold in run.holds})
            elif isinstance(decision, Held):
                await _meet_holder(self._tx, run, decision, pending)
        for key, (run_id, hold) in sorted(owners.items()):
            if self._fresh.get(key) != run_id:
                await self._tx.fetch("take_over_key", key=key, **_hold_values(run_id, hold))
        # A key that leads to no run would count as done (if once is enough), or as held until its period ends.
        for key in self._fresh.keys() - owners.keys():
            await self._tx.fetch("free_key", key=key)
        await admit.open_for(self._tx, pending.placed)


async def take_keys(tx: Tx, runs: Sequence[NewRun]) -> dict[str, str]:
    """Take the keys of runs that the caller inserts; return those that another run's key makes needless, and why."""
    keys = Keys(tx, runs)
    await keys.lock()
    now, holders = await keys.read()
    applicants = [Applicant(run.id, run.job, holds=run.holds, retry_of=run.retry_of) for run in runs]
    decisions = decide_all(applicants, Facts(now=now, holders=holders))
    answers = [(run.id, decision) for run, decision in zip(runs, decisions, strict=True)]
    await keys.settle(answers)
    return {run_id: decision.reason for run_id, decision in answers if not isinstance(decision, Admitted)}


async def _holder(tx: Tx, hold: KeyHold) -> tuple[int, Holder | None]:
    """Read who holds a key that is locked. None: another run of this call had it, and freed it."""
    # A statement of its own: the one that waited for the lock saw the old holder's run, not the new one's.
    rows = await tx.fetch("key_holder", key=hold.key)
    if not rows:
        return 0, None
    ((run_id, held_until, once, fingerprint, state, exists, now, fence),) = rows
    live = bool(exists) and state is None
    done = not exists or state == "succeeded"
    waits, begun = live and fence is not None, has_begun(fence or 0)
    holder = Holder(str(run_id), held_until, bool(once), fingerprint, live, waits, begun, done)
    if waits and (hold.once or replaces(hold.on_conflict)):
        # A ready row after a key is out of order. Claims and ends never wait for keys, so they cannot deadlock with
        # this. A planner that has reserved the row may: then PostgreSQL ends one of the two, which is repeated.
        waiting = await tx.fetch("lock_ready", id=holder.run_id)
        holder = msgspec.structs.replace(holder, waits=bool(waiting))
    return int(now), holder


async def _take_key(tx: Tx, run: NewRun, hold: KeyHold, pending: LimitsToOpen) -> Enqueued | None:
    """Take a key for `run`: None if it holds the key now, otherwise what the caller gets instead."""
    now, holder = await _holder(tx, hold)
    if holder is None:
        await tx.fetch("hold_key", key=hold.key, **_hold_values(run.id, hold))
        return None
    if holder.run_id == run.id:  # this very enqueue, repeated after an unknown outcome
        return None
    decision = meet(hold, holder, Applicant(run.id, run.job, retry_of=run.retry_of), now)
    match decision:
        case None:
            await tx.fetch("take_over_key", key=hold.key, **_hold_values(run.id, hold))
            return None
        case Conflicting(error):
            raise error
        case Held():
            await _meet_holder(tx, run, decision, pending)
            return Enqueued(decision.run_id, False)
        case _:
            assert_never(decision)


async def _meet_holder(tx: Tx, run: NewRun, held: Held, pending: LimitsToOpen) -> None:
    """Do what the holder of a run's key gets of it; `pending`: where it goes if it comes under other limits."""
    if held.replaces:
        for ready in await tx.fetch("lock_ready", id=held.run_id):
            await _replace(tx, run, held.run_id, ready, pending)
    if held.hold.clear and held.live:
        await replicas.clear(tx, held.run_id, held.hold.clear, run.id, run.actor)


async def _replace(tx: Tx, run: NewRun, holder: str, ready: Row, pending: LimitsToOpen) -> None:
    values = {
        "id": holder,
        "queue": run.queue,
        "priority": run.priority,
        "job_version": run.job_version,
        "run_at": run.run_at,
        "delay": run.delay,
        "on_lost": run.on_lost,
        "need": run.eligibility and run.eligibility.mark,
    }
    if run.eligibility:
        await requirements.make(tx, [run.eligibility.requirements])
    fence, hold, first_due_at = ready
    ((holds_now, due_at),) = await tx.fetch("replace_ready", limit_key=run.limit_key, **values)
    change = {
        "from": audit.waiting_state(hold),
        "to": audit.waiting_state(holds_now),
        "first_due_at": first_due_at,
        "due_at": due_at,
        "act": run.id,
    }
    await audit.note_once(tx, "run", holder, REPLACED, run.actor, change, fence=fence)
    # It comes under the limits of what replaces it, and leaves those that it was made under.
    await tx.fetch("drop_gates", [(holder,)])
    replaced = LimitedRun(holder, run.job, run.gates)
    await admit.place(tx, [replaced])
    pending.placed.append(replaced)
    await tx.fetch(
        "replace_run",
        payload=run.payload,
        tags=run.tags,
        metadata=run.metadata,
        overrides=run.overrides,
        max_attempts=run.max_attempts,
        **values,
    )


def ready_row(run: NewRun, due: int, now: int) -> tuple[object, ...]:
    """Return the row of a run that waits for no other; its requirements are assigned afterwards."""
    return (
        run.id,
        run.queue,
        -run.priority,
        due,
        _HOLDS[bool(run.gates), due <= now],
        int(run.on_lost in AT_MOST_ONCE),
        run.job,
        run.job_version,
        run.limit_key,
    )
