"""A sample of the explorer's pairs; with `--long`, all pairs and triples, and all planted faults."""

from __future__ import annotations

import pytest

from rota.store.databases.database import Tx
from tests.explorer.actors import Actor
from tests.explorer.explorer import Explorer
from tests.explorer.faults import FAULTS, Fault, found
from tests.explorer.play import Choice, Play
from tests.explorer.scenes.catalogue import SCENES, pairs
from tests.explorer.tables import Content, difference
from tests.support.forms import with_long_form

pytestmark = pytest.mark.postgres

SAMPLE = [
    ("held", "report success", "restrict"),
    ("held", "report mixed", "reap"),
    ("held", "report success", "enqueue after both"),
    ("waiting", "claim", "cancel due"),
    ("waiting", "enqueue keyed", "replace"),
    ("waiting", "replace", "cancel keyed"),
    ("waiting", "cancel due", "cancel follower"),
    ("waiting", "cancel many", "cancel follower"),
    ("limited", "report success", "enqueue newest"),
    ("outside", "finish", "beat"),
    ("outside", "finish", "cancel"),
    ("jobs", "drop softly", "enqueue"),
    ("replicated", "report success", "cancel parent"),
    ("replicated", "hand back", "restrict"),
    ("displaced", "plan", "cancel both"),
    ("absent", "give up", "cancel absent"),
]
ALL = [
    (name, *names) for name, scene in SCENES.items() for names in (*pairs(scene), *scene.triples)
]  # fmt: skip
QUICK = [fault for fault in FAULTS if fault.shows == "lost wake-up" or fault.meeting[0] == "outside"]
REST = [fault for fault in FAULTS if fault not in QUICK]


@pytest.mark.parametrize("meeting", with_long_form(SAMPLE, [one for one in ALL if one not in SAMPLE]), ids=" × ".join)
async def test_every_order_ends_as_a_serial_one(explorer: Explorer, meeting: tuple[str, ...]) -> None:
    scene, *names = meeting
    await explorer.enter(SCENES[scene])
    explored = await explorer.explore(names, preemptions=1)
    assert [str(finding) for finding in explored.findings.values()] == []
    assert explored.plays > 1
    assert explored.whole


@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", with_long_form(QUICK, REST), ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(explored_url: str, fault: Fault) -> None:
    printed = found(fault, explored_url)
    assert f"{fault.shows}:" in printed, printed


async def test_a_line_plays_the_same_again(explorer: Explorer) -> None:
    await explorer.enter(SCENES["outside"])
    names, order = ["finish", "cancel"], "AAABBBAAAB"
    played, findings = await explorer.replay(names, order)
    again, _ = await explorer.replay(names, played.schedule)
    assert (again.schedule, again.steps) == (played.schedule, played.steps)
    assert played.schedule.startswith(order[:3])
    assert findings == []


async def test_a_deadlock_is_told_and_its_victim_tried_again(explored_url: str, explorer: Explorer) -> None:
    """Two who write the same rows in different orders, as PostgreSQL has it: one is rolled back, and begins anew."""
    await explorer.enter(SCENES["outside"])

    async def writes(actor: Actor, *names: str) -> None:
        async def body(tx: Tx) -> None:
            for name in names:
                await tx.fetch_sql("update rota_worker set slots = slots + 1 where name = :name", name=name)

        await actor.database.transact(body)

    monitor = explorer.monitor
    await monitor.execute("delete from rota_worker")
    for name in ("one", "two"):
        await monitor.execute(
            "insert into rota_worker (id, name, host, pid, version, queues, jobs, slots, started_at, seen_at) "
            "values ($1, $1, '', 1, '', '[]', '[]', 0, 0, 0)",
            name,
        )
    one, other = explorer.actors[:2]
    acts = [lambda: writes(one, "one", "two"), lambda: writes(other, "two", "one")]
    order = iter("AB" * 20)

    def choose(choice: Choice) -> str:
        letter = next(order)
        return letter if letter in choice.enabled else min(choice.enabled)

    played = await Play([one, other], monitor).run(acts, choose)
    (deadlock,) = played.deadlocks
    assert {who for who, _ in deadlock.waits} == {"A", "B"}
    assert [slots for (slots,) in await monitor.fetch("select slots from rota_worker")] == [2, 2]


def test_a_difference_names_the_rows() -> None:
    one: Content = {"rota_run": ("a", "b")}
    other: Content = {"rota_run": ("b", "c"), "rota_wait": ("d",)}
    assert difference(one, other) == ["- rota_run c", "+ rota_run a", "- rota_wait d"]
