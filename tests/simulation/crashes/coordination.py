"""Small worlds about coordination: runs that follow others, that several workers do, and so many within a span."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from tests.simulation.crashes import promises as must
from tests.simulation.crashes.promises import calls, creations, runs_of, state_of, together
from tests.simulation.crashes.scenario import FIRST, REPORTED, SECOND, Scenario, enqueue
from tests.simulation.crashes.world import CrashWorld
from tests.simulation.script.entries import Cancel, ExternalWorker, Family, Link, Member, Restrict

_OK, _BAD = ["ok:0.1"], ["fail:0.1"]
_DIAMOND = [
    Member("plain", _OK),
    Member("plain", _OK, [Link(0)]),
    Member("plain", _OK, [Link(0, on="end")]),
    Member("plain", _OK, [Link(1), Link(2, otherwise="cancel")]),
]
_IN_VAIN = [
    Member("plain", _BAD),
    Member("plain", _OK, [Link(0)]),
    Member("plain", _OK, [Link(0, otherwise="cancel")]),
    Member("plain", _OK, [Link(0, on="end")]),
    Member("plain", _OK, [Link(1)]),
]


def families_whole_or_not(world: CrashWorld) -> Iterator[str]:
    """What was acknowledged is there, the whole of it; what was not is there as a whole or not at all; none twice."""
    numbers = Counter(msgspec.json.decode(run.payload)["n"] for _, run in creations(world) if run.retry_of is None)
    families = [(place, e) for place, e in enumerate(world.script.entries) if isinstance(e, Family)]
    for (place, entry), call in zip(families, calls(world, "enqueue"), strict=True):
        made = [numbers[place * 100 + number] for number in range(len(entry.members))]
        if made != [1] * len(made) and (call.acknowledged or any(made)):
            yield f"of {len(made)} runs that follow each other {made} were made by {call}"


def ends_as(*states: str) -> must.Promise:
    """The members of the only family, in their order, if it was made."""

    def promise(world: CrashWorld) -> Iterator[str]:
        found = {msgspec.json.decode(run.payload)["n"] % 100: state_of(run) for run in runs_of(world)}
        told = [found[number] for number in sorted(found)]
        if told and told != list(states):
            yield f"the members ended {told}, not {list(states)}"

    return promise


def each_by_another(world: CrashWorld) -> Iterator[str]:
    """Replicas that succeeded did so on workers of different names, and so many as were wanted."""
    parents = [run for run in runs_of(world) if run.parent_id is None and state_of(run) == "succeeded"]
    for parent in parents:
        done = [run for run in runs_of(world) if run.parent_id == parent.id and state_of(run) == "succeeded"]
        names = [(run.end.worker or "").rpartition("@")[0] for run in done if run.end]
        if sorted(names) != sorted(set(names)) or not names:
            yield f"{parent} was done by {names}"


def parents_end(*states: str) -> must.Promise:
    def promise(world: CrashWorld) -> Iterator[str]:
        for run in runs_of(world):
            if run.parent_id is None and state_of(run) not in states:
                yield f"{run} is not {' or '.join(states)}"

    return promise


COORDINATION = [
    Scenario(
        name="enqueue-family",
        entries=[Family(0.5, FIRST, _DIAMOND, keyed=True)],
        subjects=("client-1 Store.enqueue", REPORTED),
        promise=together(families_whole_or_not, ends_as(*["succeeded"] * 4), must.trouble_repeats_nothing),
    ),
    Scenario(
        name="enqueue-family-without-keys",
        entries=[Family(0.5, FIRST, _DIAMOND)],
        subjects=("client-1 Store.enqueue",),
        promise=together(families_whole_or_not, ends_as(*["succeeded"] * 4)),
    ),
    Scenario(
        name="end-in-vain",
        entries=[Family(0.5, FIRST, _IN_VAIN, keyed=True)],
        subjects=(REPORTED,),
        promise=together(families_whole_or_not, ends_as("failed", "skipped", "cancelled", "succeeded", "skipped")),
    ),
    Scenario(
        name="cancel-of-a-predecessor",
        entries=[
            Family(0.5, FIRST, [Member("plain", _OK, options={"delay": "6s"}), Member("plain", _OK, [Link(0)])]),
            Cancel(2.0, SECOND, 0.0),
        ],
        subjects=("client-2 Store.cancel",),
        promise=together(
            families_whole_or_not, must.cancelled_if_told, must.all_end("cancelled", "skipped", "succeeded")
        ),
        span=7.0,
    ),
    Scenario(
        name="replicas",
        entries=[enqueue(0.5, "pair", "ok:0.3")],
        subjects=(
            "client Store.enqueue",
            "engine _begin_some",
            "engine Store.claim_in_order",
            "engine _look_at_some",
            REPORTED,
        ),
        promise=together(parents_end("succeeded"), each_by_another),
        engines=2,
        span=6.0,
    ),
    Scenario(
        name="replicas-of-all-that-fail",
        entries=[enqueue(0.5, "fleet", "fail:0.3")],
        subjects=("engine _begin_some", "engine _look_at_some", REPORTED),
        promise=parents_end("failed"),
        engines=2,
        span=6.0,
    ),
    Scenario(
        name="replicas-and-cancel",
        entries=[enqueue(0.5, "pair", "ok:5"), Cancel(2.0, SECOND, 0.0)],
        subjects=("client-2 Store.cancel", "engine _look_at_some"),
        promise=parents_end("cancelled", "succeeded", "failed"),
        engines=2,
        span=7.0,
    ),
    Scenario(
        name="restrict",
        entries=[enqueue(0.5, "named", "ok:3"), Restrict(1.5, SECOND, 0.0, ["engine-2"])],
        subjects=("client-2 Store.restrict", "engine Store.claim_in_order"),
        promise=must.all_end("succeeded"),
        engines=2,
        span=8.0,
    ),
    Scenario(
        name="rate",
        entries=[enqueue(0.5, "rated", "ok:0.1", copies=4)],
        subjects=("engine Store.claim_in_order", "client Store.enqueue"),
        promise=must.all_end("succeeded"),
        engines=2,
        span=6.0,
    ),
    Scenario(
        name="external",
        entries=[
            ExternalWorker(0.5, "outsider-1", 5.0),
            enqueue(1.0, "label", "ok:0.5"),
            ExternalWorker(6.0, "outsider-2", 5.0),
        ],
        subjects=("outsider-1 Store.claim_assigned", "outsider-1 ExternalStore.finish"),
        promise=must.all_end("succeeded"),
        span=12.0,
    ),
]
