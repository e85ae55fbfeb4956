"""Enqueue: runs as a set; those whose keys others hold one by one, under the locks of all keys; limited if admitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import assert_never

import msgspec

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
from rota.core.runs.run import Enqueued, NewRun, models_of
from rota.core.states import has_begun
from rota.errors import DuplicateRun, LimitReached, QuotaExceeded, RotaError, UnknownJob
from rota.store.databases.database import AlreadyThere, LiveLimits, Row, Tx
from rota.store.jobs import pipeline_stages
from rota.store.ledger import audit
from rota.store.limits import admit
from rota.store.limits.quotas import gated as under_quotas
from rota.store.runs import dependencies
from rota.store.runs.end import EndedRuns, end
from rota.store.runs.idempotency import hold_values, lock_keys
from rota.store.workers import replicas, requirements
from rota.values.scope import GLOBAL, Scope, scope_text


class LimitsToOpen(msgspec.Struct):
    """Runs whose limits are to be opened at the end, all at once. `asked`: live limits among them are known."""

    asked: bool
    placed: list[LimitedRun] = []


_HOLDS = {
    (limited, due): hold_of(Admission.LIMITED if limited else Admission.OPEN, due=due)
    for limited in (False, True)
    for due in (False, True)
}
"""Looked up in a table, because rows are made by the thousand."""


async def enqueue_plain(tx: Tx, runs: Sequence[NewRun]) -> list[Enqueued]:
    """Enqueue runs that nothing but their time concerns: no key, limit, dependency, requirement, or pipeline."""
    tx.wake(*{run.queue for run in models_of(runs)})
    # There is nothing to lock: nobody knows these ids, and no other row has a say.
    return await _insert_rows(tx, runs, asked=False) if runs else []


async def _insert_rows(tx: Tx, runs: Sequence[NewRun], *, asked: bool) -> list[Enqueued]:
    now = await tx.hot.enqueue(runs, asked=asked)
    return [Enqueued(run.id, True, now, now + run.delay if run.run_at is None else run.run_at) for run in runs]


async def enqueue(tx: Tx, runs: Sequence[NewRun], *, quotas: bool = True) -> list[Enqueued]:
    """Enqueue runs, in the order given; `AlreadyThere` if that was done before.

    Without `quotas`, there are none as far as the caller knows; `LiveLimits` if jobs or queues have some.
    """
    models = models_of(runs)
    wake(tx, models)
    await hold_jobs(tx, models)
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
    pending = LimitsToOpen(asked=quotas)
    answers = await (_enqueue_keyed(tx, runs, keyed, pending) if keyed else _insert(tx, runs, pending))
    if any(run.after for run in models):
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
    for error in (await refused_by_jobs(tx, runs)).values():
        raise error


async def refused_by_jobs(tx: Tx, runs: Sequence[NewRun]) -> dict[str, RotaError]:
    """Hold the jobs of these runs, and return why some of them may not be: their job is gone, or cancelled."""
    names = sorted({run.job for run in runs if run.droppable or run.retry_of})
    if not names:
        return {}
    rows = await tx.fetch("hold_jobs", [(name,) for name in names])
    cancelled = {name: cancelled_at is not None for name, cancelled_at in rows}
    refused: dict[str, RotaError] = {}
    for run in runs:
        if run.droppable and run.job not in cancelled:
            refused[run.id] = UnknownJob(run.job)
        elif cancelled.get(run.job):
            try:
                require_verb(run.job, Standing.CANCELLED, JobVerb.RETRY if run.retry_of else JobVerb.RUN)
            except RotaError as error:
                refused[run.id] = error
    return refused


async def _enqueue_keyed(
    tx: Tx, runs: Sequence[NewRun], keyed: Sequence[NewRun], pending: LimitsToOpen
) -> list[Enqueued]:
    fresh = await lock_keys(tx, keyed)
    if len(fresh) == sum([len(run.holds) for run in keyed]):
        return await _insert(tx, runs, pending)  # all keys are new, and no two runs want the same one
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
    if any(run.gates for run in models_of(runs)):
        return await _insert_gated(tx, runs, pending)
    return await _insert_plain(tx, runs, asked=pending.asked)


async def _insert_gated(tx: Tx, runs: Sequence[NewRun], pending: LimitsToOpen) -> list[Enqueued]:
    gated = [_gated(run) for run in runs if run.gates]
    decided = [run for run in gated if run.decided]
    if decided and await tx.fetch("which_exist", [(run.id,) for run in decided]):
        raise AlreadyThere  # before they are counted against themselves
    skipped = await _admit(tx, runs, decided) if decided else {}
    return await _insert_decided(tx, runs, skipped, pending)


async def _insert_decided(
    tx: Tx, runs: Sequence[NewRun], skipped: Mapping[str, str], pending: LimitsToOpen
) -> list[Enqueued]:
    """Insert runs that their limits let be, and those that are skipped, by their reason."""
    answers = await _insert_plain(tx, runs, asked=pending.asked)
    for run_id, reason in skipped.items():
        await tx.fetch("drop_ready", id=run_id)
        # -1, because `end_unclaimed` adds one: nothing ever happened to this run, and its fence is that of a new row.
        facts = {"state": "skipped", "attempt": 0, "fence": -1, "error": None, "reason": reason, "actor": admit.POLICY}
        await tx.fetch("end_unclaimed", id=run_id, **facts)
    if skipped:
        await end(tx, EndedRuns(dict.fromkeys(skipped, "skipped"), is_new=True))
    live = [_gated(run) for run in runs if run.gates and run.id not in skipped]
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
    return LimitedRun(run.id, run.job, run.gates, is_pipeline(run.overrides), -run.priority)


async def _insert_plain(tx: Tx, runs: Sequence[NewRun], *, asked: bool) -> list[Enqueued]:
    if not runs:
        return []
    answers = await _insert_rows(tx, runs, asked=asked)
    # A bulk of thousands has one model: the others are asked by it.
    if not [run for run in models_of(runs) if run.retry_of or run.eligibility or run.overrides]:
        return answers
    retries = [(run.id,) for run in runs if run.retry_of]
    if retries:
        await tx.fetch("inherit_plans", retries)
        await tx.fetch("inherit_lanes", retries)
        await tx.fetch("inherit_followed", retries)
        notes = [
            (run.id, run.actor, 0, {"retry_of": run.retry_of, "edited": run.edited or None})
            for run in runs
            if run.retry_of
        ]
        await audit.note_runs(tx, RETRIED, notes)
    restricted = [(run.id, run.eligibility) for run in runs if run.eligibility]
    if restricted:
        await requirements.assign(tx, restricted)
    await pipeline_stages.begin(tx, runs)
    return answers


async def enqueue_admitted(tx: Tx, runs: Sequence[NewRun]) -> dict[str, RotaError]:
    """Enqueue, as a set, those runs that their jobs, keys and limits let be; return why not the others, by run.

    They follow no others, and their keys replace nothing: retries. It locks in the order of `enqueue`, and decides as
    planning does.
    """
    refused = await refused_by_jobs(tx, runs)
    runs = await under_quotas(tx, [run for run in runs if run.id not in refused])
    await admit.lock(tx, [_gated(run) for run in runs if run.gates])
    keys = Keys(tx, [run for run in runs if run.holds])
    await keys.lock()
    applicants = [Applicant(run.id, run.job, run.gates, run.holds, retry_of=run.retry_of) for run in runs]
    facts = await admit.read(tx, applicants)
    facts.now, facts.holders = await keys.read()
    answers = list(zip(runs, decide_all(applicants, facts), strict=True))
    full: dict[tuple[str, str, str], RotaError] = {}
    skipped: dict[str, str] = {}
    for run, decision in answers:
        match decision:
            case Full(gate, refused=True):  # one look for each limit and scope, however many it refuses
                place = (gate.key, run.scope_kind, run.scope_id)
                full[place] = full.get(place) or await _limit_reached(tx, run, gate, decision.reason)
                refused[run.id] = full[place]
            case Conflicting(error):
                refused[run.id] = error
            case Held(holder):
                refused[run.id] = DuplicateRun(run.job, holder)
            case Admitted(stops) | Superseded(_, stops):
                await admit.give_way(tx, Applicant(run.id, run.job), stops)
            case Full():
                pass
            case _:
                assert_never(decision)
        if isinstance(decision, Superseded | Full) and run.id not in refused:
            skipped[run.id] = decision.reason
    await keys.settle([(run.id, decision) for run, decision in answers])
    let_be = [run for run in runs if run.id not in refused]
    pending = LimitsToOpen(asked=True)  # `under_quotas` has looked
    wake(tx, let_be)
    await _insert_decided(tx, let_be, skipped, pending)
    await admit.open_for(tx, pending.placed)
    return refused


async def enqueue_again(tx: Tx, runs: Sequence[NewRun], *, quotas: bool = True) -> list[Enqueued]:
    """Enqueue runs after an unknown outcome: what is there gets the first answer, whatever became of it since."""
    wake(tx, runs)  # also of those that are there: whoever made them may have died before they told
    # The first try may have committed although its answer was lost. Ids are made before it, so they tell.
    rows = await tx.fetch("which_exist", [(run.id,) for run in runs])
    existing = {str(id): Enqueued(str(id), True, created_at, run_at) for id, created_at, run_at in rows}
    answers = await enqueue(tx, [run for run in runs if run.id not in existing], quotas=quotas)
    return [existing.get(run.id) or answers.pop(0) for run in runs]


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
            self._fresh = await lock_keys(self._tx, list(self._runs.values()))

    async def read(self, *, locked: bool = True) -> tuple[int, dict[str, Holder]]:
        """Return the holders of those keys that are not new, and the time; 0 if all are: then nobody asks for it."""
        holds = {hold.key: hold for run in self._runs.values() for hold in run.holds if hold.key not in self._fresh}
        return await _holders(self._tx, holds, locked=locked)

    def replaceable(self, holders: Mapping[str, Holder]) -> set[str]:
        """Return those of the holders that may get what a new run has."""
        asked = {hold.key for run in self._runs.values() for hold in run.holds if replaces(hold.on_conflict)}
        return {holder.run_id for key, holder in holders.items() if key in asked and holder.waits}

    async def settle(self, answers: Sequence[tuple[str, Decision]]) -> None:
        """Write who holds the keys now, and give holders that are replaced what the new runs have."""
        pending, owners = LimitsToOpen(asked=True), dict[str, tuple[str, KeyHold]]()
        for run_id, decision in answers:
            run = self._runs.get(run_id)
            if run is None:
                continue
            if isinstance(decision, Admitted | Superseded):
                owners.update({hold.key: (run_id, hold) for hold in run.holds})
            elif isinstance(decision, Held):
                await _meet_holder(self._tx, run, decision, pending)
        taken = [
            (key, *hold_values(run_id, hold).values())
            for key, (run_id, hold) in sorted(owners.items())
            if self._fresh.get(key) != run_id
        ]
        if taken:
            await self._tx.fetch("take_over_keys", taken)
        # A key that leads to no run would count as done (if once is enough), or as held until its period ends.
        if free := sorted(self._fresh.keys() - owners.keys()):
            await self._tx.fetch("free_keys", [(key,) for key in free])
        await admit.open_for(self._tx, pending.placed)


async def take_keys(tx: Tx, runs: Sequence[NewRun], *, dry_run: bool = False) -> dict[str, str]:
    """Take the keys of runs that the caller inserts; return those that another run's key makes needless, and why.

    A dry run decides the same, and neither locks nor writes anything.
    """
    keys = Keys(tx, runs)
    if not dry_run:
        await keys.lock()
    now, holders = await keys.read(locked=not dry_run)
    applicants = [Applicant(run.id, run.job, holds=run.holds, retry_of=run.retry_of) for run in runs]
    decisions = decide_all(applicants, Facts(now=now, holders=holders))
    answers = [(run.id, decision) for run, decision in zip(runs, decisions, strict=True)]
    if not dry_run:
        await keys.settle(answers)
    return {run_id: decision.reason for run_id, decision in answers if not isinstance(decision, Admitted)}


async def _holders(tx: Tx, holds: Mapping[str, KeyHold], *, locked: bool = True) -> tuple[int, dict[str, Holder]]:
    """Read who holds keys that are `locked`, and the time. A key that another run of this call freed has no holder."""
    now, holders = 0, dict[str, Holder]()
    # A statement of its own: the one that waited for the lock saw the old holder's run, not the new one's.
    for key, run_id, held_until, once, fingerprint, state, exists, at, fence in (
        await tx.fetch("key_holders", [(key,) for key in sorted(holds)]) if holds else ()
    ):
        now = int(at)
        live = bool(exists) and state is None
        done = not exists or state == "succeeded"
        waits, begun = live and fence is not None, has_begun(fence or 0)
        depends = locked and waits and (holds[key].once or replaces(holds[key].on_conflict))
        # A row after a key: out of order. Only a planner that has reserved it may deadlock with this; it is repeated.
        if depends and not await tx.fetch("lock_ready", id=str(run_id)):
            return await _holders(tx, holds)  # claimed or ended since: what was read is not so any more
        holders[key] = Holder(str(run_id), held_until, bool(once), fingerprint, live, waits, begun, done)
    return now, holders


async def _take_key(tx: Tx, run: NewRun, hold: KeyHold, pending: LimitsToOpen) -> Enqueued | None:
    """Take a key for `run`: None if it holds the key now, otherwise what the caller gets instead."""
    now, holders = await _holders(tx, {hold.key: hold})
    holder = holders.get(hold.key)
    if holder is None:
        await tx.fetch("hold_key", key=hold.key, **hold_values(run.id, hold))
        return None
    if holder.run_id == run.id:  # this very enqueue, repeated after an unknown outcome
        return None
    decision = meet(hold, holder, Applicant(run.id, run.job, retry_of=run.retry_of), now)
    match decision:
        case None:
            await tx.fetch("take_over_key", key=hold.key, **hold_values(run.id, hold))
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
    if not pending.asked and await tx.fetch("any_live_limit"):
        raise LiveLimits  # no row is inserted that would tell
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
    replaced = LimitedRun(holder, run.job, run.gates, rank=-run.priority)
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
