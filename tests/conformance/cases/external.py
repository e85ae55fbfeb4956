"""Cases of work outside: runs that others claim and report."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rota.client.client import Order
from rota.core.runs.run import RunError
from tests.conformance.case import PYTHON, REST, Case, Reading, Refusal, refusals
from tests.conformance.cases.runs import MISSING, finished, running
from tests.conformance.world import World

_GET: Reading = ("get", {"run_id": "<run>"})


async def offered(world: World) -> None:
    """Enqueue a run that nobody has claimed yet."""
    world.note("run", (await world.client.enqueue(Order("label", {"image": "cat.png"}))).id)


async def stopping(world: World) -> None:
    """Cancel a run that is under way."""
    await running(world)
    await world.client.cancel(world.names["<run>"], actor="ann")


_UNDER = ("<run>", 1)
_SUCCEEDED, _AGAIN = {"state": "succeeded"}, {"state": "scheduled"}
_STALE: dict[str, tuple[Any, ...]] = {
    "heartbeat": (),
    "progress": (50,),
    "step": ("look", "failed"),
    "logs": (["late"],),
    "complete": (7,),
    "fail": ("x",),
    "cancelled": (),
}
CASES = [
    Case(
        "external.claim",
        "a run",
        ("w",),
        {"jobs": ["label"], "lease": "90s", "labels": ["gpu"]},
        given=(offered,),
        contains={"runs": [{"id": "<run>", "fence": 1, "payload": {"image": "cat.png"}}]},
        reads=_GET,
    ),
    Case("external.claim", "of another queue", ("w",), {"queues": ["other"]}, given=(offered,), contains={"runs": []}),
    *refusals(
        "external.claim",
        ("none", ("w",), {"max": 0}, Refusal("out-of-range", "max", "give 1 to 100")),
        ("for too long", ("w",), {"wait": "1h"}, Refusal("invalid", "wait", "")),
        ("of a job in code", ("w",), {"jobs": ["rest"]}, Refusal("invalid", "rest", "")),
        ("of an unknown job", ("w",), {"jobs": ["lable"]}, Refusal("unknown-job", "lable", "'label'")),
        given=(offered,),
        reads=_GET,
    ),
    Case("external.heartbeat", "under its fence", _UNDER, given=(running,), contains={"cancelling": False}),
    Case(
        "external.progress",
        "under its fence",
        (*_UNDER, 60),
        {"summary": "more"},
        given=(running,),
        contains={"cancelling": False, "lease_until": "<time>"},
        reads=_GET,
    ),
    Case(
        "external.step",
        "that succeeded",
        (*_UNDER, "see", "succeeded"),
        {"result": {"n": 2}},
        given=(running,),
        contains={"state": "succeeded"},
        reads=("steps", {"run_id": "<run>"}),
    ),
    Case(
        "external.step",
        "that failed",
        (*_UNDER, "see", "failed"),
        {"error": RunError("Blurred", "too dark", code="E7")},
        given=(running,),
        contains={"state": "failed"},
        reads=("steps", {"run_id": "<run>"}),
    ),
    Case(
        "external.logs",
        "a second time",
        (*_UNDER, ["one"]),
        {"no": 1},
        given=(running,),
        contains=None,
        reads=("logs", {"run_id": "<run>"}),
    ),
    Case(
        "external.logs",
        "once more",
        (*_UNDER, ["four", {"text": "five", "level": "warning"}]),
        {"no": 2},
        given=(running,),
        contains=None,
        reads=("logs", {"run_id": "<run>"}),
    ),
    Case(
        "external.complete",
        "with a result",
        (*_UNDER, {"label": "cat"}),
        given=(running,),
        contains=_SUCCEEDED,
        reads=_GET,
    ),
    Case(
        "external.complete",
        "a second time",
        (*_UNDER, {"label": "cat"}),
        given=(finished,),
        contains=_SUCCEEDED,
        reads=_GET,
    ),
    Case("external.fail", "with a text", (*_UNDER, "too dark"), given=(running,), contains=_AGAIN, reads=_GET),
    Case(
        "external.fail",
        "and again after a timedelta",
        (*_UNDER, RunError("Blurred", "too dark")),
        {"after": timedelta(hours=2)},
        given=(running,),
        contains=_AGAIN,
        reads=_GET,
        only=(*PYTHON, REST),  # a command has a message only
    ),
    Case(
        "external.fail",
        "for good",
        (*_UNDER, "too dark"),
        {"retry": False},
        given=(running,),
        contains={"state": "failed"},
        reads=_GET,
    ),
    *refusals(
        "external.fail",
        ("what was completed", (*_UNDER, "too dark"), {}, Refusal("already-reported", "<run>", "")),
        given=(finished,),
        reads=_GET,
    ),
    *(
        Case(
            f"external.{verb}", "while it is to stop", (*_UNDER, *rest), given=(stopping,), contains=answer, reads=_GET
        )
        for verb, rest, answer in (
            ("heartbeat", (), {"cancelling": True}),
            ("progress", (50,), {"cancelling": True}),
            ("cancelled", (), {"state": "cancelled"}),
        )
    ),
    *refusals(
        "external.cancelled",
        ("what nobody cancelled", _UNDER, {}, Refusal("not-asked", "<run>", "")),
        given=(running,),
        reads=_GET,
    ),
    *refusals(
        "external.complete",
        ("under no fence", ("<run>", 0), {}, Refusal("invalid", "fence", shape=True)),
        given=(running,),
        reads=_GET,
    ),
    *refusals(
        "external.fail",
        ("with nothing", (*_UNDER, ""), {}, Refusal("invalid", "error", "", shape=True)),
        ("and again sometime", (*_UNDER, "x"), {"after": "soon"}, Refusal("bad-duration", "after", "90s")),
        given=(running,),
        reads=_GET,
    ),
    *(
        case
        for verb, rest in _STALE.items()
        for case in (
            *refusals(
                f"external.{verb}",
                ("under a stale fence", ("<run>", 7, *rest), {}, Refusal("stale-lease", "<run>", "")),
                given=(running,),
                reads=_GET,
            ),
            *refusals(f"external.{verb}", ("of no run", (MISSING, 1, *rest), {}, Refusal("unknown-run", "", ""))),
        )
    ),
]
