"""Runs in other hands: handed over for as long as was said, ended once, under their fence, by what was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.application.coordination_jobs import EXTERNAL, HAND_OVER
from tests.simulation.application.data_jobs import DATA_EXTERNAL
from tests.simulation.world.observer import Change, Finding, Seen
from tests.simulation.world.processes import CONFIG

if TYPE_CHECKING:
    from tests.simulation.world.world import World

PROMISE = "external"
FINISH = "ExternalStore.finish"
_OUTCOMES = {"complete": ("succeeded", "snoozed"), "fail": ("failed",), "cancelled": ("cancelled",)}
_TAKEN = CONFIG.reaper.total_seconds() + 2 * 3.0 + 2.0  # a look of the reaper's, and the way
_SETTLED = 5.0


class ExternalChecks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._overdue: dict[tuple[str, int], float] = {}

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.handed_over_as_said, self.deadline_stays, self.somebody_said_so]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        return [self.taken_back_in_time]

    def handed_over_as_said(self, change: Change) -> Iterator[Finding]:
        """For as long as its handler said; and not again for a step that was answered."""
        was, now = (seen.external if seen else None for seen in (change.before, change.after))
        if now is None or was is not None:
            return
        began = [d for d in self._world.diary.deeds if d.run_id == change.run_id and d.fence == now.fence]
        act = next((deed.detail.partition(":")[0] for deed in began if deed.what == "began"), "")
        if act not in HAND_OVER:
            yield PROMISE, f"handed over, and its handler does not: {act!r}"
            return
        seconds, step = HAND_OVER[act]
        if now.deadline != change.now + seconds * 1_000_000 or now.step != step:
            late = (now.deadline - change.now) / 1e6
            yield PROMISE, f"handed over for {late:g}s and step {now.step}, not for {seconds}s and {step}"
        note = self._world.note_observer.steps.get((change.run_id, step or ""))
        if note is not None and note.state == "succeeded":
            yield "P16", f"step {step} was answered already, and its run waits for it again: {note}"

    def deadline_stays(self, change: Change) -> Iterator[Finding]:
        was, now = (seen.external if seen else None for seen in (change.before, change.after))
        if was and now and (was.deadline, was.fence, was.attempt) != (now.deadline, now.fence, now.attempt):
            yield PROMISE, f"what waits was changed from {was} to {now}"

    def somebody_said_so(self, change: Change) -> Iterator[Finding]:
        """An end from outside is one that its process asked for, under the fence that was current."""
        if change.op != FINISH or change.before is None or change.after is None:
            return
        where = change.before.external or change.before.lease
        if where is None:
            return  # others go on because of it
        calls = [c for c in self._world.diary.calls if c.what == change.run_id and c.client == change.process]
        if not any(call.verb in _OUTCOMES and call.options.get("fence") == where.fence for call in calls):
            said = sorted({(call.verb, call.options.get("fence", 0)) for call in calls})
            yield "P10", f"ended under fence {where.fence}, and {change.process} said {said}"

    def taken_back_in_time(self) -> Iterator[Finding]:
        """P12: past its deadline, or its grace, it is nobody's for long."""
        world, now = self._world, self._world.clock.micros()
        waiting = {(s.id, s.external.fence): s for s in world.observer.live.values() if s.external}
        for key in self._overdue.keys() - waiting.keys():
            del self._overdue[key]
        for key, seen in waiting.items():
            if not _is_overdue(seen, now):
                self._overdue.pop(key, None)
                continue
            since = self._overdue.setdefault(key, world.loop.time())
            if world.loop.time() > since + _TAKEN and world.is_calm(since - _SETTLED, world.loop.time()):
                yield "P12", f"its time outside was over {world.loop.time() - since:.3f}s ago: {seen}"

    def answers_are_true(self) -> Iterator[Finding]:
        """P10: what somebody outside was told is done, is recorded under that fence; and nothing else is."""
        world = self._world
        for call in world.diary.calls:
            if call.verb not in _OUTCOMES or not call.acknowledged or call.what not in world.observer.runs:
                continue
            fence, end = call.options["fence"], world.observer.runs[call.what].end
            rows = world.backend.look(f"select fence, outcome from rota_attempt where run_id = '{call.what}'")
            outcome = {row[0]: row[1] for row in rows}.get(fence)
            if outcome is None and end is not None and end.fence == fence:
                outcome = end.state
            if outcome not in _OUTCOMES[call.verb] and str(call.answer) != "cancelled":
                yield (
                    "P10",
                    f"said to be done, and recorded is {outcome}: {call}\n      {world.observer.runs[call.what]}",
                )
        yield from self._heard()

    def _heard(self) -> Iterator[Finding]:
        """P16: what a handler gets is what is recorded as answered."""
        for (run_id, fence), answer in self._world.diary.heard.items():
            said = {c.options["fence"] for c in self._world.diary.calls if c.verb == "complete" and c.what == run_id}
            if not isinstance(answer, dict) or answer.get("fence") not in said or answer["fence"] >= fence:
                yield "P16", f"run {run_id[-6:]} heard {answer} under fence {fence}, and said was {sorted(said)}"

    def nobody_of_ours_claims_it(self) -> Iterator[Finding]:
        for change in self._world.changes:
            seen = change.after
            if (
                seen
                and seen.lease
                and seen.job in (*EXTERNAL, *DATA_EXTERNAL)
                and not seen.lease.worker.startswith("outsider")
            ):
                yield PROMISE, f"claimed by a worker that has no code for it: {change}"


def _is_overdue(seen: Seen, now: int) -> bool:
    external = seen.external
    assert external is not None
    return external.deadline < now or (external.cancel_at is not None and external.cancel_at < now)
