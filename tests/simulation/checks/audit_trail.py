"""P17: the trail of each run, compared with what was seen of it commit by commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from rota.core.ledger.audit import CLIENT, CONDUCTOR, EXTERNAL, HANDED_OVER, PLANNER, PROMOTER, REAPER, Event
from rota.core.states import LEGAL_CHANGES, Outcome, RunState
from rota.store.databases.database import drive
from rota.values.actor import POLICY, is_policy
from rota.values.instants import micros_at
from tests.simulation.application.data_jobs import DATA_PIPELINES
from tests.simulation.application.pipelines import PIPELINES
from tests.simulation.script.entries import Jump
from tests.simulation.world.backends import Direct
from tests.simulation.world.observer import Change, Finding, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

_QUEUED = (0, 2, 6)  # what holds a run back that only waits for a free worker: nothing, its limits, or its needs
_TWICE = """
select kind, subject, type, at, count(*) from rota_event
group by kind, subject, type, at, coalesce(actor, ''), coalesce(fence, -1), coalesce(details, '') having count(*) > 1
"""
CLIENTS = ("client-1", "client-2")
HAND = "the end"
"""Who gives up what waits in vain, when all is over."""
POLICIES = (f"{POLICY}overlap", f"{POLICY}limit")
CANCELS_MANY = ("cancel_many", "cancel_job", "delete_job")
"""Verbs of clients that cancel all runs of a job."""
_ENDS = {outcome.value for outcome in Outcome}


class Moment(msgspec.Struct, frozen=True):
    """A state that a run was seen in, since a commit at `now`."""

    now: int
    state: str
    fence: int
    worker: str | None


def state_of(seen: Seen) -> str:
    if seen.end:
        return seen.end.state
    if seen.lease:
        return "running" if seen.lease.cancel_at is None else "cancelling"
    if seen.external:
        return "waiting" if seen.external.cancel_at is None else "cancelling"
    if seen.conduct:
        return "waiting" if seen.conduct.cancel_at is None else "cancelling"
    return "queued" if seen.place and seen.place.hold in _QUEUED else "scheduled"


def lives(changes: Iterable[Change]) -> dict[str, list[Moment]]:
    """What was seen of each run, as far as its state or its holder changed."""
    found: dict[str, list[Moment]] = {}
    for change in changes:
        seen = change.after
        if seen is None:
            continue
        worker = seen.lease.worker if seen.lease else None
        moment = Moment(change.now, state_of(seen), seen.fence, worker)
        known = found.setdefault(seen.id, [])
        last = known[-1] if known else None
        put_back = worker or seen.job in (
            *PIPELINES,
            *DATA_PIPELINES,
        )  # of a pipeline that is paused: claimed and put back in one
        if last is None or last.state != moment.state or (put_back and last.fence != moment.fence):
            known.append(moment)
    return found


def trails_are_true(world: World, *, live: bool = False) -> Iterator[Finding]:
    """Of all runs that are still there, or only of those that are not final yet."""
    store = Direct(world.backend, world.clock).store()
    is_steady = not any(isinstance(entry, Jump) and entry.by < 0 for entry in world.script.entries)
    asked = _who_asked(world)
    for run_id, moments in lives(world.changes).items():
        seen = world.observer.runs.get(run_id)
        if seen is None or (live and seen.end):
            continue
        trail = drive(store.ledger.events_of_run(run_id))
        problems = [*_same(trail, moments), *in_order(trail, is_steady=is_steady), *_by_somebody(trail, seen, asked)]
        for problem in problems[:1]:
            told = "".join(f"\n        {_line(event)}" for event in trail)
            saw = "".join(f"\n        {moment.now} {moment.state} ({moment.fence})" for moment in moments)
            yield "P17", f"{problem}: {seen}\n      told:{told}\n      seen:{saw}"
    for kind, subject, what, at, times in world.backend.look(_TWICE):
        yield "P17", f"{kind} {subject} was {what} at {at}, and that is told {times} times"


def _line(event: Event) -> str:
    change = f"{event.from_state} -> {event.to_state} ({event.fence}) by {event.actor}"
    return f"{micros_at(event.at)} {event.type}: {change}"


def _same(trail: Sequence[Event], moments: Sequence[Moment]) -> Iterator[str]:
    """Every state that was seen, in order, and none besides but within one transaction. A run is due before that is
    looked after."""
    told = [event for event in trail if event.to_state is not None]
    place = 0
    for moment in moments:
        while place < len(told) and not _is(told[place], moment) and micros_at(told[place].at) == moment.now:
            place += 1
        if place == len(told) or not _is(told[place], moment):
            next_one = _line(told[place]) if place < len(told) else "nothing"
            yield f"since {moment.now} it was {moment.state} (fence {moment.fence}), and told is {next_one}"
            return
        place += 1
    if place < len(told):
        yield f"told is more than was seen: {_line(told[place])}"


def _is(event: Event, moment: Moment) -> bool:
    at = micros_at(event.at)
    if event.to_state != moment.state or not (at == moment.now or event.type == "due"):
        return False
    return event.type != "claimed" or (event.fence, event.actor) == (moment.fence, moment.worker)


def in_order(trail: Sequence[Event], *, is_steady: bool) -> Iterator[str]:
    state: RunState | None = None
    before: Event | None = None
    for event in trail:
        if event.to_state is not None:
            if event.from_state is not state:
                yield f"it was {state}, and then {_line(event)}"
            if state is not None and event.to_state not in LEGAL_CHANGES[state]:
                yield f"that is no legal change: {_line(event)}"
            state = event.to_state
        if before is not None and (event.fence or 0) < (before.fence or 0):
            yield f"its fence fell: {_line(before)}, {_line(event)}"
        if before is not None and event.at < before.at and is_steady:
            yield f"its time fell: {_line(before)}, {_line(event)}"
        if before is not None and event.type == "due" and before.at == event.at and before.type != "created":
            yield f"it was due already, and is told to have become so: {_line(before)}, {_line(event)}"
        before = event


def _who_asked(world: World) -> dict[str, set[str]]:
    """To cancel a run or to retry it, by run; and under "" those who asked for many."""
    asked: dict[str, set[str]] = {}
    for call in world.diary.calls:
        asked.setdefault("" if call.verb.endswith(("_many", "_job")) else call.what, set()).add(call.client)
    return asked


def _makers(seen: Seen) -> Sequence[str]:
    if seen.parent_id is not None:
        return (CONDUCTOR,)
    if seen.schedule_id is None:
        return (CLIENT,)
    by_hand = seen.backfilled or seen.plan_time is None
    return CLIENTS if by_hand else (PLANNER, *POLICIES)


def _by_somebody(trail: Sequence[Event], seen: Seen, asked: dict[str, set[str]]) -> Iterator[str]:
    """Who did it is told, and it was them. A run that another one releases, and one that is replaced, have nobody."""
    holders: dict[int | None, tuple[str | None, ...]] = {
        event.fence: (event.actor,) for event in trail if event.type == "claimed"
    }
    holders |= {event.fence: (EXTERNAL, REAPER) for event in trail if event.type == HANDED_OVER}
    for event in trail:
        who, many = event.actor, asked.get("", set())
        match event.type:
            case "created" if seen.retry_of is not None and not seen.backfilled:
                right = who in asked.get(seen.retry_of, set()) | many
            case "created":
                right = who in _makers(seen)
            case "due":
                right = who == PROMOTER
            case "lost":
                right = who == REAPER
            case "cancel_asked":
                right = is_policy(who) or who in asked.get(seen.id, set()) | many | {HAND}
            case kind if kind in _ENDS and event.fence in holders:
                right = who in holders[event.fence]
            case "cancelled" | "superseded" | "skipped":
                right = who is not None
            case _:
                right = True
        if not right:
            yield f"that was not by {who}: {_line(event)}"
