"""Run a chaos experiment: start everything, inject faults, heal, wait until all is at rest, gather the evidence."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from rota import Order
from rota.errors import RotaError, RunIsFinal
from rota.remote import RemoteClient
from rota.store import Store, open_database
from tests.chaos import append_log, ledger
from tests.chaos.cluster import PATIENCE, Cluster, Plan, Target
from tests.chaos.evidence import Evidence
from tests.chaos.faults import draw
from tests.chaos.final_state import Rest
from tests.chaos.injector import Injector
from tests.chaos.jobs import MAKE_EFFECTS
from tests.chaos.observer import Watcher
from tests.chaos.producer import Line
from tests.simulation.world.observer import Finding

Say = Callable[[str], None]

_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*.*", re.MULTILINE)
STUCK = 15.0
"""Seconds without the end of any run, while some are left: the longest takes five, and a lease three."""
LATE = 3.0
"""Seconds, that a plan time may wait for its planner on a busy machine."""
RECOVERY = 60.0
"""Seconds after the last fault: by then everybody works again, on a busy machine, too."""


def run_experiment(plan: Plan, folder: Path, say: Say = lambda _: None) -> Evidence:
    """Takes a little longer than the plan says: until all has come to rest."""
    faults = draw(plan.seed, plan.seconds, plan.targets, calm=plan.calm, gap=plan.gap)
    with Cluster(plan, folder) as cluster:
        asyncio.run(_prepare(cluster.url))
        cluster.start()
        injector, watcher = Injector(cluster, faults), Watcher(cluster.url)
        watcher.begin()
        injector.begin()
        say(f"{len(cluster.targets)} processes on {plan.database}; {len(faults)} faults in {plan.seconds:g} s")
        time.sleep(max(0.0, injector.began_at + plan.seconds - time.monotonic()))
        injector.heal()
        healed_at = time.monotonic()
        say("every fault is over; whether everybody works again")
        with Rest(cluster.url) as rest:
            findings = list(_recovered(cluster, rest))
            recovered_at = time.monotonic()
            say("producers and schedules end; until all runs are final")
            findings += _come_to_rest(cluster, rest, watcher, injector)
            say("what is left of it")
            return _gathered(cluster, rest, Evidence(
                runs=rest.observer.runs,
                attempts=[],
                entries=[],
                ended=watcher.ended,
                lives=cluster.lives,
                strokes=injector.strokes,
                findings=findings,
                looks=(watcher.looks, watcher.in_vain),
                wall=time.time() - time.monotonic(),
                began_at=injector.began_at,
                healed_at=healed_at,
                recovered_at=recovered_at,
                ended_at=time.monotonic(),
            ))  # fmt: skip


async def _prepare(url: str) -> None:
    store = Store(open_database(url))
    await store.migrate()
    await store.database.transact(lambda tx: tx.script(MAKE_EFFECTS))
    await store.close()


def _recovered(cluster: Cluster, rest: Rest) -> Iterator[Finding]:
    """P18: every process works again by itself.

    Each worker does a run that is for it alone, each server takes one, and schedules are planned.
    """
    deadline = time.monotonic() + RECOVERY
    for target in cluster.await_ready(RECOVERY):
        yield "P18", f"{target.name} does not work again: {target.process.log[-2_000:]}"
    probes = {
        target.name: rest.wait(rest.client.enqueue(Order("probe", {}, {"only_workers": [target.name]}))).id
        for target in cluster.of_kind("worker")
    }
    for name, url in cluster.servers.items():
        try:
            probes[name] = rest.wait(_enqueue_at(url))
        except RotaError as error:
            yield "P18", f"{name} takes no run {RECOVERY:g}s after the last fault: {error}"
    for name, run_id in probes.items():
        try:
            run = rest.wait(rest.client.wait(run_id, f"{max(1.0, deadline - time.monotonic()):.3f}s"))
        except RotaError as error:
            yield "P18", f"{name} does nothing {RECOVERY:g}s after the last fault: {error}"
        else:
            if run.state != "succeeded":
                yield "P18", f"what was for {name} alone has {run.state}: {run}"
    while (late := rest.overdue(LATE)) and time.monotonic() < deadline:
        time.sleep(0.2)
    if late:
        yield "P18", f"nobody plans {', '.join(late)} {RECOVERY:g}s after the last fault"


async def _enqueue_at(url: str) -> str:
    async with RemoteClient(url, timeout=f"{RECOVERY / 4}s") as client:
        return (await client.enqueue(Order("probe", {}))).id


def _come_to_rest(cluster: Cluster, rest: Rest, watcher: Watcher, injector: Injector) -> list[Finding]:
    """Nobody wants anything new; what there is ends; then everybody is told to stop."""
    cluster.leave_alone()
    _stop(cluster.of_kind("caller", "producer"), cluster.plan.patience)
    for (name,) in rest.look("select name from rota_schedule"):
        rest.wait(rest.client.schedules.pause(name, reason="the chaos test is over"))
    if any(stroke.lost for stroke in injector.strokes):
        _cancel_again(rest)
    stuck = list(_ends(rest, cluster.plan.patience))
    watcher.end()
    _stop(cluster.of_kind("worker", "server"))
    return [*stuck, *watcher.findings, *(("chaos", error) for error in injector.errors)]


def _cancel_again(rest: Rest) -> None:
    """Cancel runs that would go on for ever: a failover may have lost that somebody did."""
    for (run_id,) in rest.look("select id from rota_run where job = 'endless' and state is null"):
        with suppress(RunIsFinal):
            rest.wait(rest.client.cancel(str(run_id)))


def _ends(rest: Rest, patience: float) -> Iterator[Finding]:
    """P12: nothing is stuck, which is: goes on for so long without any run coming to its end."""
    left, since, deadline = rest.unfinished(), time.monotonic(), time.monotonic() + patience
    told: set[str] = set()
    while left and time.monotonic() < deadline:
        time.sleep(0.2)
        if (count := rest.unfinished()) < left:
            left, since = count, time.monotonic()
        if time.monotonic() - since > STUCK:
            for run_id, words in rest.why_not():
                if run_id not in told:
                    yield "P12", f"stuck for {STUCK:g}s while nothing is in the way: {words}"
                told.add(run_id)


def _stop(targets: list[Target], patience: float = PATIENCE) -> None:
    with ThreadPoolExecutor(len(targets)) as threads:
        list(threads.map(lambda target: target.stop(patience), targets))


def _unexpected(logs: Path) -> Iterator[Finding]:
    """What goes wrong when the database does is said in a line; a traceback is something that nobody thought of.

    But for requests that a server interrupts when it was told to stop: uvicorn tells of those so.
    """
    for path in sorted(logs.glob("*.log")):
        for found in _TRACEBACK.findall(path.read_text(errors="replace")):
            if "timeout graceful shutdown exceeded" not in found:
                yield "engine", f"{path.name}: {found[-2_000:]}"


def _gathered(cluster: Cluster, rest: Rest, seen: Evidence) -> Evidence:
    seen.findings += [*rest.findings(), *_unexpected(cluster.logs)]
    seen.attempts, seen.steps, seen.effects = rest.attempts(), rest.steps(), rest.effects()
    seen.schedules = {str(id): name for id, name in rest.look("select id, name from rota_schedule")}
    seen.entries = ledger.entries(cluster.ledger)
    seen.answers = append_log.read_all(cluster.answers, Line)  # type: ignore[arg-type]
    return seen
