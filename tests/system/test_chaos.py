"""Test the short form of `python3 dev.py chaos`: real processes, a few faults, and checks that detect violations."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.chaos import report
from tests.chaos.checks import CHECKS, judge
from tests.chaos.cluster import Life, Plan
from tests.chaos.evidence import Attempt, Effect, Evidence, Step
from tests.chaos.experiment import run_experiment
from tests.chaos.faults import KINDS, POSTGRES, Fault, draw
from tests.chaos.injector import Stroke
from tests.chaos.ledger import Entry, What
from tests.chaos.observer import Glimpse, crowded
from tests.chaos.producer import Asked, Cancelled, Refused, Told
from tests.simulation.world.observer import End, Seen

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000
RUN = "01a1e50d-5f83-727b-8208-4f9372821ae1"
OTHER = "01a1e50d-5f83-727b-8208-4f9372821ae2"

SHORT = Plan(database=POSTGRES, seed=31, seconds=9.0, workers=2, servers=1, calm=1.0, gap=0.8, rest=0.2)
SHORTER = msgspec.structs.replace(SHORT, database="sqlite", seed=3, seconds=4.0, calm=0.7, producers=0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("plan", [SHORT, SHORTER], ids=[POSTGRES, "sqlite"])
def test_no_promise_is_broken(plan: Plan, tmp_path: Path) -> None:
    seen = run_experiment(plan, tmp_path / "left")
    findings = judge(seen)
    page = report.write(tmp_path / "report", plan, seen, findings)
    assert findings == []
    assert {stroke.fault.kind for stroke in seen.strokes} >= {"kill", "pause"}
    assert len(seen.told) >= 4, "each stream of a producer asks once, however busy the machine is"
    assert seen.begun
    assert "No promise was broken" in page.read_text()


def test_a_seed_repeats_the_faults() -> None:
    targets = Plan(database=POSTGRES, seed=1, seconds=1.0).targets
    faults = draw(5, 120.0, targets, calm=3.0, gap=1.0)
    assert faults == draw(5, 120.0, targets, calm=3.0, gap=1.0)
    assert faults != draw(6, 120.0, targets, calm=3.0, gap=1.0)
    assert {fault.kind for fault in faults} == {kind.name for kind in KINDS}
    assert all(fault.at >= 3.0 and fault.at + fault.seconds <= 120.0 for fault in faults)
    for place, fault in enumerate(faults):
        same = [one for one in faults[:place] if (one.target, one.track) == (fault.target, fault.track)]
        assert all(one.at + one.seconds < fault.at for one in same)


def test_the_table_of_faults_has_all_of_them() -> None:
    """As they are struck: on SQLite, only processes are."""
    page = (ROOT / "docs" / "guarantees.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.count("|") == 7]
    told = {kind.strip("`"): (postgres, sqlite) for _, kind, postgres, sqlite, *_ in rows if kind.startswith("`")}
    struck = {kind.name: ("yes", "yes" if kind.track == "process" else "") for kind in KINDS}
    assert told == struck
    named = {name for row in rows for name in re.findall(r"`(tests/\S+)`", row[-1])}
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_without_postgresql_only_processes_are_struck() -> None:
    faults = draw(5, 60.0, Plan(database="sqlite", seed=1, seconds=1.0).targets, calm=1.0, gap=1.0)
    assert {fault.kind for fault in faults} == {"kill", "pause", "stop"}


def run(
    state: str | None = "succeeded", *, id: str = RUN, job: str = "quick", fence: int = 1, **changes: object
) -> Seen:
    end = End(state, fence, fence, 20 * SECOND, f'{{"fence":{fence}}}', "w@1", None) if state else None
    payload = msgspec.json.encode({"order": f"p-{id[-1]}", "lane": 1}).decode()
    made = Seen(id, job, 10 * SECOND, 10 * SECOND, None, None, ("global", "global"), 3, "retry", None, False, payload,
                None, None, end, None, None)  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def attempt(fence: int = 1, outcome: str = "succeeded", *, id: str = RUN, claimed: float = 0.0) -> Attempt:
    """Each begins two seconds after the one before it, and lasts one."""
    at = int((claimed or 10.0 + 2 * fence) * SECOND)
    return Attempt(id, fence, fence, "w@1", at, at + SECOND, outcome)


def said(what: What, fence: int = 1, *, id: str = RUN, worker: str = "w@1", note: str = "") -> Entry:
    return Entry(what, id, "quick", fence, fence, worker, 1, 10.0 + fence, 10.0 + fence, note)


def kept(job: str = "quick") -> Evidence:
    """One run that was asked for, was done once, and about which everybody agrees."""
    return Evidence(
        runs={RUN: run(job=job)},
        attempts=[attempt()],
        entries=[said("begin"), said("did"), said("end")],
        answers=[Asked("p-1", job, {}, {}, 1.0), Told("p-1", RUN, True, 2.0)],
        ended_at=100.0,
    )


def failed_before(job: str, outcome: str = "failed") -> Evidence:
    """Its second attempt succeeded."""
    seen = kept(job)
    seen.runs = {RUN: run(job=job, fence=2)}
    seen.attempts = [attempt(1, outcome), attempt(2)]
    seen.entries = [said("begin"), said("stop"), said("begin", 2), said("did", 2), said("end", 2)]
    return seen


@pytest.mark.parametrize("seen", [kept(), failed_before("flaky"), failed_before("quick", "lost")])
def test_the_judge_is_content_when_all_agree(seen: Evidence) -> None:
    assert judge(seen) == []


def changed(seen: Evidence, **changes: object) -> Evidence:
    for name, value in changes.items():
        setattr(seen, name, value)
    return seen


def two_at_once(job: str) -> Evidence:
    seen = kept(job)
    seen.runs[OTHER] = run(id=OTHER, job=job)
    seen.attempts.append(attempt(id=OTHER, claimed=12.5))
    seen.entries += [said(what, id=OTHER) for what in ("begin", "did", "end")]
    seen.answers += [Asked("p-2", job, {}, {}, 1.0), Told("p-2", OTHER, True, 2.0)]
    return seen


def lossy(since: float, until: float) -> Stroke:
    """A failover that lost what was committed between these."""
    return Stroke(Fault(since, until - since, POSTGRES, "lose"), since, until, lost=(since, until))


PLANTED: dict[str, tuple[str, Callable[[], Evidence]]] = {
    "an acknowledged run is lost": ("P7", lambda: changed(kept(), runs={}, attempts=[], entries=[])),
    "an acknowledged run is never final": ("P7", lambda: changed(kept(), runs={RUN: run(None)})),
    "an order is refused": ("P7", lambda: changed(kept(), answers=[*kept().answers, Refused("p-1", "why", 3.0)])),
    "an order makes two runs": (
        "P8",
        lambda: changed(two_at_once("quick"), runs={RUN: run(), OTHER: run(id=OTHER, payload=run().payload)}),
    ),
    "two answers name two runs": (
        "P8",
        lambda: changed(kept(), answers=[*kept().answers, Told("p-1", OTHER, False, 3.0)]),
    ),
    "a run that nobody asked for": ("P3", lambda: changed(kept(), answers=[])),
    "a begin twice under one fence": ("P9", lambda: changed(kept(), entries=[said("begin"), *kept().entries])),
    "a begin under the fence of another": (
        "P9",
        lambda: changed(kept(), entries=[said("begin", worker="x@1"), said("end")]),
    ),
    "two attempts at once": (
        "P9",
        lambda: changed(failed_before("quick", "lost"), attempts=[attempt(1, "lost", claimed=13.5), attempt(2)]),
    ),
    "a success that no handler knows of": ("P10", lambda: changed(kept(), entries=[said("begin")])),
    "the result of a stale fence": (
        "P10",
        lambda: changed(failed_before("quick", "lost"), runs={RUN: run(fence=2, end=msgspec.structs.replace(
            End("succeeded", 2, 2, 20 * SECOND, '{"fence":1}', "w@1", None)))}),
    ),
    "a success without its transaction": ("P10", lambda: kept("paying")),
    "a transaction without its success": ("P10", lambda: changed(kept("paying"), effects=[Effect(RUN, 7, 1)])),
    "an end that changed": (
        "P11",
        lambda: changed(kept(), ended={RUN: Glimpse(RUN, ("failed", 1, 1, 20 * SECOND, None))}),
    ),
    "a claim after the end": ("P11", lambda: changed(kept(), attempts=[attempt(claimed=30.0)])),
    "an attempt too many": ("P13", lambda: changed(failed_before("quick"), runs={RUN: run(fence=2, max_attempts=1)})),
    "a backoff that is too short": (
        "P13",
        lambda: changed(failed_before("flaky"), attempts=[attempt(1, "failed"), attempt(2, claimed=13.2)]),
    ),
    "a second begin of what is done at most once": ("P14", lambda: failed_before("once", "handed_back")),
    "a begin after a loss": ("P14", lambda: failed_before("careful", "lost")),
    "a claim before its time": ("P2", lambda: changed(kept(), runs={RUN: run(run_at=15 * SECOND)})),
    "two that hold one key": ("P6", lambda: two_at_once("keyed")),
    "a lease that outlives its worker": (
        "P12",
        lambda: changed(
            failed_before("quick", "lost"),
            lives=[Life("worker-1", 1, 0.0, 1.0, "killed", -9), Life("worker-2", 2, -10.0)],
        ),
    ),
    "a cancel that was forgotten": (
        "P15",
        lambda: changed(kept(), answers=[*kept().answers, Cancelled(RUN, "cancelling", 3.0)]),
    ),
    "a step that is done again": (
        "P16",
        lambda: changed(failed_before("stepped"), steps=[Step(RUN, "fetch", 1, "succeeded", "1")],
                        entries=[*failed_before("stepped").entries, said("did", 2, note="fetch")]),
    ),
    "a process that dies": ("P18", lambda: changed(kept(), lives=[Life("worker-1", 1, 0.0, 5.0, "died", -11)])),
    "a process that does not stop": (
        "P22",
        lambda: changed(kept(), lives=[Life("worker-1", 1, 0.0, 60.0, "stopped", 0, 10.0)]),
    ),
    "a fence that is given again after a loss": (
        "P26",
        lambda: changed(
            kept(),
            attempts=[attempt(2, claimed=30.0)],
            runs={RUN: run(fence=2, end=End("succeeded", 2, 2, 40 * SECOND, '{"fence":2}', "w@1", None))},
            entries=[said("begin", 3), said("begin", 2), said("end", 2)],
            strokes=[lossy(9.0, 15.0)],
        ),
    ),
    "a run that was acknowledged before a loss is lost": (
        "P7",
        lambda: changed(kept(), runs={}, attempts=[], entries=[], strokes=[lossy(2.5, 4.0)]),
    ),
    "what was seen as it happened": ("P12", lambda: changed(kept(), findings=[("P12", "stuck")])),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_complained_of(planted: str) -> None:
    promise, seen = PLANTED[planted]
    assert promise in {broken for broken, _ in judge(seen())}


def test_nobody_is_blamed_for_what_could_not_be_done() -> None:
    seen = PLANTED["a lease that outlives its worker"][1]()
    seen.strokes = [Stroke(Fault(5.0, 3.0, POSTGRES, "crash"), 2.0, 4.0)]
    assert judge(seen) == []


LOST: dict[str, Callable[[], Evidence]] = {
    "an acknowledged run": lambda: changed(kept(), runs={}, attempts=[], entries=[], strokes=[lossy(1.5, 3.0)]),
    "a claim": lambda: changed(
        kept("once"),
        runs={RUN: run(job="once", fence=2)},
        attempts=[attempt(2)],
        entries=[said("begin", 1), said("begin", 2), said("did", 2), said("end", 2)],
        strokes=[lossy(10.5, 12.0)],
    ),
    "an end": lambda: changed(
        kept(), ended={RUN: Glimpse(RUN, ("failed", 1, 1, 20 * SECOND, None), 21.0)}, strokes=[lossy(20.5, 22.0)]
    ),
    "a cancel": lambda: changed(
        kept(), answers=[*kept().answers, Cancelled(RUN, "cancelling", 3.0)], strokes=[lossy(2.5, 3.5)]
    ),
    "what a refused run was to follow": lambda: changed(
        kept(),
        answers=[
            *kept().answers, Asked("p-2", "quick", {}, {}, 2.0), Told("p-2", OTHER, True, 3.0),
            Asked("p-3", "quick", {}, {"after": [OTHER]}, 5.0), Refused("p-3", "UnknownRun", 6.0),
        ],
        strokes=[lossy(2.5, 3.5)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("lost", LOST)
def test_what_a_failover_may_lose_is_no_complaint(lost: str) -> None:
    assert judge(LOST[lost]()) == []
    assert judge(changed(LOST[lost](), strokes=[])) != []


def test_every_check_has_been_seen_to_complain() -> None:
    complaining = {check for _, seen in PLANTED.values() for check in CHECKS if list(check(seen()))}
    assert complaining == set(CHECKS)


def test_who_holds_too_much_is_seen_at_once() -> None:
    lane = '{"lane":1}'
    assert crowded([("keyed", lane, None, ""), ("keyed", '{"lane":2}', None, ""), ("narrow", "", None, "")]) == []
    assert crowded([("keyed", lane, None, ""), ("keyed", lane, None, "")]) == ["2 of 1 hold lane 1 of keyed"]
    assert len(crowded([("narrow", "", None, "")] * 3)) == 1
    assert len(crowded([("tick", "", "skipping", "global")] * 2)) == 1


def test_a_complaint_is_in_the_report(tmp_path: Path) -> None:
    seen = PLANTED["an acknowledged run is lost"][1]()
    page = report.write(tmp_path, SHORT, seen, judge(seen)).read_text()
    assert "acknowledged and not there" in page
    assert "1 complaint</h1>" in page
    assert not msgspec.json.decode((tmp_path / "report.json").read_bytes())["kept"]
