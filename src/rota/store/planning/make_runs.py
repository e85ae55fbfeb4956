"""Runs from plans: what a schedule's runs have in common, what holds each of them back, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any

import msgspec

from rota.core.calendar.rules import Times
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import check_template, filled
from rota.core.jobs.status import JobVerb, Standing, require_verb
from rota.core.jobs.unique import KeyHold
from rota.core.limits.limits import Gate, LimitedRun
from rota.core.limits.lines import line_key
from rota.core.planning.overlap_and_failure import Create, Skip
from rota.core.planning.tally import Subject
from rota.core.planning.tick import PLAIN, OrdinaryRule, Planned, ScheduleState, Tick, no_runs, ordinary_rule
from rota.core.runs.admission import Admission, hold_of
from rota.core.runs.admit import Admitted, Applicant, Superseded, decide_all, superseded_by
from rota.core.runs.options import gates_of, key_holds, new_run, with_limits_of_schedule
from rota.core.runs.outcome import AT_MOST_ONCE
from rota.core.runs.run import NewRun
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import JobDisabled, RotaError, UnknownJob, UnreadableSchedule
from rota.store.databases.columns import Column, Columns, column, columns_of
from rota.store.databases.database import Row, Tx
from rota.store.jobs import pipeline_stages
from rota.store.limits import admit
from rota.store.limits.quotas import Under
from rota.store.planning.lanes import Lanes
from rota.store.runs import cancel, enqueue, waits
from rota.store.runs.end import EndedRuns, end
from rota.store.schedules.schedule_row import ScheduleRow, decoded
from rota.store.workers import requirements
from rota.store.workers.replicas import CONDUCTOR
from rota.values.actor import POLICY
from rota.values.scope import Scope

OVERLAP = f"{POLICY}overlap"
_LIVE = (None, None, None, None, None)
_OPEN, _OPEN_LATER = hold_of(Admission.OPEN, due=True), hold_of(Admission.OPEN, due=False)

Place = tuple[str, int, int, str, int]


class RunTemplate(msgspec.Struct, frozen=True, gc=False):
    """Facts that a schedule's runs have in common; `model` is None when the job takes no runs, and `reason` says why.

    Thousands of them are remembered, so it is nothing that the collector of garbage has to go through, and what every
    fire asks for was computed before.

    `times`: None if they differ by the schedule's name, or cannot be told. `limited`, `keyed`: its runs are under
    limits, hold keys. `ordinary`: when a run of it is made by its row and one that waits; None if never, because it has
    several scopes, something limits it, or not anybody may do it at once. `place`: where its runs wait: queue, rank,
    whether each is claimed alone, and for whom. `usual_facts`: of a run with the first of its scopes, its payload as it
    is.
    """

    definition: ScheduleDefinition
    scopes: tuple[Scope, ...]
    job: JobDefinition
    model: NewRun | None
    payload: str
    templated: bool
    reason: str | None
    times: Times | None
    limited: bool
    keyed: bool
    ordinary: OrdinaryRule | None
    place: Place
    usual_facts: Row

    @property
    def subject(self) -> Subject:
        """Return job and queue of its runs, by which its plan times are counted."""
        return self.place[3], self.place[0]

    def refuse(self, _scope: Scope, _plan_time: int, _create: Create) -> str | None:
        return self.reason

    @property
    def decides(self) -> bool:
        """Return whether a limit or a key, which only the database knows, has a say in what a plan time gets."""
        mine = () if self.definition.limit is None else (self.definition.limit,)
        return self.keyed or any(limit.decides for limit in (*self.job.limits, *mine))

    @property
    def is_checked(self) -> bool:
        """Return whether its runs are under a limit or hold keys."""
        return self.limited or self.keyed

    def under(self, under: Under, scope: Scope) -> tuple[Gate, ...]:
        """Return the gates of quotas and live limits for its runs in a scope."""
        return under.gates(self.job.name, self.place[0], scope)

    def facts(self, scope: Scope, payload: str, attempts: int | None = None) -> Row:
        """Return what comes after the id in the row of a run."""
        return _facts(self.job, self.model, scope, payload, attempts)

    def payload_for(self, name: str, scope: Scope, plan_time: int) -> str:
        if not self.templated:
            return self.payload
        value: Any = filled(self.definition.payload, name, scope, plan_time)
        return msgspec.json.encode(value).decode()


class PlannedSchedule(msgspec.Struct, gc=False):
    """One schedule in a planning transaction."""

    row: ScheduleRow
    standing: ScheduleState
    template: RunTemplate
    lanes: Lanes
    tick: Tick


Pair = tuple[PlannedSchedule, Planned]


@lru_cache(maxsize=20_000)
def _template(text: str, job_text: str) -> RunTemplate:
    definition, job = decoded(text), _job(job_text)
    templated = check_template(definition.payload, after=definition.awaited is not None)
    payload = msgspec.json.encode(definition.payload).decode()
    reason, model = no_runs(definition, job), None
    if reason is None:
        model = _model(job_text, msgspec.json.encode(definition.options))
    limited = bool(job.limits) or definition.limit is not None or definition.rate is not None
    keyed = job.unique is not None or not job.repeatable
    plain = model is not None and model.eligibility is None and model.pipeline is None
    plain = plain and not limited and not keyed and len(definition.lanes) == 1
    return RunTemplate(
        definition,
        definition.lanes,
        job,
        model,
        payload,
        templated,
        reason,
        times=_times(definition),
        limited=limited,
        keyed=keyed,
        ordinary=ordinary_rule(definition) if plain else None,
        place=_place(job, model),
        usual_facts=_facts(job, model, definition.lanes[0], payload),
    )


def _times(definition: ScheduleDefinition) -> Times | None:
    try:
        return definition.shared_times
    except Exception:  # whatever is wrong with its rule is told when it is planned, and is in nobody's way before
        return None


def _place(job: JobDefinition, model: NewRun | None) -> Place:
    if model is None:
        return job.queue, -job.priority, 0, job.name, job.version
    return model.queue, -model.priority, int(model.on_lost in AT_MOST_ONCE), model.job, model.job_version


def _facts(job: JobDefinition, model: NewRun | None, scope: Scope, payload: str, attempts: int | None = None) -> Row:
    where: Row = (scope.kind, scope.id, payload)
    if model is None:
        return job.name, job.version, job.queue, job.priority, *where, None, None, None, attempts or 1, job.on_lost
    place: Row = (job.name, job.version, model.queue, model.priority)
    options: Row = (model.tags, model.metadata, model.overrides)
    return *place, *where, *options, attempts or model.max_attempts, job.on_lost


@lru_cache(maxsize=1_000)
def _job(text: str) -> JobDefinition:
    return msgspec.json.decode(text, type=JobDefinition)


@lru_cache(maxsize=1_000)
def _model(job_text: str, options: bytes) -> NewRun:
    """Schedules mostly differ in what does not matter here: their rule and their payload."""
    return new_run(_job(job_text), "", "{}", msgspec.json.decode(options))


async def patterns_of(tx: Tx, texts: Sequence[str]) -> list[RunTemplate | str]:
    """One for each definition; a text says why there is none. Many schedules may have the same."""
    templates: dict[str, RunTemplate | str] = {}
    job_of: dict[str, str] = {}
    for text in set(texts):
        try:
            job_of[text] = decoded(text).job
        except UnreadableSchedule as error:
            templates[text] = str(error)
    # Read each time, though templates are cached: a job may have been declared anew by another process. The texts are
    # the key of the cache, so nothing needs to be invalidated.
    names = [(name,) for name in sorted(set(job_of.values()))]
    jobs: dict[str, str] = dict(await tx.fetch("job_definitions", names)) if names else {}  # type: ignore[arg-type]
    for text, job in job_of.items():
        job_text = jobs.get(job)
        try:
            templates[text] = f"no job is called {job!r}" if job_text is None else _template(text, job_text)
        except (RotaError, msgspec.DecodeError) as error:
            templates[text] = str(error)
    return [templates[text] for text in texts]


async def required_pattern(tx: Tx, row: ScheduleRow) -> RunTemplate:
    """Return the template of a schedule whose runs somebody asks for now. Raise if its job accepts none."""
    job = row.definition.job
    if row.job_paused and await tx.fetch("cancel_of_job", job=job):
        require_verb(job, Standing.CANCELLED, JobVerb.RUN)
    (pattern,) = await patterns_of(tx, [row.text])
    if isinstance(pattern, str):
        raise UnknownJob(job)
    if pattern.model is None:
        raise JobDisabled(pattern.job.name)
    return pattern


async def make_runs(tx: Tx, pairs: Sequence[Pair], now: int, under: Under) -> list[Pair]:
    """Do everything that the decisions say; return those that are live runs now: their lanes have to know."""
    # Mostly nothing but its time holds a run back. Then no run, limit or key of others is locked.
    gates: dict[str, tuple[Gate, ...]] = {}
    behind: list[tuple[str, str]] = []
    if under or any(planned.decision is not PLAIN or work.template.is_checked for work, planned in pairs):
        limited = [(work, planned) for work, planned in pairs if under or work.template.limited]
        found = {planned.run_id: _gates(work, planned, under) for work, planned in limited}
        gates = {run_id: own for run_id, own in found.items() if own}
        pairs = await _admitted(tx, _without_each_other(pairs), gates)
        behind = _behind(pairs)
    new_ids = await tx.hot.insert_planned([_run_row(work, planned, now) for work, planned in pairs])
    inserted = [(work, planned) for work, planned in pairs if new_ids is None or planned.run_id in new_ids]
    creates = [(work, planned) for work, planned in inserted if creates_run(planned)]
    if len(creates) < len(inserted):
        skipped = [planned.run_id for _, planned in inserted if not creates_run(planned)]
        await end(tx, EndedRuns(dict.fromkeys(skipped, "skipped"), is_new=True))
    if not creates:
        return []
    # Before the ready rows, whose hold says whether there is something to wait for.
    waiting = await waits.follow(tx, behind) if behind else set()
    tx.wake(*{work.template.model.queue for work, _ in creates if work.template.model})
    ready = [_ready_row(work, planned, now, waiting, gates.get(planned.run_id, ())) for work, planned in creates]
    await tx.fetch("insert_planned_ready", ready)
    models = [(planned.run_id, work.template.model) for work, planned in creates]
    gated = [_gated(work, planned, gates[planned.run_id]) for work, planned in creates if planned.run_id in gates]
    await put_in_place(tx, models, gated)
    return creates


async def put_in_place(tx: Tx, runs: Sequence[tuple[str, NewRun | None]], gated: Iterable[LimitedRun]) -> None:
    """New runs, made after a model, that are ready: who does them, as several or in parts, and under which limits."""
    staffed = [(id, model.eligibility) for id, model in runs if model is not None and model.eligibility]
    if staffed:
        await requirements.assign(tx, staffed)
        if any(eligibility.conducts for _, eligibility in staffed):
            tx.wake(CONDUCTOR)
    await pipeline_stages.begin_like(tx, runs)
    if under_limits := [run for run in gated if run.gates]:
        await admit.install(tx, under_limits)


def lane_run(work: PlannedSchedule, planned: Planned) -> Row:
    return work.row.id, planned.scope.kind, planned.scope.id, planned.run_id


def creates_run(planned: Planned) -> bool:
    return isinstance(planned.decision, Create)


def _gates(work: PlannedSchedule, planned: Planned, under: Under) -> tuple[Gate, ...]:
    """Narrowest first: those of a key, the schedule's, the job's, the scope's."""
    if not isinstance(planned.decision, Create):
        return ()
    template, unlimited = work.template, planned.decision.unlimited
    of_job = gates_of(template.job, planned.scope, _payload(work, planned), unlimited=unlimited)
    own = template.definition.gates(work.row.id, work.row.name, unlimited=unlimited)
    return (*with_limits_of_schedule(of_job, own), *template.under(under, planned.scope))


