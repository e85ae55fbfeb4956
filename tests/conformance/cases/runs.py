"""Cases of runs: questions about one or many, and what can be done to one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rota.client.client import Order
from rota.core.runs.dependencies import Follows
from rota.core.runs.error_fingerprint import fingerprint_of
from rota.core.runs.run import RunError, RunFilter
from rota.core.states import Outcome, RunState
from rota.values.scope import Scope
from tests.conformance.case import BLOCKING, CLIENT, PYTHON, REMOTE, REST, Case, Reading, Refusal, refusals
from tests.conformance.world import World
from tests.support.runs.runs import claim, put, tell

MISSING = "00000000-0000-7000-8000-000000000000"
_TENANT = ("tenant", "42")
_FAR = datetime(2099, 1, 31, 8, tzinfo=UTC)
_EXPLAIN: Reading = ("explain", {"run_id": "<run>"})
_GET: Reading = ("get", {"run_id": "<run>"})
_UNKNOWN = Refusal("unknown-run", "there is no run", "rota run ls")
_LIVE = Refusal("run-not-final", "<run>", "")
_NO_STEP = Refusal("unknown-step", "luk", "")
_FINAL = Refusal("run-is-final", "<run>", "a final run never changes")
_REUSED = Refusal("idempotency-key-reused", "again", "")
_FOREIGN = Refusal("unknown-run", "<run>", "")
_GENERAL = (
    *("get", "attempts", "steps", "progress", "logs", "parents", "children", "family", "replicas", "explain", "events"),
)
_OWN: dict[str, Any] = {
    "get": {"id": "<run>", "state": "scheduled", "scope": {"kind": "tenant", "id": "42"}},
    "progress": {"percentage": None},
    "family": {"items": [{"id": "<run>"}], "links": [], "truncated": False},
    "explain": {"verdict": "scheduled", "facts": {"run_id": "<run>"}},
    "events": [{"type": "created", "subject": "<run>"}],
}
"""What is told of a run that waits; of other things it has none."""
_COMMANDS: dict[str, dict[str, Any]] = {"cancel": {}, "retry": {}, "restrict": {"only_workers": ["gpu-1"]}}


async def queued(world: World) -> None:
    """Enqueue a run of a tenant."""
    options = {"scope": _TENANT, "key": "k", "tags": ["x"], "metadata": {"a": [1]}, "run_at": _FAR, "priority": 7}
    run = await world.client.enqueue(Order("crawl", {"url": "https://example.com"}, options))
    world.note("run", run.id)
    world.note("end", run.id[-12:])


async def running(world: World) -> None:
    """Let an external worker claim a run and tell of it."""
    enqueued = await world.client.enqueue(Order("label", {"image": "cat.png"}, {"scope": _TENANT}))
    external = world.client.external
    (run,) = await external.claim("w", jobs=["label"], lease="10m")
    world.note("run", enqueued.id)
    world.fence = run.fence
    await external.progress(enqueued.id, run.fence, 40, "looking")
    await external.step(enqueued.id, run.fence, "look", "succeeded", result={"n": 1})
    await external.logs(enqueued.id, run.fence, ["one", {"text": "two", "level": "error"}, "three"], no=1)


async def finished(world: World) -> None:
    """Complete that run, at 40 percent."""
    await running(world)
    await world.client.external.complete(world.names["<run>"], world.fence, {"label": "cat"})


async def failed(world: World) -> None:
    """Let a run fail for good."""
    world.note("run", await put(world.store, "crawl", max_attempts=1, payload={"url": "https://example.com"}))
    (held,) = await claim(world.store, known={"crawl": 1})
    await tell(world.store, held, Outcome.FAILED)


async def retried(world: World) -> None:
    """Retry the run under an idempotency key."""
    await world.client.retry(world.names["<run>"], idempotency_key="again")


async def cancelled(world: World) -> None:
    """Cancel a run."""
    await queued(world)
    await world.client.cancel(world.names["<run>"], reason="changed my mind", actor="ann")


async def related(world: World) -> None:
    """Enqueue a run, two that follow it, and one that follows both."""
    orders = [
        Order("rest", {}, {"ref": "first", "run_at": _FAR}),
        Order("rest", {}, {"ref": "second", "after": ["first"]}),
        Order("rest", {}, {"ref": "third", "after": [Follows("first", on="end")]}),
        Order("rest", {}, {"after": ["second", Follows("third", otherwise="cancel")]}),
    ]
    for name, run in zip(("first", "second", "third", "run"), await world.client.enqueue_many(orders), strict=True):
        world.note(name, run.id)


async def several(world: World) -> None:
    """Enqueue five runs of two tenants."""
    for number in range(5):
        options = {"scope": ("tenant", str(number % 2)), "tags": [f"t{number}"], "run_at": _FAR}
        run = await world.client.enqueue(Order("crawl", {"url": f"https://example.com/{number}"}, options))
        world.note(f"run {number}", run.id)


async def of_a_slashed_kind(world: World) -> None:
    """Enqueue runs of two scopes that would be written alike, if the slash of the kind were not escaped."""
    for number, scope in enumerate([("region/eu", "7"), ("region", "eu/7")]):
        run = await world.client.enqueue(Order("crawl", {"url": "https://example.com"}, {"scope": scope}))
        world.note(f"run {number}", run.id)


def numbers(*places: int) -> list[dict[str, str]]:
    """Return these of the several runs."""
    return [{"id": f"<run {place}>"} for place in places]


_GETS = [
    Case(
        "get",
        "with all that was given",
        ("<run>",),
        given=(queued,),
        contains={
            "id": "<run>",
            "state": "scheduled",
            "scope": {"kind": "tenant", "id": "42"},
            "key": "k",
            "tags": ["x"],
            "metadata": {"a": [1]},
            "run_at": "2099-01-31T08:00:00Z",
            "priority": 7,
            "payload": {"url": "https://example.com"},
        },
    ),
    Case("get", "by the end of its id", ("<end>",), given=(queued,), contains={"id": "<run>"}),
    Case("get", "running, with progress", ("<run>",), given=(running,), contains={"progress": {"percentage": 40.0}}),
    Case(
        "get",
        "finished, with its last progress",
        ("<run>",),
        given=(finished,),
        contains={"state": "succeeded", "result": {"label": "cat"}, "progress": {"percentage": 100.0}},
    ),
    Case("get", "failed", ("<run>",), given=(failed,), contains={"state": "failed", "error": {"message": "no luck"}}),
    Case("get", "without steps", ("<run>",), {"steps": False}, given=(finished,), contains={"id": "<run>"}),
]
_COPY = {"retry_of": "<run>"}
_EVENTS = [{"to": "queued"}, {}, {"to": "failed"}]
_ODD = numbers(3, 1)
_ALL = numbers(4, 3, 2, 1, 0)
_PARTS = [
    Case("attempts", "of a run that failed", ("<run>",), given=(failed,), contains=[{"no": 1, "outcome": "failed"}]),
    Case("attempts", "of a run that waits", ("<run>",), given=(queued,), contains=[]),
    Case("steps", "of a run", ("<run>",), given=(running,), contains=[{"id": "look", "result": {"n": 1}}]),
    Case("progress", "of a run", ("<run>",), given=(running,), contains={"percentage": 40.0, "summary": "looking"}),
    Case("progress", "of a finished run", ("<run>",), given=(finished,), contains={"percentage": 100.0}),
    Case("progress", "of a run that says nothing", ("<run>",), given=(queued,), contains={"summary": None}),
    Case(
        "logs",
        "of a run",
        ("<run>",),
        given=(running,),
        contains=[{"text": "one", "level": "info"}, {"text": "two", "level": "error"}, {"text": "three"}],
    ),
    Case("logs", "the last line", ("<run>",), {"tail": 1}, given=(running,), contains=[{"text": "three"}]),
    Case(
        "logs",
        "the first of the last lines",
        ("<run>",),
        {"tail": 2, "limit": 1},
        given=(running,),
        contains=[{"text": "two", "cursor": "1.1.2"}],
    ),
    Case(
        "logs",
        "after a line",
        ("<run>",),
        {"cursor": "1.1.1", "limit": 5},
        given=(running,),
        contains=[{"text": "two"}, {"text": "three", "cursor": "1.1"}],
    ),
    Case("parents", "of a run", ("<run>",), given=(related,), contains=[{"id": "<second>"}, {"id": "<third>"}]),
    Case("children", "of a run", ("<first>",), given=(related,), contains=[{"id": "<second>"}, {"id": "<third>"}]),
    Case(
        "family",
        "of a run",
        ("<second>",),
        given=(related,),
        contains={"truncated": False, "items": [{"id": "<second>"}, {}, {}, {}]},
    ),
    Case(
        "family",
        "the nearest",
        ("<first>",),
        {"limit": 1},
        given=(related,),
        contains={"truncated": True, "links": [], "items": [{"id": "<first>", "more": True}]},
    ),
    Case("replicas", "of a run without any", ("<run>",), given=(queued,), contains=[]),
    *(
        Case("explain", what, ("<run>",), given=(given,), contains={"verdict": verdict}, typed=("explain", "<run>"))
        for what, given, verdict in (("a run that waits", queued, "scheduled"), ("a run that failed", failed, "failed"))
    ),
    Case(
        "events", "of a run that failed", ("<run>",), given=(failed,), contains=[{"to": "queued"}, {}, {"to": "failed"}]
    ),
]
_LISTS = [
    Case("page", "all, newest first", given=(several,), contains={"items": _ALL, "next_cursor": None}),
    Case(
        "page",
        "the first two",
        named={"limit": 2},
        given=(several,),
        contains={"items": numbers(4, 3), "next_cursor": "<next_cursor>"},
    ),
    Case(
        "page",
        "after the first two",
        named={"limit": 2, "before": "<run 3>"},
        given=(several,),
        contains={"items": numbers(2, 1)},
    ),
    *(
        Case("page", what, (run_filter,), given=(several,), contains={"items": numbers(*places)})
        for what, run_filter, places in [
            ("of a scope", RunFilter(scope=Scope("tenant", "1")), (3, 1)),
            ("with a tag", RunFilter(tag="t2"), (2,)),
            ("in states", RunFilter(states=(RunState.SCHEDULED, RunState.FAILED), job="crawl"), (4, 3, 2, 1, 0)),
            ("of a payload", RunFilter(payload={"url": "https://example.com/2"}), (2,)),
            ("created later", RunFilter(created_after=_FAR), ()),
            ("not retried", RunFilter(retried=False, created_before=_FAR), (4, 3, 2, 1, 0)),
        ]
    ),
    *(
        Case("page", what, (RunFilter(scope=scope),), given=(of_a_slashed_kind,), contains={"items": numbers(place)})
        for what, scope, place in [
            ("of a kind with a slash", Scope("region/eu", "7"), 0),
            ("of an id with a slash", Scope("region", "eu/7"), 1),
        ]
    ),
    *(
        Case("page", what, (run_filter,), given=(queued,), contains={"items": items})
        for what, run_filter, items in [
            ("of a queue and a key", RunFilter(queue="default", key="k"), [{"id": "<run>", "key": "k"}]),
            ("of another key", RunFilter(key="l"), []),
            ("of another queue", RunFilter(queue="slow"), []),
            ("of a schedule", RunFilter(schedule="nightly"), []),
            ("of a worker", RunFilter(worker="w@1"), []),
        ]
    ),
    Case("page", "with how far they are", given=(running,), contains={"items": [{"progress": {"summary": "looking"}}]}),
    *(
        Case("page", what, (run_filter,), given=(failed,), contains={"items": [{"id": "<run>"}]})
        for what, run_filter in [
            ("of an error", RunFilter(error="no luck")),
            ("of a fingerprint", RunFilter(fingerprint=fingerprint_of(RunError(type="ValueError", message="no luck")))),
        ]
    ),
    Case("job_runs", "all of a job", ("crawl",), given=(several,), contains={"items": _ALL, "next_cursor": None}),
    Case(
        "job_runs",
        "some of a job",
        ("crawl", RunFilter(scope=Scope("tenant", "1"))),
        {"limit": 1},
        given=(several,),
        contains={"items": numbers(3), "next_cursor": "<next_cursor>"},
    ),
    Case(
        "job_runs",
        "after the first two",
        ("crawl",),
        {"limit": 2, "before": "<run 3>"},
        given=(several,),
        contains={"items": numbers(2, 1)},
    ),
    Case("job_runs", "of a job that has none", ("rest",), given=(several,), contains={"items": []}),
    *refusals(
        "job_runs",
        ("of an unknown job", ("craw",), {}, Refusal("unknown-job", "craw", "'crawl'")),
        ("of two jobs", ("crawl", RunFilter(job="rest")), {}, Refusal("invalid", "job is 'rest'", None)),
        ("none", ("crawl",), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 500")),
        given=(several,),
    ),
    Case("page", "of a caller's own scope", given=(several,), scope=("tenant", "1"), contains={"items": _ODD}),
    *refusals(
        "page",
        ("none", (), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 500")),
        ("too many", (), {"limit": 1_000}, Refusal("out-of-range", "limit", "give 1 to 500")),
        given=(several,),
    ),
    *refusals(
        "page",
        ("before half an id", (), {"before": "abc"}, Refusal("invalid", "before must be the whole id", None)),
        only=PYTHON,
    ),
    Case("count", "all", given=(several,), contains={"count": 5, "exact": True}),
    Case("count", "some", (RunFilter(tag="t2"),), given=(several,), contains={"count": 1, "exact": True}),
    Case("count", "with their run time", named={"run_time": True}, given=(several,), contains={"run_time_ms": 0}),
    Case("count", "up to three", named={"most": 3}, given=(several,), contains={"count": 3, "exact": False}),
    *refusals("count", ("up to none", (), {"most": 0}, Refusal("out-of-range", "most", "give 1 to 1000000"))),
]
_ACTS = [
    Case(
        "cancel",
        "a run that waits",
        ("<run>",),
        {"reason": "a mistake"},
        given=(queued,),
        contains={"id": "<run>", "state": "cancelled", "reason": "a mistake"},
        reads=("events", {"run_id": "<run>"}),
    ),
    Case("cancel", "a run under way", ("<run>",), given=(running,), contains={"state": "cancelling"}, reads=_GET),
    Case("cancel", "it again", ("<run>",), given=(cancelled,), contains={"reason": "changed my mind"}, reads=_GET),
    *refusals(
        "cancel",
        (
            "with a long reason",
            ("<run>",),
            {"reason": "x" * 1_001},
            Refusal("out-of-range", "reason cannot have 1001 characters", "give at most 1000 characters"),
        ),
        given=(running,),
        reads=_GET,
    ),
    *refusals("cancel", ("a final run", ("<run>",), {}, _FINAL), given=(finished,), reads=_GET),
    Case(
        "retry",
        "a run that failed",
        ("<run>",),
        given=(failed,),
        contains={"retry_of": "<run>", "state": "queued", "created": True},
        reads=("page", {}),
    ),
    Case(
        "retry", "with its steps", ("<run>",), {"keep_steps": True}, given=(finished,), contains={"retry_of": "<run>"}
    ),
    Case(
        "retry",
        "with another payload",
        ("<run>",),
        {"payload": {"url": "https://example.org"}},
        given=(cancelled,),
        contains={"retry_of": "<run>", "payload": {"url": "https://example.org"}},
    ),
    *refusals(
        "retry",
        ("with a wrong payload", ("<run>",), {"payload": {"url": 1}}, Refusal("bad-payload", "url", None)),
        given=(cancelled,),
        reads=("count", {}),
        only=(CLIENT, BLOCKING, REMOTE, REST),  # a command has no functions, and says it as the schema does
    ),
    *refusals(
        "retry",
        (
            "with another payload and the old steps",
            ("<run>",),
            {"payload": {"url": "x"}, "keep_steps": True},
            Refusal("invalid", "cannot be kept", ""),
        ),
        given=(cancelled,),
        reads=("count", {}),
    ),
    *refusals(
        "retry",
        ("a run that waits", ("<run>",), {}, Refusal("run-not-final", "<run>", "")),
        given=(queued,),
        reads=_GET,
    ),
    *refusals(
        "retry",
        ("from no step", ("<run>",), {"from_step": "luk"}, Refusal("unknown-step", "luk", "")),
        given=(finished,),
    ),
    Case(
        "retry",
        "under a key that was used",
        ("<run>",),
        {"idempotency_key": "again"},
        given=(failed, retried),
        contains={"retry_of": "<run>", "created": False},
        reads=("count", {}),
    ),
    *refusals(
        "retry",
        (
            "another under a used key",
            ("<run>",),
            {"idempotency_key": "again", "keep_steps": True},
            _REUSED,
        ),
        given=(failed, retried),
        reads=("count", {}),
    ),
    Case(
        "restrict",
        "to workers",
        ("<run>", ["a", "b"]),
        given=(queued,),
        contains={"id": "<run>"},
        reads=("explain", {"run_id": "<run>"}),
    ),
    Case("restrict", "to nobody in particular", ("<run>", None), given=(queued,), contains={"id": "<run>"}, reads=_GET),
    *refusals(
        "restrict",
        ("to nobody", ("<run>", []), {}, Refusal("invalid", "only_workers", "")),
        ("to nobody's name", ("<run>", [""]), {}, Refusal("invalid", "only_workers", None)),
        given=(queued,),
        reads=_GET,
    ),
    *refusals(
        "restrict",
        ("a final run", ("<run>", ["a"]), {}, _FINAL),
        given=(finished,),
        reads=_GET,
    ),
]
_AMBIGUOUS = Refusal("ambiguous-run", "", "")
_OF_ONE = [
    *refusals("get", ("several by one beginning", ("0",), {}, _AMBIGUOUS), given=(several,)),
    *refusals(
        "family",
        ("of no run", ("<run>",), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 500")),
        given=(queued,),
    ),
    *refusals(
        "logs",
        ("no lines", ("<run>",), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 1000")),
        ("none of the last lines", ("<run>",), {"tail": 0}, Refusal("out-of-range", "tail", "give 1 to 1000")),
        ("another cursor", ("<run>",), {"cursor": "1.x"}, Refusal("invalid", "cursor", "use next_cursor")),
        (
            "two places",
            ("<run>",),
            {"cursor": "1.1", "tail": 2},
            Refusal("invalid", "cursor and tail exclude each other", "give one of them"),
        ),
        given=(running,),
    ),
    *(
        case
        for verb in _GENERAL
        for case in (
            *refusals(verb, ("a run that is not", (MISSING,), {}, _UNKNOWN), given=(queued,)),
            *refusals(verb, ("a run by no id", ("zz",), {}, Refusal("unknown-run", "zz", "")), given=(queued,)),
            Case(
                verb, "of a tenant's own run", ("<run>",), given=(queued,), contains=_OWN.get(verb, []), scope=_TENANT
            ),
            Case(
                verb,
                "of another tenant's run",
                ("<run>",),
                given=(queued,),
                scope=("tenant", "43"),
                refused=_FOREIGN,
            ),
        )
    ),
    *(
        case
        for verb, named in _COMMANDS.items()
        for case in (
            *refusals(verb, ("a run that is not", (MISSING,), named, _UNKNOWN), given=(queued,)),
            Case(
                verb,
                "of another tenant's run",
                ("<run>",),
                named,
                given=(failed if verb == "retry" else queued,),
                scope=("tenant", "43"),
                refused=_FOREIGN,
                reads=_GET,
            ),
        )
    ),
]
CASES = [*_GETS, *_PARTS, *_LISTS, *_ACTS, *_OF_ONE]
