"""Runs with keys that are enqueued together get the answers that they would get one after the other."""

import random
from collections.abc import Sequence

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import KeyHold, OnConflict
from rota.core.limits.limits import Limit
from rota.core.runs.run import NewRun
from rota.store import Store
from tests.support.forms import with_long_form
from tests.support.runs.runs import make

KEYS = "abcde"
PLAIN = JobDefinition(name="work")
LIMITED = JobDefinition(name="limited", limits=(Limit(max=1, max_queued=3, when_full="skip"),))


def drawn(seed: int, world: str) -> list[NewRun]:
    """Draw runs with up to two keys each, of a few: most meet others of the same batch."""
    chance = random.Random(seed)
    job = chance.choice((PLAIN, PLAIN, LIMITED))
    job = msgspec.structs.replace(job, name=f"{job.name} {world}")
    runs = []
    for number in range(chance.randint(2, 12)):
        keys = chance.sample(KEYS, chance.randint(0, 2))
        conflict = chance.choice((OnConflict.EXISTING, OnConflict.REPLACE))
        holds = tuple(KeyHold(f"{world} {key}", on_conflict=conflict) for key in keys)
        runs.append(msgspec.structs.replace(make(job, payload={"number": number}), holds=holds))
    return runs


async def outcome(store: Store, runs: Sequence[NewRun], *, together: bool) -> list[object]:
    """Enqueue the runs; return, for each, the place of the run that answers for it, and what became of that one."""
    if together:
        answers = await store.enqueue(runs)
    else:
        answers = [(await store.enqueue([run]))[0] for run in runs]
    places = {run.id: place for place, run in enumerate(runs)}
    existing = {run.id: run for run in await store.get_runs({answer.id for answer in answers})}
    return [
        (places.get(answer.id), answer.created, existing[answer.id].state, existing[answer.id].payload)
        for answer in answers
    ]


@pytest.mark.parametrize("seed", with_long_form(range(25), range(25, 500)))
async def test_together_as_one_after_the_other(store: Store, seed: int) -> None:
    first = drawn(seed, "before")[:1]
    for world in ("together", "alone"):
        await store.save_jobs([msgspec.structs.replace(job, name=f"{job.name} {world}") for job in (PLAIN, LIMITED)])
        # Some keys are held already.
        held = [msgspec.structs.replace(run, id=store.new_id(), holds=_of(world, run), gates=()) for run in first]
        await store.enqueue(held)
    together = await outcome(store, drawn(seed, "together"), together=True)
    assert together == await outcome(store, drawn(seed, "alone"), together=False)


def _of(world: str, run: NewRun) -> tuple[KeyHold, ...]:
    return tuple(msgspec.structs.replace(hold, key=hold.key.replace("before", world)) for hold in run.holds)