def _gated(work: PlannedSchedule, planned: Planned, gates: tuple[Gate, ...]) -> LimitedRun:
    template = work.template
    return LimitedRun(planned.run_id, template.job.name, gates, bool(template.job.pipeline), template.place[1])


async def _admitted(tx: Tx, pairs: Sequence[Pair], gates: dict[str, tuple[Gate, ...]]) -> list[Pair]:
    """Skip what a limit, or a key that another run holds, does not let be; and nobody makes way for it."""
    concerned = [(work, planned) for work, planned in pairs if _is_asked(work, planned, gates)]
    if not concerned:
        return list(pairs)
    gated = [_gated(work, planned, gates[planned.run_id]) for work, planned in concerned if gates.get(planned.run_id)]
    # Keys last, as whoever enqueues: runs, limits, keys.
    await _lock(tx, pairs, [run for run in gated if run.decided])
    with_keys = [(work, planned) for work, planned in concerned if work.template.keyed]
    keyed = [_keyed_run(work, planned, gates.get(planned.run_id, ())) for work, planned in with_keys]
    keys = enqueue.Keys(tx, keyed)
    await keys.lock()
    holds = {run.id: run.holds for run in keyed}
    runs = [_applicant(work, planned, gates, holds.get(planned.run_id, ())) for work, planned in concerned]
    now, holders = await keys.read()
    fixed = {id for work, planned in concerned for id in _fixed(work, planned)}
    facts = await admit.read(tx, runs, fixed, keys.replaceable(holders))
    facts.now, facts.holders = now, holders
    answers = list(zip(runs, decide_all(runs, facts), strict=True))
    for run, decision in answers:
        if isinstance(decision, Admitted | Superseded):
            for other in run.displaces:
                await cancel.supersede(tx, other, superseded_by(run.id), OVERLAP)
            await admit.give_way(tx, run, decision.stops)
    await keys.settle([(run.id, decision) for run, decision in answers])
    reasons = {run.id: decision.reason for run, decision in answers if not isinstance(decision, Admitted)}
    return (
        [(work, _skipped(planned, reasons.get(planned.run_id))) for work, planned in pairs] if reasons else list(pairs)
    )


