"""Plan schedules into runs: locked rows in, decided by core, everything they change written in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.ledger.verify import is_zoned
from rota.core.planning.overlap_and_failure import Create, Skip
from rota.core.planning.tally import Tally, skip_kind
from rota.core.planning.tick import ScheduleState, Tick, following_plan, tick
from rota.core.schedules.policies import CatchUp
from rota.errors import RotaError
from rota.store.alerts.emit_signal import tell_missed
from rota.store.databases.database import Row, Tx
from rota.store.limits import quotas
from rota.store.limits.quotas import Under
from rota.store.planning.fast_path import DueSchedule, make_ordinary, ordinary_fires
from rota.store.planning.lanes import changed_lanes, read_lanes, up_to_date
from rota.store.planning.make_runs import Pair, PlannedSchedule, RunTemplate, lane_run, make_runs, patterns_of
from rota.store.planning.scope_spans import newcomers_of, note_spans
from rota.store.schedules.schedule_row import NOTHING_READ, Read, ScheduleRow
from rota.values.scope import GLOBAL, Scope

MOST_RUNS = 5_000
"""That one planning transaction makes: more would not be done before its deadline."""
REST_AFTER_TROUBLE = 30_000_000
_NOBODY: frozenset[Scope] = frozenset()

Providers = Mapping[str, tuple[Scope, ...]]
NewId = Callable[[], str]


class Planning(msgspec.Struct, frozen=True):
    """Result of a planning transaction: schedules looked at, runs made, what was decided, and the definitions that had
    to be read.
    """

    schedules: int
    runs: int
    tally: Tally = msgspec.field(default_factory=Tally)
    read: Read = NOTHING_READ


NOTHING = Planning(0, 0)


async def plan_rows(
    tx: Tx,
    rows: Sequence[ScheduleRow],
    new_id: NewId,
    providers: Providers,
    *,
    settle: bool = False,
    catch_up: CatchUp | None = None,
) -> Planning:
    """Decide all that is due; with `settle`, every plan time up to now, though its delay may not be over."""
    if not rows:
        return NOTHING
    # One instant for the batch, and the database's: hosts disagree, and a decision must not depend on its place in
    # line.
    ((now, live),) = await tx.fetch("now_and_live_limits")
    schedules, troubled = await _with_templates(tx, rows)
    rows = [schedule.row for schedule in schedules]
    scopes = {schedule.row.id: _scopes_of(schedule, providers) for schedule in schedules}
    lanes = await read_lanes(tx, rows, scopes)
    newcomers = await newcomers_of(tx, rows, scopes) if providers else {}
    named = {scope for scopes_of_one in set(scopes.values()) for scope in scopes_of_one}
    under = quotas.NOTHING
    if live or named - {GLOBAL}:
        places = {(schedule.template.job.name, schedule.template.place[0]) for schedule in schedules} if live else ()
        under = await quotas.under(tx, named, places, planned=True)
    simply = not settle and catch_up is None
    fires, remaining = ordinary_fires(schedules, lanes, under, int(now)) if simply else ([], schedules)
    works, runs = [], len(fires)
    for schedule in remaining:
        row, template = schedule.row, schedule.template
        try:
            own_lanes = lanes.of(row.id)
            standing = up_to_date(row, template.definition, own_lanes, lanes.ended, int(now))
            one_by_one = template.decides or _decide(under, template, own_lanes.lanes)
            decision = tick(
                _under(standing, catch_up, len(own_lanes.lanes), one_at_a_time=one_by_one),
                own_lanes.lanes,
                int(now),
                new_id=new_id,
                max_attempts=template.job.retry.max_attempts,
                refuse=template.refuse,
                horizon=int(now) if settle else None,
                newcomers=newcomers.get(row.id, _NOBODY),
            )
        except RotaError as error:  # such as a time zone that this program does not know
            troubled.append((row.cursor_no, str(error), REST_AFTER_TROUBLE))
        else:
            works.append(PlannedSchedule(row, standing, template, own_lanes, decision))
            runs += len(decision.planned)
            if runs >= MOST_RUNS:  # the rest stays due
                break
    # A schedule that cannot be planned rests and says why; it must neither fail the batch nor be due again at once.
    if troubled:
        await tx.fetch("note_trouble", troubled)
    planning = await _apply(tx, works, int(now), providers, under) if works else NOTHING
    if not fires:
        return planning
    tally = await make_ordinary(tx, fires, int(now), new_id)
    return Planning(len(works) + len(fires), runs, planning.tally.plus(tally) if works else tally)


async def _with_templates(tx: Tx, rows: Sequence[ScheduleRow]) -> tuple[list[DueSchedule], list[Row]]:
    """Return rows with what their runs are like, and trouble to note of those of which that cannot be told."""
    schedules, troubled = list[DueSchedule](), list[Row]()
    for row, template in zip(rows, await patterns_of(tx, [row.text for row in rows]), strict=True):
        if isinstance(template, RunTemplate):
            schedules.append(DueSchedule(row, template))
        else:
            troubled.append((row.cursor_no, template, REST_AFTER_TROUBLE))
    return schedules, troubled


def _scopes_of(schedule: DueSchedule, providers: Providers) -> tuple[Scope, ...]:
    return providers[schedule.row.provider] if schedule.row.provider else schedule.template.scopes


def _decide(under: Under, template: RunTemplate, scopes: Iterable[Scope]) -> bool:
    return bool(under) and any(gate.decides for scope in scopes for gate in template.under(under, scope))


def _under(standing: ScheduleState, catch_up: CatchUp | None, scopes: int, *, one_at_a_time: bool) -> ScheduleState:
    """No more plan times than one transaction holds; one, where each decision has to see what the database said to
    the one before it.
    """
    if catch_up is not None and catch_up.runs_each and standing.definition.overlap.drops_all_but_one:
        standing = standing.queueing()  # whoever wants all of them does not want them to skip each other
    policy = catch_up or standing.definition.catch_up
    if not policy.runs_each and catch_up is None:
        return standing
    most = 1 if one_at_a_time else max(1, MOST_RUNS // max(1, scopes))
    if policy.runs_each and policy.per_tick > most:
        policy = msgspec.structs.replace(policy, per_tick=most)
    return standing if policy is standing.definition.catch_up else standing.catching_up(policy)


async def _apply(tx: Tx, works: Sequence[PlannedSchedule], now: int, providers: Providers, under: Under) -> Planning:
    runs = [(work, planned) for work in works for planned in work.tick.planned]
    created = await make_runs(tx, runs, now, under) if runs else []
    _name_next_plans(works, {planned.run_id for _, planned in created}, now)
    opened = {work.row.cursor_no: planned.plan_time for work, planned in created if _is_alone(work)}
    lane_runs = [lane_run(work, planned) for work, planned in created if work.row.cursor_no not in opened]
    if lane_runs:
        await tx.fetch("insert_lane_runs", lane_runs)
    missed = [
        (work.row.id, gap.from_at, gap.to_at, gap.reason, gap.count) for work in works for gap in work.tick.missed
    ]
    if missed:
        await tx.fetch("insert_ranges", missed)
        await tell_missed(tx, [(work.row, gap) for work in works for gap in work.tick.missed])
    digested = [row for work in works for row in work.lanes.digested]
    if digested:
        await tx.fetch("digest_lane_runs", digested)
    saved = [row for work in works for row in changed_lanes(work.row.id, work.lanes, work.tick.lanes)]
    if saved:
        await tx.fetch("save_lanes", saved)
    await note_spans(tx, [(work.row, providers[work.row.provider], work.tick) for work in works if work.row.provider])
    tzdata = TZDATA_VERSION
    # With the runs, in one transaction: whatever happens, no plan time is made twice or passed over. Cursors are locked
    # since they were read, so they may be written last.
    await tx.fetch("advance_cursors", [_advanced(work, opened, tzdata) for work in works])
    for work in works:
        if work.row.tzdata != tzdata or work.tick.next_plan is None:
            await _note_changes(tx, work)
    return Planning(len(works), len(runs), _tally(works, created, now, under))


def _name_next_plans(works: Sequence[PlannedSchedule], created_ids: set[str], now: int) -> None:
    """Name the next plan time of schedules that would follow a run which a limit or a key did not let be."""
    for work in works:
        done = work.tick
        if done.awaits is not None and done.awaits not in created_ids and _is_planned(done, done.awaits):
            next_plan = following_plan(work.standing, now)
            next_at = None if next_plan is None else next_plan + work.standing.definition.delay_micros
            work.tick = msgspec.structs.replace(done, awaits=None, next_plan=next_plan, next_at=next_at)


def _is_planned(done: Tick, run_id: str) -> bool:
    return any(planned.run_id == run_id for planned in done.planned)


def _tally(works: Sequence[PlannedSchedule], created: Sequence[Pair], now: int, under: Under) -> Tally:
    """Tally a batch: what a tick wanted to run and was not made, a limit, a key or a later plan time did not let be."""
    tally, created_ids = Tally(), {planned.run_id for _, planned in created}
    for work in works:
        subject = work.template.subject
        tally.missed_in(subject, work.tick.missed)
        for planned in work.tick.planned:
            if planned.run_id in created_ids:
                tally.ran_or_waits(subject, planned, now)
            elif isinstance(planned.decision, Skip):
                tally.skipped_for(skip_kind(planned.decision), subject, planned)
            elif _superseded(work, planned.run_id):
                tally.skipped_for("overlap", subject, planned)
            elif work.template.limited or _decides(work, planned.scope, under):
                tally.skipped_for("limit", subject, planned)
            else:
                tally.skipped_for("unique" if work.template.keyed else "overlap", subject, planned)
    return tally


def _decides(work: PlannedSchedule, scope: Scope, under: Under) -> bool:
    return _decide(under, work.template, (scope,))


def _superseded(work: PlannedSchedule, run_id: str) -> bool:
    return any(
        run_id in planned.decision.supersedes for planned in work.tick.planned if isinstance(planned.decision, Create)
    )


def _is_alone(work: PlannedSchedule) -> bool:
    """Return whether the plan time of its new run is enough to find it again: another one has no such place."""
    return len(work.tick.planned) == 1 and work.lanes.open_plan is None and work.row.provider is None


def _waits_for(work: PlannedSchedule) -> str | None:
    """The run whose end names the next plan time: the one just planned, or the one that is awaited still."""
    if work.tick.planned or work.row.awaits is None:
        return work.tick.awaits
    return work.row.awaits if work.standing.next_plan is None else None


def _advanced(work: PlannedSchedule, opened: Mapping[int, int], tzdata: str) -> Row:
    no, done = work.row.cursor_no, work.tick
    open_plan = opened.get(no, work.lanes.open_plan)
    return (no, done.cursor, done.next_plan, done.next_at, open_plan, done.fired, _waits_for(work), tzdata)


async def _note_changes(tx: Tx, work: PlannedSchedule) -> None:
    """Note what planning itself changes about a schedule: a revision like any other."""
    row, revision, tzdata = work.row, work.row.revision, TZDATA_VERSION
    if row.tzdata != tzdata and is_zoned(row.definition.rule):
        revision += 1
        await _revise(tx, work, revision, work.standing.cursor, active=1, note=f"time zone data {tzdata}")
    if work.tick.pause is not None:
        revision += 1
        await _revise(tx, work, revision, work.tick.cursor, active=0, note=f"paused: {work.tick.pause}")
        await tx.fetch("pause_planned", id=row.id, reason=work.tick.pause)
    elif work.standing.room and work.tick.fired - work.standing.fired >= work.standing.room:
        revision += 1
        note = f"ended: its max_runs were {work.standing.definition.max_runs}"
        await _revise(tx, work, revision, work.tick.cursor, active=0, note=note)
    if revision != row.revision:
        await tx.fetch("revise_schedule", id=row.id, revision=revision)


async def _revise(tx: Tx, work: PlannedSchedule, no: int, valid_from: int, *, active: int, note: str) -> None:
    await tx.fetch(
        "insert_revision",
        id=work.row.id,
        no=no,
        valid_from=valid_from,
        definition=work.row.text,
        tzdata=TZDATA_VERSION,
        active=active,
        note=note,
        actor="planner",
    )
