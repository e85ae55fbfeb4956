"""Promises about single runs, checked at every change of one: P2, P9 to P11, P13 to P15, P31."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from rota.values.durations import in_micros, parse_duration
from tests.models.relation import GONE, Step, allowed, step
from tests.simulation.application.jobs import JOBS
from tests.simulation.world.observer import Change, Conduct, End, Finding, Lease, Outside, Place, Seen
from tests.simulation.world.processes import CONFIG

if TYPE_CHECKING:
    from tests.simulation.world.world import World

Check = Callable[[Change], Iterator[Finding]]

TAKES_AWAY = {"Store.reap"}
RESTRICTS = "Store.restrict"
WAITS_FOR_OTHERS = 3  # as a hold
LEASE = in_micros(CONFIG.lease)
SIGNALLED = 2.0  # seconds, that handlers ask for
PRUNES = ("Store.prune", "drop_runs", "drop_skips")


def checks(world: World) -> list[Check]:
    memory = Memory(world)
    return [
        in_the_model,
        memory.in_one_place,
        memory.final_is_final,
        memory.fences_grow,
        memory.only_the_holder_ends_it,
        memory.only_those_outside_end_it,
        memory.never_early,
        memory.within_its_budget,
        memory.backs_off,
        memory.not_again_after_loss,
        memory.cancelled_in_time,
        memory.skipped_was_never_begun,
        memory.begun_is_not_rewritten,
    ]


class Memory:
    """What has to be remembered of runs: the highest fence of each, and how its attempts ended."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._fences: dict[str, int] = {}
        self._lost: set[str] = set()

    def in_one_place(self, change: Change) -> Iterator[Finding]:
        """P12: a run is waiting, leased, outside or final; none is in between, or vanishes but by retention."""
        seen = change.after
        if seen is None:
            if not change.op.startswith(PRUNES):
                yield "P7", "a run vanished"
            elif change.before and change.before.end is None:
                yield "P7", "a run was pruned before it was final"
            return
        yield from in_one_place(seen)

    def final_is_final(self, change: Change) -> Iterator[Finding]:
        before, after = change.before, change.after
        if before and before.end and after and after.end != before.end:
            yield "P11", f"it was {before.end} already, and is now {after.end or after.lease or after.place}"

    def fences_grow(self, change: Change) -> Iterator[Finding]:
        seen = change.after
        if seen is None:
            return
        highest = self._fences.get(seen.id, 0)
        if seen.fence < highest:
            yield "P9", f"the fence went from {highest} back to {seen.fence}"
        was = change.before.lease if change.before else None
        if seen.lease and (was is None or was.worker != seen.lease.worker) and seen.lease.fence <= highest:
            yield "P9", f"claimed under fence {seen.lease.fence}, which was given out before"
        if was and seen.place and change.op in TAKES_AWAY and seen.place.fence <= was.fence:
            yield "P9", "a lease was taken away, and the fence did not grow"
        self._fences[seen.id] = max(highest, seen.fence)

    def only_the_holder_ends_it(self, change: Change) -> Iterator[Finding]:
        """P10: a lease ends by the word of its holder, under its fence, or is taken away when its time is over."""
        was = change.before.lease if change.before else None
        if was is None or change.after is None:
            return
        now = change.after.lease
        if was.cancel_at is not None and not now and _state(change.after) not in ("succeeded", "cancelled"):
            yield "P15", f"it was asked to stop, and is {_state(change.after)}"
        if now is not None:
            yield from self._still_held(change, was, now)
        elif change.op in TAKES_AWAY:
            asked = was.cancel_at is not None and was.cancel_at <= change.now and not was.shielded
            over = was.expires_at <= change.now or asked
            if not over:
                yield (
                    "P10",
                    f"taken from {was.worker} {(was.expires_at - change.now) / 1e6:.3f}s before its lease ended",
                )
        elif change.op == RESTRICTS:
            return  # a check of its own looks at who may have it
        elif change.worker != was.worker:
            yield "P10", f"{change.worker or change.process} ended the attempt of {was.worker}"
        else:
            yield from self._said_under_its_fence(change.after, was)

    def only_those_outside_end_it(self, change: Change) -> Iterator[Finding]:
        """P10: what was handed over ends by their word, or is taken away when its time, or its grace, is over."""
        was = change.before.external if change.before else None
        if was is None or change.after is None or change.after.external:
            return
        if change.op in TAKES_AWAY:
            if was.deadline > change.now and not (was.cancel_at is not None and was.cancel_at <= change.now):
                yield "P10", f"taken from those outside {(was.deadline - change.now) / 1e6:.3f}s before its deadline"
        elif change.op != "ExternalStore.finish":
            yield "P10", f"{change.process} ended what was in other hands by {change.op}"
        if was.cancel_at is not None and _state(change.after) not in ("succeeded", "cancelled"):
            yield "P15", f"it was asked to stop, and is {_state(change.after)}"

    def _still_held(self, change: Change, was: Lease, now: Lease) -> Iterator[Finding]:
        if now.fence != was.fence:
            return  # taken and claimed in one: other checks look at the fence
        if now.expires_at != was.expires_at and change.worker != was.worker:
            yield "P10", f"{change.worker} renewed the lease of {was.worker}"
        bounded = now.worker.startswith("outsider") and now.expires_at < change.now + LEASE  # by the time of its step
        if now.expires_at != was.expires_at and now.expires_at != change.now + LEASE and not bounded:
            yield "P12", f"renewed for {(now.expires_at - change.now) / 1e6:.3f}s"
        if was.cancel_at is not None and now.cancel_at is None:
            yield "P15", "a request to stop was forgotten"
        unshielded = was.shielded and not now.shielded  # a check of its own looks at the grace
        if was.cancel_at is not None and now.cancel_at is not None and now.cancel_at > was.cancel_at and not unshielded:
            yield "P15", "asked to stop again, its grace began anew"

    def _said_under_its_fence(self, seen: Seen, was: Lease) -> Iterator[Finding]:
        if seen.end and seen.end.state == "succeeded":
            told = msgspec.json.decode(seen.end.result or "{}")
            if told.get("fence") != was.fence or seen.end.fence != was.fence:
                yield "P10", f"the result of fence {told.get('fence')} was accepted under fence {was.fence}"

    def never_early(self, change: Change) -> Iterator[Finding]:
        """P2, by the database's clock. What was due before that clock was set back is due."""
        seen, was, latest = change.after, change.before, self._world.latest_micros
        if seen is None:
            return
        if was is None and seen.retry_of is None and seen.plan_time is not None and seen.plan_time > latest:
            yield "P2", f"planned {(seen.plan_time - latest) / 1e6:.3f}s before its time"
        if seen.lease and was and was.place and was.place.run_at > latest:
            yield "P2", f"claimed {(was.place.run_at - latest) / 1e6:.3f}s before its time"

    def within_its_budget(self, change: Change) -> Iterator[Finding]:
        """P13: attempts are bounded; only failures and losses are counted, a hand-back is not."""
        seen = change.after
        if seen is None:
            return
        if seen.lease and seen.lease.attempt > seen.max_attempts:
            yield "P13", f"attempt {seen.lease.attempt} of {seen.max_attempts}"
        was = (change.before.lease or change.before.external) if change.before else None
        if was is None or seen.place is None:
            return
        outcome = self._outcome(seen.id, was.fence)
        used = was.attempt - (outcome in ("handed_back", "snoozed"))
        if outcome is not None and seen.place.attempt != used:
            yield "P13", f"after an attempt that was {outcome}, {seen.place.attempt} are counted instead of {used}"

    def _outcome(self, run_id: str, fence: int) -> str | None:
        sql = f"select outcome from rota_attempt where run_id = '{run_id}' and fence = {fence}"
        rows = self._world.backend.look(sql)
        return str(rows[0][0]) if rows else None

    def backs_off(self, change: Change) -> Iterator[Finding]:
        """P13: a failed attempt is not repeated sooner than its job's backoff says."""
        seen, was = change.after, change.before.lease if change.before else None
        if seen is None or was is None or seen.place is None:
            return
        outcome = self._outcome(seen.id, was.fence)
        if outcome not in ("failed", "timed_out", "snoozed") or (seen.id, was.fence) in self._world.diary.given:
            return  # also if a part of a pipeline is done: the next one need not wait
        least = SIGNALLED if outcome == "snoozed" else self._backoff(seen, was, asked=outcome == "failed")
        if seen.place.run_at < change.now + least * 1e6:
            yield "P13", f"due again in {(seen.place.run_at - change.now) / 1e6:.3f}s, though it backs off {least:g}s"

    def _backoff(self, seen: Seen, was: Lease, *, asked: bool) -> float:
        """What the handler asked for, if it came to that, or what its job declares; in seconds."""
        began = (deed for deed in self._world.diary.deeds if deed.run_id == seen.id and deed.fence == was.fence)
        act = next((deed.detail for deed in began if deed.what == "began"), "")
        if asked and act.startswith(("retry", "snooze")):
            return SIGNALLED
        delays = JOBS[seen.job]["backoff"]
        return parse_duration(
            delays if isinstance(delays, str) else delays[min(was.attempt, len(delays)) - 1]
        ).total_seconds()

    def not_again_after_loss(self, change: Change) -> Iterator[Finding]:
        """P14: with `on_lost: fail`, what was begun and then lost or handed back is never claimed again."""
        seen = change.after
        if seen is None or seen.on_lost != "fail":
            return
        was = change.before.lease if change.before else None
        if was and seen.place:
            begun = any(deed.run_id == seen.id and deed.fence == was.fence for deed in self._world.diary.deeds)
            if begun and self._outcome(seen.id, was.fence) in ("lost", "handed_back"):
                yield "P14", "begun, lost, and queued again"

    def cancelled_in_time(self, change: Change) -> Iterator[Finding]:
        """P15: what is asked to stop is given a grace, and what was not claimed ends at once."""
        before, after = change.before, change.after
        if change.op != "Store.cancel" or before is None or after is None or not self._asked_to_cancel(change):
            return
        if before.place and before.place.hold == WAITS_FOR_OTHERS and after.place:
            return  # it goes on because another one was cancelled; its own turn comes
        if before.place and not (after.end and after.end.state == "cancelled"):
            yield "P15", "it was not claimed, and was not cancelled at once"
        asked = after.lease.cancel_at if after.lease else None
        if before.lease and asked is None:
            yield "P15", "it was claimed, and was not asked to stop"
        if before.lease and before.lease.cancel_at is None and asked is not None:
            grace = parse_duration(JOBS[after.job].get("cancel_grace", "30s")).total_seconds()
            if asked != change.now + int(grace * 1e6):
                yield "P15", f"its grace is {(asked - change.now) / 1e6:.3f}s instead of {grace:g}s"

    def skipped_was_never_begun(self, change: Change) -> Iterator[Finding]:
        """P31: what anybody has ever claimed is not skipped, and a skipped run has no attempt."""
        before, end = change.before, change.after.end if change.after else None
        if end is None or end.state != "skipped" or (before and before.end):
            return
        if before and before.fence > 0:
            yield "P31", f"skipped after {before.fence} claims"
        if end.attempt:
            yield "P31", f"skipped with {end.attempt} attempts"

    def begun_is_not_rewritten(self, change: Change) -> Iterator[Finding]:
        """P31: what has begun is done as it was asked for."""
        before, after = change.before, change.after
        if (
            before
            and after
            and before.fence > 0
            and (before.payload, before.max_attempts)
            != (
                after.payload,
                after.max_attempts,
            )
        ):
            yield "P31", "replaced, though it had begun"

    def _asked_to_cancel(self, change: Change) -> bool:
        """Others go on because it is cancelled, in the same transaction."""
        calls = self._world.diary.calls
        return any(call.verb == "cancel" and call.what == change.run_id for call in calls)