def _is_asked(work: PlannedSchedule, planned: Planned, gates: dict[str, tuple[Gate, ...]]) -> bool:
    """Return whether limits or keys have a say in this run, or others make way for it."""
    if not isinstance(planned.decision, Create):
        return False
    decides = any(gate.decides for gate in gates.get(planned.run_id, ()))
    return decides or work.template.keyed or bool(planned.decision.displaces or planned.decision.after)


def _applicant(
    work: PlannedSchedule, planned: Planned, gates: dict[str, tuple[Gate, ...]], holds: tuple[KeyHold, ...]
) -> Applicant:
    assert isinstance(planned.decision, Create)
    displaces = planned.decision.displaces
    return Applicant(planned.run_id, work.template.job.name, gates.get(planned.run_id, ()), holds, displaces)


def _fixed(work: PlannedSchedule, planned: Planned) -> tuple[str, ...]:
    """Return the runs that it wants to cancel, if its job does not support that."""
    cancels = planned.decision.cancels if isinstance(planned.decision, Create) else ()
    return () if work.template.job.cancel.supported else cancels


def _keyed_run(work: PlannedSchedule, planned: Planned, gates: tuple[Gate, ...]) -> NewRun:
    """Build a keyed run with all that a run which it replaces gets of it; the model's limits are those of no payload
    and no scope.
    """
    model, job = work.template.model, work.template.job
    assert model is not None
    payload = _payload(work, planned)
    single = isinstance(planned.decision, Create) and planned.decision.single
    holds = key_holds(job, planned.scope, None, payload, {})
    attempts = 1 if single else model.max_attempts
    values = {"payload": payload, "holds": holds, "gates": gates, "run_at": planned.eligible_at}
    return msgspec.structs.replace(model, id=planned.run_id, max_attempts=attempts, **values)


