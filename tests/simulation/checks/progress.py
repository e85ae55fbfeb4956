"""Promises about what runs say and do while they work: steps (P16), notes (P10), shields (P15), transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from rota.values.durations import parse_duration
from tests.simulation.application.data_jobs import DATA_JOBS
from tests.simulation.application.jobs import JOBS, is_shielded
from tests.simulation.application.steps import SIGNALS
from tests.simulation.script.entries import Strike
from tests.simulation.world.history import StepDeed
from tests.simulation.world.note_observer import ANSWERING, KEEPING, SEALING, Effect, Note
from tests.simulation.world.observer import Change, Finding, Lease, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

Key = tuple[str, int]
_STEP_TIMEOUT = 5.0  # of the shielded step that has one
_KEPT = ("succeeded", "skipped")
_WITHOUT_RESULT = (*SIGNALS, "die")
_PATIENCE, _TRIES, _LONG = 2.5, 3, 14.0  # that a report has with notes, and how long that may take


class ProgressChecks:
    """`_open`: the shielded steps whose functions are at work, by run and fence, and since when."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[Key, dict[str, float]] = {}
        self._done: dict[tuple[str, str, int], str] = {}
        self._ended: dict[Key, dict[str, str]] = {}
        strikes = (entry for entry in world.script.entries if isinstance(entry, Strike))
        self._has_late = any(one.blow == "late" and one.op in ("", "NoteStore.write") for one in strikes)

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.shields_and_cancels, self.notes_come_before_reports]

    def _lease(self, run_id: str, fence: int) -> Lease | None:
        """If that is the current fence."""
        seen = self._world.observer.runs.get(run_id)
        return seen.lease if seen and seen.lease and seen.lease.fence == fence else None

    def did(self, deed: StepDeed) -> Iterator[Finding]:
        match deed.what:
            case "begins":
                yield from self._begins(deed)
            case "does":
                self._done[deed.run_id, deed.step, deed.fence] = deed.result
                self._ended.setdefault((deed.run_id, deed.fence), {})[deed.step] = deed.how
                self._open.get((deed.run_id, deed.fence), {}).pop(deed.step, None)
            case "cut":
                yield from self._cut(deed)
                self._open.get((deed.run_id, deed.fence), {}).pop(deed.step, None)
            case "gets":
                yield from self._gets(deed)
            case "leaves" if deed.result != "CancelledError":
                yield from self._is_unshielded(deed)

    def _begins(self, deed: StepDeed) -> Iterator[Finding]:
        lease, recorded = (
            self._lease(deed.run_id, deed.fence),
            self._world.note_observer.steps.get((deed.run_id, deed.step)),
        )
        if lease and recorded and recorded.state == "succeeded":
            yield "P16", f"recorded as done, and begun again: {recorded}; {deed}"
        if is_shielded(deed.job, deed.step):
            self._open.setdefault((deed.run_id, deed.fence), {})[deed.step] = deed.at
            if lease and not lease.shielded:
                yield "P15", f"a step that is not to be cancelled begins, and a cancel would not wait for it: {deed}"

    def _cut(self, deed: StepDeed) -> Iterator[Finding]:
        """By its own time limit, a worker that stops or a lease that is lost; not because somebody cancels the run."""
        since = self._open.get((deed.run_id, deed.fence), {}).get(deed.step)
        lease = self._lease(deed.run_id, deed.fence)
        if since is None or lease is None or lease.cancel_at is None or deed.how == "give_up":
            return
        process = self._world.processes[deed.process]
        is_late = deed.step == "ship" and deed.at >= since + _STEP_TIMEOUT - 0.001
        if deed.result == "Cancelled" or not (process.stopping or is_late):
            yield "P15", f"a step that is not to be cancelled was interrupted by {deed.result}: {deed}"

    def _gets(self, deed: StepDeed) -> Iterator[Finding]:
        recorded = self._world.note_observer.steps.get((deed.run_id, deed.step))
        if recorded is None or recorded.state != "succeeded":
            yield "P16", f"a step is done, and not recorded as that but as {recorded}: {deed}"
        elif recorded.result != msgspec.json.encode(deed.result).decode():
            yield "P16", f"recorded is {recorded}, and a handler was told otherwise: {deed}"
        yield from self._is_unshielded(deed)

    def _is_unshielded(self, deed: StepDeed) -> Iterator[Finding]:
        lease = self._lease(deed.run_id, deed.fence)
        shields = self._shields_of(deed.run_id, deed.fence)
        if is_shielded(deed.job, deed.step) and lease and lease.shielded and not shields:
            yield "P15", f"the step is over, and its shield is still there: {deed}"

    def _shields_of(self, run_id: str, fence: int) -> set[str]:
        """Steps that are not to be cancelled, and were begun, and whose handlers have not heard of their end; and any
        that are about to be."""
        found: set[str] = set()
        for deed in self._world.diary.steps:
            if (deed.run_id, deed.fence) == (run_id, fence) and is_shielded(deed.job, deed.step):
                if deed.what == "begins":
                    found.add(deed.step)
                elif deed.what in ("gets", "leaves"):
                    found.discard(deed.step)
        return found | {step for run, its, step in self._world.diary.opening if (run, its) == (run_id, fence)}

    def noted(self, before: Note | None, after: Note | None, op: str, worker: str) -> Iterator[Finding]:
        note = after or before
        assert note is not None
        seen = self._world.observer.runs.get(note.run_id)
        if after is None:
            if seen is not None:
                yield "P16", f"vanished, though its run is there: {before}"
            return
        if before and before.kind == "step" and before.state == "succeeded":
            yield "P16", f"recorded as done, and changed: {before.row} is now {after.row}"
        if seen is not None and seen.job in DATA_JOBS:  # by whom is not known: also claims and those outside write them
            return
        if op in (KEEPING, ANSWERING):
            yield from self._answered(after, seen) if op == ANSWERING else ()
            return
        yield from self._held(after, seen, op, worker)

    def _held(self, after: Note, seen: Seen | None, op: str, worker: str) -> Iterator[Finding]:
        """Under the fence of whoever has the run; or with its end, in one transaction."""
        lease = seen.lease if seen else None
        end = seen.end if seen and op == SEALING else None
        if end is not None and (end.fence, end.worker) == (after.fence, worker):
            return  # the last words, together with the end
        if lease is None or lease.fence != after.fence:
            yield "P10", f"written under fence {after.fence}, which is not current: {after}; {seen}"
        elif lease.worker != worker:
            yield "P10", f"written by {worker}, and {lease.worker} has the lease: {after}"
        if after.state == "succeeded":
            done = self._done.get((after.run_id, after.id, after.fence))
            if after.result != msgspec.json.encode(done).decode():
                yield "P16", f"recorded as done, and its function gave {done!r}: {after}"

    def _answered(self, note: Note, seen: Seen | None) -> Iterator[Finding]:
        """By somebody outside: that ends the step, and the run is queued again; or ends, if it is being cancelled."""
        if seen and seen.end and (seen.end.state, seen.end.fence) == ("cancelled", note.fence):
            return
        if seen is None or seen.place is None or seen.place.fence != note.fence or note.state != "succeeded":
            yield "P10", f"answered under fence {note.fence}: {note}; {seen}"

    def kept(self, change: Change) -> Iterator[Finding]:
        """P16: a retry that keeps steps begins with what was done, and with nothing else."""
        seen = change.after
        if seen is None or change.before is not None or change.op != KEEPING:
            return
        old = _in_order(self._world.note_observer.steps_of(seen.retry_of or "").values())
        kept = _in_order(self._world.note_observer.steps_of(seen.id).values())
        there = [(note.id, note.state, note.result) for note in kept]
        wanted = []
        for call in self._world.diary.calls:
            if call.verb == "retry" and call.what == seen.retry_of and call.options:
                before = _before(seen.job, old, call.options.get("from_step"))
                done = [note for note in old if note.state in _KEPT and note.id in before]
                wanted.append([(note.id, note.state, note.result) for note in done])
        if there not in wanted:
            yield "P16", f"a retry begins with the steps {there}, and {wanted} were to be kept"

    def shields_and_cancels(self, change: Change) -> Iterator[Finding]:
        """P15: no shield once a cancel was asked for; it stays as long as the step does, and then the grace begins."""
        was, now = (seen.lease if seen else None for seen in (change.before, change.after))
        if was is None or (now is not None and now.fence != was.fence):
            return
        at_work = self._open.get((change.run_id, was.fence), {})
        if now is None:
            if change.op == "Store.reap" and was.shielded and was.expires_at > change.now:
                yield "P15", f"cancelled while {sorted(at_work)} was not to be"
            return
        if now.shielded and not was.shielded and now.cancel_at is not None:
            yield "P15", "a shield, though it was asked to stop before"
        if was.shielded and not now.shielded:
            if at_work and change.worker not in self._world.deaths:
                yield "P15", f"its shield is gone, and {sorted(at_work)} is still at work"
            grace = parse_duration(JOBS[change.after.job].get("cancel_grace", "30s")) if change.after else None
            if now.cancel_at is not None and grace and now.cancel_at != change.now + int(grace.total_seconds() * 1e6):
                yield "P15", "the step that was not to be cancelled is over, and the grace does not begin"

    def notes_come_before_reports(self, change: Change) -> Iterator[Finding]:
        """Whatever a handler has said is there when its worker tells of its end."""
        was = change.before.lease if change.before else None
        if was is None or change.after is None or change.after.lease or change.op not in ("Store.report", SEALING):
            return
        key, world = (change.run_id, was.fence), self._world
        if change.op == "Store.report" and (key not in world.diary.ended or self._cannot_be_written(change)):
            return  # abandoned: it may say something at any time
        yield from self._ends_come_before_reports(change, was.fence)
        said, progress = world.diary.said.get(key), world.note_observer.progress.get(change.run_id)
        told = progress.row[1:3] if progress else None
        if said is not None and not self._has_late and told != (was.fence, said * 100):
            yield "notes", f"its progress was {said} in the end, and {progress} is there"
        if world.note_observer.lines.get(key, 0) != world.diary.lines.get(key, 0):
            yield (
                "notes",
                f"it logged {world.diary.lines.get(key)} lines, and {world.note_observer.lines.get(key)} are there",
            )

    def _ends_come_before_reports(self, change: Change, fence: int) -> Iterator[Finding]:
        """P16: what a step has done is recorded to the end, even if its handler is interrupted meanwhile."""
        recorded = self._world.note_observer.steps
        for step, how in self._ended.get((change.run_id, fence), {}).items():
            note = recorded.get((change.run_id, step))
            if how not in _WITHOUT_RESULT and (note is None or note.state != "succeeded"):
                yield "P16", f"step {step} had done its work, and its attempt is over before that is recorded: {note}"

    def _cannot_be_written(self, change: Change) -> bool:
        """A report goes without notes that could not be written thrice, or for long."""
        now, weight = change.at, 0
        for writing in reversed(self._world.writings.get(change.process, [])):
            until = now if writing.until is None else writing.until
            weight += (writing.failed + int((until - writing.since) / _PATIENCE)) if until > now - _LONG else 0
        return weight >= _TRIES

    def committed(self, effect: Effect) -> Iterator[Finding]:
        """P10, P11: what a transaction did is there if its fence was current, and if it finishes its run, with that."""
        seen = self._world.observer.runs.get(effect.run_id)
        if effect.finishing:
            end = seen.end if seen else None
            if end is None or end.state != "succeeded" or end.fence != effect.fence:
                yield (
                    "P10",
                    f"a transaction was to end its run under fence {effect.fence}, and was committed: {seen}",
                )
            if sum(one.run_id == effect.run_id and one.finishing for one in self._world.note_observer.effects) > 1:
                yield "P10", f"two transactions have ended one run: {seen}"
        elif self._lease(effect.run_id, effect.fence) is None:
            yield "P10", f"a transaction under fence {effect.fence} was committed, and it is {seen}"


