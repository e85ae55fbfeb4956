"""Jobs as a whole, after every commit: what is cancelled rests, what is deleted leaves nothing, versions stay.

The trail of each job is replayed beside it: a state machine that knows nothing of rota's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from tests.simulation.application.data_jobs import DATA_JOBS
from tests.simulation.checks.orphans import ALWAYS, orphans
from tests.simulation.world.observer import Change, Finding, Seen

if TYPE_CHECKING:
    from tests.simulation.world.history import Call
    from tests.simulation.world.world import World

JOB = "job"
_VERSIONS = "select name, version, dropped_at, definition from rota_job where owner <> 'code' order by name, version"
_PAUSES = "select name, cancelled_at from rota_pause where kind = 'job'"
_RUNS = """
select r.id, r.job, r.job_version, s.job, s.job_version, s.no from rota_run r left join rota_stage s on s.run_id = r.id
where r.state is null
"""
_AWAKE = """
select s.job, s.name from rota_schedule s where s.deleted_at is null and s.enabled = 1 and s.job_paused = 0
"""
_PLANS = """
select s.run_id, s.plan, s.no from rota_stage s join rota_run r on r.id = s.run_id where r.state is null
"""
_EVENTS = "select seq, subject, type from rota_event where kind = 'job' and seq > {} order by seq"
_RESUMES = "_resume_some"


class _Replayed(msgspec.Struct):
    """A job as its trail tells it. `held`: None, "paused" or "cancelled"."""

    exists: bool = False
    held: str | None = None


class _Run(msgspec.Struct, frozen=True):
    """A live run: the version of its job, and for each part of a pipeline that it came to, that of the part's."""

    job: str
    version: int
    parts: dict[int, tuple[str, int]]


