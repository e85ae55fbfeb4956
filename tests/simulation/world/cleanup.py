"""How a world comes to its end: what held runs back is let go, and what nobody there can do is given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rota.store import Store
from rota.store.databases.database import Row
from tests.simulation.application.coordination_jobs import EXTERNAL, REPLICATED
from tests.simulation.application.data_jobs import DATA_EXTERNAL, DATA_PIPELINES
from tests.simulation.checks.audit_trail import HAND
from tests.simulation.checks.coordination.eligibility import Eligibility
from tests.simulation.clients import external
from tests.simulation.script.entries import Answer, ExternalWorker, Hold, Script

if TYPE_CHECKING:
    from tests.simulation.world.world import World

HELPER, ANSWERER = "outsider-9", "outsider-8"
_LONG = 10_000.0
_HELD_JOBS = "select name from rota_pause where kind = 'job' order by name"

# Runs of pipelines whose next part is of a job that was not there when they came to it.
_UNDECLARED = """
select s.run_id from rota_stage s join rota_ready w on w.run_id = s.run_id
where not exists (select 1 from rota_job j where j.name = s.job and j.dropped_at is null) order by s.run_id
"""


async def let_go(store: Store, script: Script, look: Callable[[str], Sequence[Row]]) -> None:
    """Schedules name no more plan times, and nothing is paused any more."""
    for schedule in await store.schedules.list(job=None, owner=None, limit=100, after=None):
        await store.schedules.pause(schedule.name, HAND, None, None)
    held = sorted({(entry.kind, entry.name) for entry in script.entries if isinstance(entry, Hold)})
    held += [("job", str(name)) for (name,) in look(_HELD_JOBS) if ("job", name) not in held]
    for kind, name in held:
        await (store.resume_queue(name) if kind == "queue" else store.resume_job(name, "skip", None))


async def give_up_what_waits_in_vain(world: World, store: Store) -> None:
    """Runs that need more workers, or other ones, than there are rightly wait for ever: somebody cancels them.

    And what waits for those outside, each attempt anew, gets its answer.
    """
    eligibility = Eligibility(world)
    for seen in list(world.observer.live.values()):
        if seen.parent_id is None and seen.conduct and seen.conduct.cancel_at is not None:
            continue
        if seen.parent_id is None and (seen.job in REPLICATED or seen.place) and eligibility.lacks_workers(seen):
            await store.cancel(seen.id, HAND, HAND)
            world.committed(world.loop.world, "Store.cancel")
    for (run_id,) in world.backend.look(_UNDECLARED):
        await store.cancel(str(run_id), HAND, HAND)
        world.committed(world.loop.world, "Store.cancel")
    if any(seen.external for seen in world.observer.live.values()):
        process, entry = world.client(ANSWERER), Answer(world.loop.time(), ANSWERER, "complete")
        world.loop.spawn(process, external.answer(process, entry))


def help_outside(world: World) -> None:
    """Whoever did external jobs may be gone: somebody comes for what is left, once."""
    done_outside = (*EXTERNAL, *DATA_EXTERNAL, *DATA_PIPELINES)
    waits = any(seen.job in done_outside for seen in world.observer.live.values())
    if waits and HELPER not in world.processes:
        process = world.client(HELPER)
        world.loop.spawn(process, external.outsider(process, ExternalWorker(world.loop.time(), HELPER, _LONG)))
