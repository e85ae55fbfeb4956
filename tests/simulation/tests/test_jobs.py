"""Jobs as a whole under load: worlds of that theme alone, and planted bugs that these worlds have to find."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, islice

import pytest

from tests.simulation.checks.orphans import QUESTIONS, orphans
from tests.simulation.mutants.catalogue import BUGS
from tests.simulation.mutants.search import Hunted, false_alarm, try_seeds
from tests.simulation.script.entries import ChangeJob, Script
from tests.simulation.script.generator import draw
from tests.simulation.script.job_themes import JOBS
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.world import World
from tests.support.forms import with_long_form

WITHIN = 40
"""Worlds in which a planted bug has to be found."""
SAMPLE = (
    "delete-forgets-schedules",
    "cancel-does-not-disable",
    "resume-revives-twice",
    "a-change-takes-live-runs-along",
    "delete-under-a-claim",
    "forced-delete-leaves-what-pipelines-need",
    "delete-forgets-that-it-was-paused",
)
CHUNK = 10


@pytest.fixture
def backend() -> Iterator[Backend]:
    sqlite = open_backend(None)
    yield sqlite
    sqlite.close()


@pytest.mark.parametrize("first", with_long_form(range(0, 40, CHUNK), range(40, 2_000, CHUNK)))
def test_jobs_are_kept_as_declared(backend: Backend, first: int) -> None:
    asked: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        world = World(draw(seed, JOBS), backend)
        violation = world.run().violation
        assert violation is None, f"seed {seed} of the theme: {violation}"
        asked.update(call.verb for call in world.diary.calls if call.acknowledged)
    # A world in which nobody does anything to jobs would show nothing.
    assert {"create_job", "replace_job", "cancel_job", "resume_job", "delete_job", "attach_job"} <= asked.keys()


def test_all_kinds_of_jobs_are_created_and_changed() -> None:
    scripts: list[Script] = [draw(seed, JOBS) for seed in range(100)]
    changes = [entry for script in scripts for entry in script.entries if isinstance(entry, ChangeJob)]
    verbs = {(entry.job, entry.verb) for entry in changes}
    for job in ("ping", "tool", "task", "flow", "probe"):
        wanted = {"create", "update", "replace", "pause", "resume", "cancel", "retry", "attach", "delete"}
        assert {verb for name, verb in verbs if name == job} == wanted


@pytest.mark.parametrize("name", SAMPLE)
def test_a_planted_bug_is_found_within_few_worlds(name: str) -> None:
    bug = next(bug for bug in BUGS if bug.name == name)
    worlds = islice((seed for seed in count() if draw(seed).theme == JOBS.name), WITHIN)
    caught = try_seeds(bug, worlds)
    assert caught is not None
    assert caught.promise in ("job", "orphan")
    assert false_alarm([Hunted(bug, caught)]) is None


def test_what_is_left_behind_is_found(backend: Backend) -> None:
    """Whatever a world has: without its jobs, then its schedules, then its runs, all of it is orphaned."""
    found: set[str] = set()
    for seed in range(6):
        world = World(draw(seed, JOBS), backend)
        world.run()
        assert [*orphans(world)] == []
        for table in ("rota_job", "rota_schedule", "rota_run"):
            backend.look(f"delete from {table}")
            found |= {message.partition(": ")[0] for _, message in orphans(world)}
    assert len(found) >= 10, sorted(QUESTIONS.keys() - found)