def in_the_model(change: Change) -> Iterator[Finding]:
    """P9 to P13: every step of a run is one that the model of a lease has, in which the promises are proved."""
    made = modelled(change.before, change.after)
    if not made.is_still and made not in allowed():
        yield "model", f"no step of tests/models/Lease.tla: {made}"


def modelled(before: Seen | None, after: Seen | None) -> Step:
    """Return what a commit did to a run as the model has it."""
    if after is None:
        return Step(_place(before), GONE, "stays", 0)
    fence, attempts = (before.fence, _attempts(before)) if before else (0, 0)
    state = after.end.state if after.end and not (before and before.end) else ""
    return step(_place(before), _place(after), (fence, after.fence), (attempts, _attempts(after)), state)


def _place(seen: Seen | None) -> str:
    match seen.where if seen else None:
        case End():
            return "final"
        case Lease():
            return "lease"
        case Outside():
            return "outside"
        case Conduct():
            return "conduct"
        case Place():
            return "ready"
        case None:
            return "none"


def _attempts(seen: Seen) -> int:
    return (seen.where.attempt or 0) if seen.where else 0


def in_one_place(seen: Seen) -> Iterator[Finding]:
    known = (seen.end, seen.lease, seen.place, seen.external, seen.conduct)
    places = [place for place in known if place is not None]
    if len(places) != 1:
        yield "P12", f"the run is in {len(places)} places at once: {places}"


def _state(seen: Seen) -> str:
    return seen.end.state if seen.end else "waiting"