def _skipped(planned: Planned, reason: str | None) -> Planned:
    return planned if reason is None else msgspec.structs.replace(planned, decision=Skip(reason))


async def _lock(tx: Tx, pairs: Sequence[Pair], decided: Sequence[LimitedRun]) -> None:
    """Lock everybody else's runs that this will touch, in one go and in order, because a batch that ends meanwhile does
    the same: with those that a limit lets give way. Then the limits.
    """
    coming = {planned.run_id for _, planned in pairs}
    decisions = [planned.decision for _, planned in pairs if isinstance(planned.decision, Create)]
    displaced = {id for create in decisions for id in (*create.supersedes, *create.cancels)} - coming
    # Those that end or begin to wait with them, too: each would be locked when its turn comes, in no order.
    others = await cancel.entangled(tx, displaced)
    touched = displaced.union(others, *(create.after for create in decisions)) - coming
    if decided:
        await admit.lock(tx, decided, touched)
    else:
        # Leases and rows of runs before any key, even without limits: a report that ends one holds its lease first.
        await cancel.reserve(tx, touched)


def _behind(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    """List who waits for whom. One that was claimed meanwhile was asked to stop, not ended: it is waited for, too."""
    creates = [(planned.run_id, planned.decision) for _, planned in pairs if isinstance(planned.decision, Create)]
    return [(run_id, other) for run_id, create in creates for other in (*create.supersedes, *create.after)]


def _without_each_other(pairs: Sequence[Pair]) -> list[Pair]:
    """Drop plan times that another one, decided together with them, makes needless before they ever were runs.

    Whatever that one was to end, or to wait for, falls to the one that takes its place.
    """
    creates = {planned.run_id: planned.decision for _, planned in pairs if isinstance(planned.decision, Create)}
    by: dict[str, str] = {}
    for run_id, decision in creates.items():
        needless = [id for id in decision.supersedes if id in creates]
        by.update(dict.fromkeys(needless, run_id))
        creates[run_id] = reduce(_heir, [(id, creates[id]) for id in needless], decision)
    if not by:
        return list(pairs)
    placed = [
        (work, msgspec.structs.replace(planned, decision=creates.get(planned.run_id, planned.decision)))
        for work, planned in pairs
    ]
    return [
        (work, _skipped(planned, superseded_by(by[planned.run_id]) if planned.run_id in by else None))
        for work, planned in placed
    ]


def _heir(decision: Create, needless: tuple[str, Create]) -> Create:
    id, dropped = needless
    others = [other for other in decision.supersedes if other != id]
    return msgspec.structs.replace(
        decision,
        supersedes=tuple(dict.fromkeys((*dropped.supersedes, *others))),
        cancels=tuple(dict.fromkeys((*dropped.cancels, *decision.cancels))),
        after=tuple(dict.fromkeys((*dropped.after, *decision.after))),
    )


def _run_row(work: PlannedSchedule, planned: Planned, now: int) -> Row:
    decision = planned.decision
    attempts = decision.attempt if isinstance(decision, Create) and decision.single else None
    return (
        planned.run_id,
        *work.template.facts(planned.scope, _payload(work, planned), attempts),
        now,
        planned.eligible_at,
        work.row.id,
        None if planned.by_hand else planned.plan_time,
        planned.covers_from,
        planned.covered or None,
        *(("skipped", decision.reason, 0, 0, now) if isinstance(decision, Skip) else _LIVE),
    )


def plain_runs(ids: Column, facts: Sequence[Row], now: int, ats: Column, schedules: Column, plans: Column) -> Columns:
    """Build the same rows for plan times that cover no other; `facts` as their templates tell."""
    nothing = [(None,)] * (2 + len(_LIVE))
    return Columns(len(ids), [ids, *columns_of(facts), (now,), column(ats), schedules, column(plans), *nothing])


def plain_facts(row: ScheduleRow, template: RunTemplate, plan_time: int) -> Row:
    """Return the facts of a run with the one scope of its schedule."""
    if not template.templated:
        return template.usual_facts
    (scope,) = template.scopes
    return template.facts(scope, template.payload_for(row.name, scope, plan_time))


def _payload(work: PlannedSchedule, planned: Planned) -> str:
    return work.template.payload_for(work.row.name, planned.scope, planned.plan_time)


def _ready_row(work: PlannedSchedule, planned: Planned, now: int, waiting: set[str], gates: tuple[Gate, ...]) -> Row:
    decision, at = planned.decision, planned.eligible_at
    assert isinstance(decision, Create)
    admission = Admission.BLOCKED if planned.run_id in waiting else Admission.LIMITED if gates else Admission.OPEN
    hold = hold_of(admission, due=at <= now)
    queue, rank, solo, job, version = work.template.place
    key = line_key(gates) if gates else None
    return planned.run_id, queue, rank, at, hold, solo, decision.attempt - 1, job, version, key


def plain_ready(ids: Column, places: Sequence[Row], now: int, ats: Column) -> Columns:
    """Build the same rows for runs that nothing but their time holds back."""
    queue, rank, solo, job, version = columns_of(places)
    holds = column([_OPEN if at <= now else _OPEN_LATER for at in ats])
    return Columns(len(ids), [ids, queue, rank, column(ats), holds, solo, (0,), job, version, (None,)])