class JobChecks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._replayed: dict[str, _Replayed] = {}
        self._seq = 0
        self._runs: dict[str, _Run] = {}
        self._there: dict[str, bool] = {}  # and whether it is enabled
        self._gone: set[str] = set()  # by the commit that is being looked at
        self._doomed: set[tuple[str, str]] = set()  # runs, and the job that each of them needs and that is gone
        self._held: dict[str, str] = {}
        self._made: list[Change] = []
        self._judged = 0
        self._cancels: list[Call] = []

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.collect]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        return [
            self.trails_are_legal,
            self.nothing_comes_to_what_refuses,
            self.looked_at,
            self.told_as_they_are,
            self.cancelled_is_at_rest,
            self.deleted_has_nothing_waiting,
            self.versions_stay,
            self.done_as_declared,
            self.no_orphans,
        ]

    def collect(self, change: Change) -> Iterator[Finding]:
        """Not a check: runs that the commit being looked at has made."""
        if change.before is None and change.after is not None and change.after.job in DATA_JOBS:
            self._made.append(change)
        yield from ()

    def trails_are_legal(self) -> Iterator[Finding]:
        """A job is paused once until it is resumed, resumed once after that, and nothing happens to a deleted one."""
        for seq, job, event in self._world.backend.look(_EVENTS.format(self._seq)):
            self._seq = seq
            state = self._replayed.setdefault(job, _Replayed(exists=job not in DATA_JOBS))
            match event:
                case "added" if not state.exists:
                    state.exists, state.held = True, None
                case "changed" if state.exists:
                    pass
                case "dropped" if state.exists:
                    state.exists, state.held = False, None
                case "paused" if state.exists and state.held is None:
                    state.held = "paused"
                case "cancelled" if state.exists:
                    state.held = "cancelled"
                case "cancelled":
                    pass  # runs that came while it was being deleted
                case "resumed" if state.held is not None:
                    state.held = None
                case _:
                    yield JOB, f"{job} was {event}, and its trail told before: {state}"

    def nothing_comes_to_what_refuses(self) -> Iterator[Finding]:
        """A job that was cancelled, disabled or deleted before the commit gets no run by it, but by a resume."""
        made, self._made = self._made, []
        for change in made:
            seen = change.after
            assert seen is not None
            if change.op.startswith(_RESUMES) or change.op == "quieten":
                continue
            if self._held.get(seen.job) == "cancelled":
                yield JOB, f"{seen.job} was cancelled, and got a run by {change.op}: {seen}"
            if seen.job not in self._there and change.op != "DataJobStore.create_with":
                yield JOB, f"{seen.job} was not there, and got a run by {change.op}: {seen}"
            if self._there.get(seen.job) is False and seen.schedule_id is None and seen.parent_id is None:
                yield JOB, f"{seen.job} was disabled, and got a run by {change.op}: {seen}"

    def looked_at(self) -> Iterator[Finding]:
        """Not a check: which jobs there are, and which of them are held."""
        look, before = self._world.backend.look, self._there
        self._there = {
            name: msgspec.json.decode(definition).get("enabled", True)
            for name, _, dropped_at, definition in look(_VERSIONS)
            if dropped_at is None
        }
        self._gone = before.keys() - self._there.keys()
        self._held = {name: "paused" if cancelled_at is None else "cancelled" for name, cancelled_at in look(_PAUSES)}
        yield from ()

    def told_as_they_are(self) -> Iterator[Finding]:
        for job in DATA_JOBS:
            told = self._replayed.get(job, _Replayed())
            if told.exists != (job in self._there):
                yield JOB, f"{job} is {'there' if job in self._there else 'gone'}, and its trail tells {told}"
            if told.held != self._held.get(job):
                yield JOB, f"{job} is {self._held.get(job) or 'not held'}, and its trail tells {told}"

    def cancelled_is_at_rest(self) -> Iterator[Finding]:
        """No schedule of a job that is held is awake, unless somebody is resuming it; and what lived when a cancel
        began has ended once it is answered, or was asked to stop."""
        for job, name in self._world.backend.look(_AWAKE):
            if job in self._held and not self._is_being("resume_job", job):
                yield JOB, f"{job} is {self._held[job]}, and its schedule {name} is planned"
        calls = self._world.diary.calls
        self._cancels += [call for call in calls[self._judged :] if call.verb == "cancel_job"]
        self._judged = len(calls)
        for call in [call for call in self._cancels if call.answered_at is not None]:
            self._cancels.remove(call)
            for seen in self._world.observer.live.values() if call.acknowledged else ():
                if seen.job == call.what and seen.created_at < call.options["now"] and not _is_asked(seen):
                    yield JOB, f"{call.what} was cancelled, and a run of it goes on: {seen}"

    def _is_being(self, verb: str, job: str, **options: object) -> bool:
        """Somebody does this to the job now, or began to and nobody knows how far he got."""
        return any(
            call.verb == verb
            and call.what == job
            and call.answered_at is None
            and options.items() <= call.options.items()
            for call in self._world.diary.calls
        )

    def deleted_has_nothing_waiting(self) -> Iterator[Finding]:
        """A job goes when nothing uses it, or by force: then what used it is asked to stop before that is answered.

        A run of a pipeline uses the jobs of the parts that it has before it.
        """
        live = self._world.observer.live
        for job in self._gone:
            self._doomed |= {(id, job) for id in self._users_of(job)}
        self._doomed = {(id, job) for id, job in self._doomed if id in live and not _is_asked(live[id])}
        for id, job in sorted(self._doomed):
            if not self._is_being("delete_job", job, force=True):
                yield JOB, f"{job} is deleted, and a run that needs it goes on: {live[id]}"

    def _users_of(self, job: str) -> list[str]:
        found = [id for id, seen in self._world.observer.live.items() if seen.job == job]
        for id, plan, no in self._world.backend.look(_PLANS):
            parts = [part["job"] for part in msgspec.json.decode(plan)["parts"][no - 1 :]]
            found += [str(id)] if job in parts else []
        return found

    def versions_stay(self) -> Iterator[Finding]:
        """A run keeps the version of its job that it was made with, and a part of a pipeline that of its own."""
        known = {(name, version) for name, version, _, _ in self._world.backend.look(_VERSIONS)}
        for id, job, version, part_job, part_version, no in self._world.backend.look(_RUNS):
            if job not in DATA_JOBS:
                continue
            run = self._runs.setdefault(str(id), _Run(job, version, {}))
            if run.version != version:
                yield JOB, f"run {str(id)[-6:]} of {job} had version {run.version}, and has {version}"
            if (job, version) not in known:
                yield JOB, f"run {str(id)[-6:]} is of version {version} of {job}, which is gone"
            if part_job is None:
                continue
            if run.parts.setdefault(no, (part_job, part_version)) != (part_job, part_version):
                yield JOB, f"part {no} of run {str(id)[-6:]} was of {run.parts[no]}, and is of version {part_version}"
            is_declared = any(name == part_job for name, _ in known)  # else it waits for a job that is yet to come
            if is_declared and (part_job, part_version) not in known:
                yield JOB, f"part {no} of run {str(id)[-6:]} is of version {part_version} of {part_job}, which is gone"

    def done_as_declared(self) -> Iterator[Finding]:
        """A handler is of the version that its run was made with."""
        editions, self._world.diary.editions = self._world.diary.editions, []
        for edition in editions:
            run = self._runs.get(edition.run_id)
            if run is None:
                continue
            made_with = [(run.job, run.version), *run.parts.values()]
            if (edition.job, edition.version) not in made_with:
                yield (
                    JOB,
                    f"begun with version {edition.version} of {edition.job}, and made with {made_with}: {edition}",
                )

    def no_orphans(self) -> Iterator[Finding]:
        yield from orphans(self._world, ALWAYS)


def _is_asked(seen: Seen) -> bool:
    """Whether the run was asked to stop."""
    where = seen.lease or seen.external or seen.conduct
    return where is not None and where.cancel_at is not None
