"""P1, P3, P4, P5 by brute force: every instant that a schedule named has exactly one answer, and no other has any.

Nothing of rota's own calendar or ledger is used: the revisions say what was named when, the oracle which instants that
are, and the rows of runs and ranges what became of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec

from rota.values.scope import GLOBAL
from tests.simulation.checks.cron_oracle import CronOracle, Walk
from tests.simulation.script.entries import AddSchedule, ChangeSchedule
from tests.simulation.world.observer import Finding, Remains

if TYPE_CHECKING:
    from tests.simulation.world.world import World

SECOND = 1_000_000
_HOUR = 3_600
_MARGIN = 3 * _HOUR  # no clock is set by more

_REVISIONS = "select schedule_id, valid_from, definition, active from rota_revision order by schedule_id, no"
_SCHEDULES = "select id, name, cursor_at from rota_schedule_now order by name"
_RUNS = """
select schedule_id, scope_kind, scope_id, plan_time, covers_from, missed_count, created_at, backfilled from rota_run
where schedule_id is not null and plan_time is not null and retry_of is null
"""
_RANGES = "select schedule_id, scope_kind, scope_id, from_at, to_at, count, kind from rota_range"


class Answer(msgspec.Struct, frozen=True):
    """What stands for some plan times: a run for its own and those it covers, or a range."""

    first: int
    last: int
    count: int
    own: bool
    backfilled: bool = False
    sparse: bool = False  # not all plan times between its ends: some have kept their runs


def plan_times_are_answered(world: Remains) -> Iterator[Finding]:
    look = world.backend.look
    revisions: dict[str, list[tuple[int, dict[str, Any], bool]]] = {}
    for id, valid_from, definition, active in look(_REVISIONS):
        revisions.setdefault(str(id), []).append((valid_from, msgspec.json.decode(definition), bool(active)))
    answers: dict[tuple[str, str, str], list[Answer]] = {}
    for id, kind, name, plan_time, covers_from, missed, _, backfilled in look(_RUNS):
        found = answers.setdefault((str(id), kind, name), [])
        found.append(Answer(plan_time, plan_time, 1, True, bool(backfilled)))
        if missed:
            found.append(Answer(covers_from, plan_time - 1, missed, False))
    changes = [entry for entry in world.script.entries if isinstance(entry, ChangeSchedule)]
    backfilled = {entry.name for entry in changes if entry.verb == "backfill"}
    ranges = [(str(row[0]), *row[1:]) for row in look(_RANGES)]
    for id, name, cursor in look(_SCHEDULES):
        history = revisions[str(id)]
        if history[0][1]["rule"]["trigger"]["type"] == "after" or "provider" in history[0][1]:
            continue  # nobody else knows what these named; the ledger is asked about them below
        named = named_instants(history, cursor)
        for scope in history[0][1].get("scopes") or [{"kind": GLOBAL.kind, "id": GLOBAL.id}]:
            own = list(answers.get((str(id), scope["kind"], scope["id"]), ()))
            own += [
                Answer(from_at, to_at, count, False, sparse=what != "missed")
                for of, kind, which, from_at, to_at, count, what in ranges
                if of == str(id) and (kind, which) in (("", ""), (scope["kind"], scope["id"]))
            ]
            for promise, message in account(named, own, world.script.start, backfills=name in backfilled):
                yield promise, f"{name}, scope {scope['kind']}:{scope['id']}: {message}"


def max_runs_is_kept(world: World) -> Iterator[Finding]:
    """P3: a schedule that ends after so many names no more."""
    limits = {entry.name: entry.options["max_runs"] for entry in _added(world) if "max_runs" in entry.options}
    made: Counter[tuple[str, tuple[str, str]]] = Counter()
    names = {str(id): name for id, name, _ in world.backend.look(_SCHEDULES)}
    for change in world.changes:
        seen = change.after
        if change.before is None and seen and seen.schedule_id and seen.plan_time is not None:
            made[names.get(seen.schedule_id, "?"), seen.scope] += not seen.backfilled and not seen.retry_of
    for (name, scope), count in made.items():
        if count > limits.get(name, count):
            yield "P3", f"{name} made {count} runs for {scope}, and may make {limits[name]}"


def _added(world: World) -> list[AddSchedule]:
    return [entry for entry in world.script.entries if isinstance(entry, AddSchedule)]


def account(
    named: Sequence[int], answers: Sequence[Answer], start: int = 0, *, backfills: bool = False
) -> Iterator[Finding]:
    """`named` are in order. Times are told in seconds since `start`. What was backfilled need not have been named."""
    times: Counter[int] = Counter()
    known = set(named)
    for answer in answers:
        if answer.sparse:
            continue
        within = named[bisect_left(named, answer.first) : bisect_right(named, answer.last)]
        if answer.own and answer.first not in known:
            if not answer.backfilled:
                yield "P3", f"a run for {_told(answer.first, start)}, which was not named"
            continue
        if len(within) != answer.count:
            where = f"{_told(answer.first, start)} to {_told(answer.last, start)}"
            yield "P4", f"{answer.count} plan times are said to be in {where}, and {len(within)} were named there"
        times.update(within)
    yield from _prune(named, [answer for answer in answers if answer.sparse], times, answers, backfills=backfills)
    for at in named:
        if times[at] != 1:
            yield "P1", f"plan time {_told(at, start)} has {times[at]} answers"


def _prune(
    named: Sequence[int], pruned: Sequence[Answer], times: Counter[int], answers: Sequence[Answer], *, backfills: bool
) -> Iterator[Finding]:
    """Of pruned ones only the number is known, and between which they were: any that has no other answer will do."""
    left = {place: answer.count for place, answer in enumerate(pruned)}
    for at in named:
        fitting = [place for place, count in left.items() if count and pruned[place].first <= at <= pruned[place].last]
        if not times[at] and fitting:  # the one that ends first has the least choice
            left[min(fitting, key=lambda place: pruned[place].last)] -= 1
            times[at] += 1
    for place, count in left.items():
        if count and not any(one.backfilled for one in answers) and not backfills:
            yield (
                "P4",
                f"{count} of the {pruned[place].count} plan times that are said to be pruned have another answer",
            )


def _told(at: int, start: int) -> str:
    return f"{(at - start) / SECOND:.3f}s"


def named_instants(history: Sequence[tuple[int, dict[str, Any], bool]], cursor: int) -> list[int]:
    """Of every revision while it was in force: from its beginning, which belongs to the one before it, to its end."""
    ends = [valid_from for valid_from, _, _ in history[1:]] + [max(cursor, history[-1][0])]
    named: list[int] = []
    for (valid_from, definition, active), end in zip(history, ends, strict=True):
        if active:
            named += _instants(definition["rule"]["trigger"], valid_from, end)
    return named


def _instants(trigger: dict[str, Any], after: int, until: int) -> list[int]:
    if trigger["type"] == "every":
        size = msgspec.convert(trigger["interval"], timedelta) // timedelta(microseconds=1)
        first = (after // size + 1) * size
        return list(range(first, until + 1, size))
    fires: list[int] = []
    for hour in range(after // SECOND // _HOUR, until // SECOND // _HOUR + 1):
        fires += _fires(trigger["expression"], trigger.get("timezone", "UTC"), hour)
    return [at for at in fires if after < at <= until]


@lru_cache(maxsize=10_000)
def _fires(expression: str, zone: str, hour: int) -> list[int]:
    """Those of one hour since the epoch: worlds begin at the same few moments, and the oracle is slow."""
    return [at * SECOND for at in CronOracle(expression).fires(_walk(zone, hour))]


@lru_cache(maxsize=1_000)
def _walk(zone: str, hour: int) -> Walk:
    return Walk(ZoneInfo(zone), hour * _HOUR, (hour + 1) * _HOUR - 1, _MARGIN)