def _in_order(steps: Iterable[Note]) -> list[Note]:
    return sorted(steps, key=lambda note: note.no)


def _before(job: str, recorded: list[Note], first: str | None) -> set[str]:
    """Steps that come before one, as the job declares them, or as they were opened."""
    declared = [one["id"] if isinstance(one, dict) else one for one in JOBS[job].get("steps", ())]
    order: list[str] = declared or [note.id for note in recorded]
    return set(order if first is None else order[: order.index(first)])


def transactions_are_whole(world: World) -> Iterator[Finding]:
    """P10: a run that was to end with a transaction has not ended without it."""
    meant = {(deed.run_id, deed.fence) for deed in world.diary.steps if deed.what == "finishes"}
    there = {(effect.run_id, effect.fence) for effect in world.note_observer.effects if effect.finishing}
    for seen in world.observer.runs.values():
        end = seen.end
        if end and end.state == "succeeded" and (seen.id, end.fence) in meant - there:
            yield "P10", f"succeeded without the transaction that was to end it: {seen}"
    for deed in world.diary.deeds:
        has_ended = deed.what == "stopped" and (deed.run_id, deed.fence) in world.diary.finished
        if has_ended and deed.detail in ("CancelledError", "LeaseLost") and not world.is_stopping(deed.worker):
            yield "P10", f"it had ended its run, and was stopped as if it had lost it: {deed}"
