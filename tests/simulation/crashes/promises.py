"""What must hold at the end of every world of a crash scenario, whatever was struck; each yields what does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from rota.engine.loops.janitor import prune
from rota.store.databases.database import drive
from tests.simulation.crashes.world import CrashWorld
from tests.simulation.script.entries import Enqueue
from tests.simulation.world.backends import Direct
from tests.simulation.world.history import Call
from tests.simulation.world.observer import Change, Seen

Promise = Callable[[CrashWorld], Iterator[str]]

_SECOND = 1_000_000
SCHEDULE_PAUSE = (("client-1", "ScheduleStore._changing"), ("client-2", "ScheduleStore._changing"))
"""Who pauses a schedule, and who resumes it."""


def together(*promises: Promise) -> Promise:
    def all_of_them(world: CrashWorld) -> Iterator[str]:
        for promise in promises:
            yield from promise(world)

    return all_of_them


def runs_of(world: CrashWorld) -> list[Seen]:
    """Each as it was last seen, pruned ones too."""
    seen: dict[str, Seen] = {}
    for change in world.changes:
        last = change.after or change.before
        assert last is not None
        seen[last.id] = last
    return list(seen.values())


def creations(world: CrashWorld) -> Iterator[tuple[Change, Seen]]:
    """By rota itself: to quieten a world, its schedules are paused, and that plans, too."""
    for change in world.changes:
        if change.before is None and change.after is not None and change.op != "quieten":
            yield change, change.after


def calls(world: CrashWorld, verb: str) -> list[Call]:
    return [call for call in world.diary.calls if call.verb == verb]


def state_of(run: Seen) -> str:
    return run.end.state if run.end else "live"


def all_succeed(world: CrashWorld) -> Iterator[str]:
    """One success each, under a fence whose handler came to its effect."""
    effects = {(deed.run_id, deed.fence) for deed in world.diary.deeds if deed.what == "effect"}
    for run in runs_of(world):
        if run.end is None or run.end.state != "succeeded":
            yield f"{run} did not succeed"
        elif (run.id, run.end.fence) not in effects:
            yield f"{run} succeeded without having its effect"


def some_run(world: CrashWorld) -> Iterator[str]:
    if not any(deed.what == "effect" for deed in world.diary.deeds):
        yield "nothing ever ran"


def trouble_repeats_nothing(world: CrashWorld) -> Iterator[str]:
    """Only a death costs an attempt: answers that get lost, and a database that refuses once, do not."""
    if not world.strike.blow.startswith("crash"):
        for run_id, times in world.diary.begun.items():
            if times > 1:
                yield f"the handler of {run_id[-6:]} began {times} times, though nobody died"


def all_end(*states: str) -> Promise:
    def promise(world: CrashWorld) -> Iterator[str]:
        for run in runs_of(world):
            if state_of(run) not in states:
                yield f"{run} is not {' or '.join(states)}"

    return promise


def enqueued_whole_or_not(world: CrashWorld) -> Iterator[str]:
    """An acknowledged enqueue made all of its runs, an unanswered one all or none; none made any twice."""
    asked = {place: entry for place, entry in enumerate(world.script.entries) if isinstance(entry, Enqueue)}
    numbers = [msgspec.json.decode(run.payload)["n"] for _, run in creations(world) if run.retry_of is None]
    made = Counter(number // 100 for number in numbers)
    if len(set(numbers)) < len(numbers):
        yield f"made twice: {sorted(numbers)}"
    for (place, entry), call in zip(asked.items(), calls(world, "enqueue"), strict=True):
        allowed = {entry.copies} if call.acknowledged else {0, entry.copies}
        if made[place] not in allowed:
            yield f"{made[place]} of {entry.copies} runs were made by {call}"


def exactly_one_run(world: CrashWorld) -> Iterator[str]:
    if (count := sum(1 for _ in creations(world))) != 1:
        yield f"{count} runs were made instead of one"


def last_enqueue_counts(world: CrashWorld) -> Iterator[str]:
    """Replaced before it began, the run does what the newest acknowledged order says."""
    asked = [place for place, entry in enumerate(world.script.entries) if isinstance(entry, Enqueue)]
    if calls(world, "enqueue")[-1].acknowledged:
        for run in runs_of(world):
            number = msgspec.json.decode(run.payload)["n"]
            if number // 100 != asked[-1]:
                yield f"{run} does entry {number // 100}, not the one that replaced it"


def one_retry_per_answer(world: CrashWorld) -> Iterator[str]:
    made = Counter(run.retry_of for _, run in creations(world) if run.retry_of is not None)
    for call in calls(world, "retry"):
        allowed = {1} if call.acknowledged else {0, 1}
        if made[call.what] not in allowed:
            yield f"{made[call.what]} retries were made by {call}"


def cancelled_if_told(world: CrashWorld) -> Iterator[str]:
    """Whoever was told so can rely on it; unless it was asked and nobody answered, it ends as it would have."""
    ends = {run.id: state_of(run) for run in runs_of(world)}
    for call in calls(world, "cancel"):
        if call.acknowledged and ends[call.what] != "cancelled":
            yield f"{call.what[-6:]} is {ends[call.what]} after {call}"


def never_begins_once_cancelled(world: CrashWorld) -> Iterator[str]:
    cancelled = {run.id for run in runs_of(world) if state_of(run) == "cancelled"}
    for run_id in cancelled & world.diary.begun.keys():
        yield f"{run_id[-6:]} was cancelled before it was claimed, and began"


def begins_once(world: CrashWorld) -> Iterator[str]:
    for run_id, times in world.diary.begun.items():
        if times > 1:
            yield f"the handler of {run_id[-6:]} began {times} times"


def stopping_costs_nothing(world: CrashWorld) -> Iterator[str]:
    """A hand-back is not counted as an attempt; a death is."""
    allowed = 2 if world.strike.blow.startswith("crash") else 1
    for run in runs_of(world):
        if run.end is None or (run.end.attempt or 0) > allowed:
            yield f"{run} used more than {allowed} attempts"


def counted_once(job: str) -> Promise:
    """What was pruned stays in the statistics, and nothing is in them twice; nor after pruning once more."""

    def promise(world: CrashWorld) -> Iterator[str]:
        store = Direct(world.backend, world.clock).store()
        ended = sum(run.job == job and run.end is not None for run in runs_of(world))
        for _ in range(2):
            counted = drive(store.job_stats(job)).total
            if counted != ended:
                yield f"{ended} runs of {job} have ended, and {counted} are counted"
            drive(prune(store))

    return promise


def plan_times(world: CrashWorld) -> list[int]:
    """Of the runs that planning made."""
    found = [run.plan_time for _, run in creations(world) if run.retry_of is None and not run.backfilled]
    return [at for at in found if at is not None]


def each_planned_once(world: CrashWorld) -> Iterator[str]:
    times = Counter(plan_times(world))
    for at, count in times.items():
        if count > 1:
            yield f"{count} runs were made for {at}"


def every_plan_time_runs(seconds: int) -> Promise:
    """Of a schedule that catches up with all of them, from its creation on; and planning went on to the end."""

    def promise(world: CrashWorld) -> Iterator[str]:
        created = world.writes("client", "ScheduleStore.create")
        if not created:
            return
        found, step = sorted(plan_times(world)), seconds * _SECOND
        assert world.healed_at is not None
        healed = world.script.start + int(world.healed_at * _SECOND)
        until = max([healed, *found])
        first = (created[0].now // step + 1) * step
        if found != (due := list(range(first, until + 1, step))):
            yield f"planned {found}, and due were {due}"

    return promise


def goes_on(world: CrashWorld) -> Iterator[str]:
    """Something is planned after the last trouble, unless it was paused and whoever was to resume it has died."""
    created = world.writes("client", "ScheduleStore.create")
    paused, resumed = (world.writes(*which) for which in SCHEDULE_PAUSE)
    assert world.healed_at is not None
    if (
        created
        and bool(paused) == bool(resumed)
        and not any(change.at > world.healed_at for change, _ in creations(world))
    ):
        yield "nothing was planned after the faults were over"


def one_at_a_time(world: CrashWorld) -> Iterator[str]:
    """Of a schedule whose runs do not overlap."""
    held: set[str] = set()
    for change in world.changes:
        held.discard(change.run_id)
        if change.after is not None and change.after.lease:
            held.add(change.run_id)
        if len(held) > 1:
            yield f"{len(held)} at once after {change}"


def in_order(world: CrashWorld) -> Iterator[str]:
    """They begin in the order of their plan times."""
    begun: dict[str, int] = {}
    for change in world.changes:
        if change.after is not None and change.after.lease and change.after.plan_time is not None:
            begun.setdefault(change.run_id, change.after.plan_time)
    if list(begun.values()) != sorted(begun.values()):
        yield f"begun in the order {list(begun.values())}"


def _pause(world: CrashWorld, pausing: tuple[str, str], resuming: tuple[str, str]) -> tuple[float, float] | None:
    """From when until when something rested; each is (process, operation)."""
    began = world.writes(*pausing)
    if not began:
        return None
    ended = [one for one in world.writes(*resuming) if one.at > began[0].at]
    assert world.healed_at is not None
    return began[0].at, ended[0].at if ended else world.healed_at


def plans_nothing_while_paused(world: CrashWorld) -> Iterator[str]:
    pause = _pause(world, *SCHEDULE_PAUSE)
    for change, run in creations(world):
        if pause and pause[0] < change.at < pause[1]:
            yield f"{run} was made while its schedule was paused"


def of_the_pause(*, made_up_for: bool, seconds: int) -> Promise:
    """The plan times of a pause: each has its run after a resume that makes up for them, otherwise none has."""

    def promise(world: CrashWorld) -> Iterator[str]:
        paused, resumed = (world.writes(*which) for which in SCHEDULE_PAUSE)
        if not paused or not resumed or resumed[0].at < paused[0].at:
            return
        first, last, step = paused[0].now, resumed[0].now, seconds * _SECOND
        named = set(range((first // step + 1) * step, last + 1, step))
        made = {at for at in plan_times(world) if first < at <= last}
        if made != (named if made_up_for else set()):
            yield f"in a pause with the plan times {sorted(named)}, runs were made for {sorted(made)}"

    return promise


def claims_nothing_while_held(pausing: str, resuming: str) -> Promise:
    def promise(world: CrashWorld) -> Iterator[str]:
        pause = _pause(world, ("client", pausing), ("client", resuming))
        for change in world.changes:
            claimed = change.after is not None and change.after.lease and not (change.before and change.before.lease)
            if claimed and pause and pause[0] < change.at < pause[1]:
                yield f"claimed while it was held back: {change}"

    return promise


def nothing_made_after(process: str, name: str) -> Promise:
    def promise(world: CrashWorld) -> Iterator[str]:
        gone = world.writes(process, name)
        for change, run in creations(world):
            if gone and change.at > gone[0].at:
                yield f"{run} was made after {name}"

    return promise


def edited_once(seconds: int) -> Promise:
    """One revision, however often its answer got lost; what is planned from then on is what the new rule names."""

    def promise(world: CrashWorld) -> Iterator[str]:
        edits = world.writes("client-2", "ScheduleStore._changing")
        revisions = len(world.backend.look("select 1 from rota_revision where note = 'edited'"))
        if revisions != min(1, len(edits)):
            yield f"{len(edits)} edits were committed, and {revisions} revisions are there"
        for at in plan_times(world):
            if edits and at > edits[0].now and at % (seconds * _SECOND):
                yield f"a run for {at}, which only the old rule named"

    return promise


def stops_after_failure(world: CrashWorld) -> Iterator[str]:
    """Of a schedule that pauses when a run of it fails: nothing is claimed after that."""
    failed = [change.at for change in world.changes if change.after and state_of(change.after) == "failed"]
    for change in world.changes:
        if failed and change.after and change.after.lease and change.at > failed[0]:
            yield f"claimed after a failure: {change}"


def backfilled_once(world: CrashWorld) -> Iterator[str]:
    """All in one commit, each plan time once, and as many as were told."""
    made = [(change.at, run.plan_time) for change, run in creations(world) if run.backfilled]
    if len({at for at, _ in made}) > 1 or len({plan_time for _, plan_time in made}) < len(made):
        yield f"backfilled more than once: {made}"
    for call in calls(world, "backfill"):
        if call.acknowledged and call.answer != len(made):
            yield f"{len(made)} runs were made by {call}"


def triggered_once(world: CrashWorld) -> Iterator[str]:
    made = sum(run.schedule_id is not None and run.plan_time is None for _, run in creations(world))
    for call in calls(world, "trigger"):
        if made not in ({1} if call.acknowledged else {0, 1}):
            yield f"{made} runs were made by {call}"
