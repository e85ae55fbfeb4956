"""Cases of workers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from rota.core.workers.worker import Pace
from tests.conformance.case import Case, Reading, Refusal, refusals
from tests.conformance.world import World
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, put

_PACE = Pace(heartbeat=timedelta(seconds=10), poll=timedelta(seconds=1), lease=timedelta(seconds=30))
_LIST: Reading = ("workers.list", {})


async def workers(world: World) -> None:
    """Three workers, of which two have the same name, and one holds a run."""
    weighted: dict[str, Any] = {"queues": ("a", "b"), "weights": {"a": 3, "b": 1}}
    for id, facts in (("web@aa11", weighted), ("mail@bb22", {}), ("web@cc33", {"labels": ("gpu",)})):
        info = msgspec.structs.replace(WORKER, id=id, name=id[:-5], pace=_PACE, **facts)
        await world.store.extend(info, [], LEASE_MICROS)
    world.note("run", await put(world.store))
    await claim(world.store, worker="mail@bb22")


def _updated(what: str, settings: dict[str, Any], **expected: Any) -> Case:
    contains = [{"id": "mail@bb22", "asked": {"settings": expected}, "asked_by": "<actor>"}]
    return Case("workers.update", what, ("mail",), settings, given=(workers,), contains=contains, reads=_LIST)


def _commands(verb: str, state: str) -> list[Case]:
    return [
        Case(
            verb,
            "one, by the beginning of its id",
            ("web@a",),
            given=(workers,),
            contains=[{"id": "web@aa11", "asked": {"state": state}, "asked_by": "<actor>"}],
            reads=_LIST,
        ),
        Case(
            verb,
            "nobody",
            ("wob",),
            given=(workers,),
            refused=Refusal("unknown-worker", "wob", "'web'"),
            reads=_LIST,
        ),
        Case(
            verb,
            "several with the same beginning of an id",
            ("web@",),
            given=(workers,),
            refused=Refusal("ambiguous-worker", "web@", "web@aa11"),
            reads=_LIST,
        ),
    ]


CASES = [
    Case(
        "workers.list",
        "by name",
        given=(workers,),
        contains=[
            {"id": "mail@bb22", "held": 1, "runs": [{"id": "<run>", "job": "work", "attempt": 1}], "asked": None},
            {"id": "web@aa11", "queues": {"a": 3, "b": 1}, "heartbeat": "10s", "poll": "1s", "state": "working"},
            {"id": "web@cc33", "labels": ["gpu"]},
        ],
    ),
    Case("workers.list", "none", contains=[]),
    Case("workers.get", "by name", ("mail",), given=(workers,), contains={"id": "mail@bb22", "heartbeat": "10s"}),
    Case("workers.get", "by id", ("web@aa11",), given=(workers,), contains={"id": "web@aa11", "slots": 10}),
    Case("workers.get", "nobody", ("mial",), given=(workers,), refused=Refusal("unknown-worker", "mial", "'mail'")),
    *_commands("workers.drain", "draining"),
    *_commands("workers.stop", "stopping"),
    Case("workers.drain", "all of a name", ("web",), given=(workers,), contains=[{}, {}], reads=_LIST),
    Case(
        "workers.resume",
        "one that drains",
        ("mail",),
        given=(workers, lambda world: world.client.workers.drain("mail", actor="ann")),
        contains=[{"asked": None}],
        reads=_LIST,
    ),
    *refusals(
        "workers.resume",
        ("one that stops", ("mail",), {}, Refusal("conflict", "mail", "")),
        given=(workers, lambda world: world.client.workers.stop("mail", actor="ann")),
        reads=_LIST,
    ),
    Case("workers.stop", "all of a name", ("web",), given=(workers,), contains=[{}, {}], reads=_LIST),
    _updated("slots", {"slots": 3}, slots=3),
    _updated("names of queues", {"queues": ["a", "b"]}, queues={"a": 1, "b": 1}),
    _updated("queues with weights", {"queues": {"a": 2, "b": 1}}, queues={"a": 2, "b": 1}),
    _updated("durations as texts", {"heartbeat": "5s", "poll": "500ms"}, heartbeat="5s", poll="500ms"),
    _updated("durations", {"heartbeat": timedelta(seconds=5), "poll": timedelta(seconds=2)}, heartbeat="5s", poll="2s"),
    *refusals(
        "workers.update",
        ("no slots", ("mail",), {"slots": 0}, Refusal("out-of-range", "slots", "give 1 to ")),
        ("nothing", ("mail",), {}, Refusal("invalid", "", "slots")),
        ("a wrong duration", ("mail",), {"poll": "soon"}, Refusal("bad-duration", "poll", "90s")),
        ("a heartbeat as long as the lease", ("mail",), {"heartbeat": "30s"}, Refusal("invalid", "heartbeat", "lease")),
        ("too short a poll", ("mail",), {"poll": "1ms"}, Refusal("invalid", "poll", None)),
        ("a weight of nothing", ("mail",), {"queues": {"a": 0}}, Refusal("invalid", "weight", None)),
        given=(workers,),
        reads=_LIST,
    ),
]
