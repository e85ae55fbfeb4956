"""Cases of verbs that are written by hand at every door: enqueue, wait, bulk commands.

Their requests and commands are written here, too. A request answers more than the client returns, so that these doors
are compared by the state afterwards, and by errors.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from rota.client.client import Order
from rota.core.calendar.notation import written_instant
from rota.core.calendar.triggers import every
from rota.core.jobs.retry import Exponential
from rota.core.jobs.unique import Unique
from rota.core.ledger.occurrences import PagePosition
from rota.core.runs.dependencies import Follows
from rota.core.runs.run import RunFilter
from rota.core.states import RunState
from rota.values.scope import Scope
from tests.conformance.case import CLIENT, COMMAND, PYTHON, REMOTE, REST, Case, Reading, Refusal, refusals
from tests.conformance.cases.runs import MISSING, failed, finished, numbers, queued, several
from tests.conformance.cases.workers import workers
from tests.conformance.world import World

_ALONE: dict[str, Any] = {"fields": ["url"], "period": "1h", "on_conflict": "reject"}
_FAR = datetime(2040, 1, 31, 8, tzinfo=UTC)
_PAST = datetime(2020, 1, 31, 8, tzinfo=UTC)
_LATER = _PAST + timedelta(hours=3)
_LIST: Reading = ("list", {})
_URL = {"url": "https://example.com"}


async def keyed(world: World) -> None:
    """Enqueue a run under an idempotency key."""
    world.note("run", (await world.client.enqueue(Order("crawl", _URL, {"idempotency_key": "order-17"}))).id)


async def full(world: World) -> None:
    """Fill the quota of a tenant."""
    await world.client.quotas.update("tenant", "42", max_queued=1, max_concurrency=1, actor="ann")
    for _ in range(2):
        await world.client.enqueue(Order("crawl", _URL, {"scope": ("tenant", "42")}))


async def filled(world: World) -> None:
    """Backfill a schedule."""
    await world.client.schedules.create("hourly", "rest", every("1h"), actor="ann")
    await world.client.schedules.backfill("hourly", _PAST, _LATER, actor="ann")


def _hours(*hours: int) -> list[dict[str, Any]]:
    return [{"kind": "ran", "plan_time": written_instant(_PAST + timedelta(hours=hour))} for hour in hours]


async def alone(world: World) -> None:
    """Enqueue a run of which there may be no second within an hour."""
    world.note("run", (await world.client.enqueue(Order("crawl", _URL, {"unique": _ALONE}))).id)


async def named(world: World) -> None:
    """Enqueue a run under a key of its work."""
    world.note("run", (await world.client.enqueue(Order("crawl", _URL, {"key": "k"}))).id)


def _enqueued(
    what: str,
    order: Order,
    sent: dict[str, Any] | None = None,
    typed: tuple[str, ...] | None = None,
    refused: Refusal | None = None,
    given: Any = (),
    header: str | None = None,
) -> Case:
    """Return a case of an enqueue, with its request and its command, if they can say the same."""
    only = (*PYTHON, *((REST,) if sent is not None else ()), *((COMMAND,) if typed is not None else ()))
    body = None if sent is None else {"job": order.job, "payload": order.arguments, **sent}
    command = None if typed is None else ("run", "enqueue", order.job, *typed)
    request = None if body is None else ("POST", "/runs", body, header)
    return Case(
        *("enqueue", what, (order,)),
        given=given,
        contains=UNSET if refused is not None else {"id": "<run>" if given else "<id 1>"},
        refused=refused,
        reads=_LIST,
        only=only,
        sent=request,
        typed=command,
    )


_OPTIONS: dict[str, Any] = {
    "delay": timedelta(hours=9),
    "scope": ("account", "7"),
    "key": "k",
    "unique": Unique(("url",), timedelta(minutes=1)),
    "backoff": Exponential(timedelta(seconds=3)),
    "timeout": "20s",
    "max_attempts": 3,
    "tags": ["t"],
    "metadata": {"a": 1},
    "queue": "slow",
    "priority": 3,
    "only_workers": ["x"],
    "labels": ["gpu"],
    "min_worker_version": "1.2",
}
_SENT: dict[str, Any] = {
    **_OPTIONS,
    "delay": "9h",
    "scope": {"kind": "account", "id": "7"},
    "unique": {"fields": ["url"], "period": "1m"},
    "backoff": {"type": "exponential", "base": "3s"},
}
_CRAWL = '{"url": "https://example.com"}'
_AT = "2040-01-31T08:00:00Z"
_BAD_KEY = Refusal("idempotency-key-reused", "order-17", "use a new key")


def _with(
    what: str,
    options: dict[str, Any],
    sent: dict[str, Any] | None,
    *typed: str,
    refused: Refusal | None = None,
    given: Any = (),
) -> Case:
    """Return a case of a run with options, as Python, a request and a command say them."""
    command = (_CRAWL, *typed) if typed else None
    return _enqueued(what, Order("crawl", _URL, options), sent, command, refused, given)


def _of(what: str, job: str, payload: dict[str, Any], refusal: Refusal) -> Case:
    """Return a case of a run whose job or payload is wrong."""
    return _enqueued(what, Order(job, payload), {}, (msgspec.json.encode(payload).decode(),), refusal)


def _under_key(what: str, payload: dict[str, Any], refused: Refusal | None = None) -> Case:
    """Return a case of a run under the idempotency key of another."""
    order = Order("crawl", payload, {"idempotency_key": "order-17"})
    typed = (msgspec.json.encode(payload).decode(), "--idempotency-key", "order-17")
    return _enqueued(what, order, {}, typed, refused, (keyed,), "order-17")


_ENQUEUED = [
    _with("a run", {}, {}, "--json"),
    _with("a run with every option", _OPTIONS, _SENT),
    _with("a run for later", {"delay": "9h"}, {"delay": "9h"}, "--delay", "9h"),
    _with("a run after a timedelta", {"delay": timedelta(hours=9)}, {"delay": "9h"}, "--delay", "9h"),
    _with("a run at a time", {"run_at": _FAR}, {"run_at": _AT}, "--at", _AT),
    _with("a run of a scope", {"scope": Scope("a", "1")}, {"scope": {"kind": "a", "id": "1"}}, "--scope", "a/1"),
    _with("a run of a pair", {"scope": ("a", "1")}, {"scope": {"kind": "a", "id": "1"}}, "--scope", "a/1"),
    _with("the same work", {"key": "k"}, {"key": "k"}, "--key", "k", given=(named,)),
    _with(
        "the same within its period",
        {"unique": _ALONE},
        {"unique": _ALONE},
        refused=Refusal("duplicate-run", "<run>", ""),
        given=(alone,),
    ),
    _under_key("the same again under its key", _URL),
    _under_key("another under its key", {"url": "u"}, _BAD_KEY),
    _of("a run of an unknown job", "craw", {}, Refusal("unknown-job", "craw", "'crawl'")),
    _of("a wrong name in a payload", "crawl", {"uri": "x"}, Refusal("bad-payload", "uri", "'url'")),
    _enqueued("a wrong type in a payload", Order("crawl", {"url": 7}), {}, None, Refusal("bad-payload", "url", None)),
    _with(
        "more than a quota lets wait",
        {"scope": ("tenant", "42")},
        {"scope": {"kind": "tenant", "id": "42"}},
        "--scope",
        "tenant/42",
        refused=Refusal("quota-exceeded", "tenant/42", ""),
        given=(full,),
    ),
    _with(
        "with a wrong duration",
        {"delay": "soon"},
        {"delay": "soon"},
        "--delay",
        "soon",
        refused=Refusal("bad-duration", "delay", "90s"),
    ),
    _with(
        "with too high a priority",
        {"priority": 5_000},
        {"priority": 5_000},
        "--priority",
        "5000",
        refused=Refusal("invalid", "priority", "higher runs first", shape=True),
    ),
    _with(
        "with an unknown option",
        {"dealy": "1s"},
        {"dealy": "1s"},
        refused=Refusal("unknown-option", "dealy", "'delay'", shape=True),
    ),
    _with(
        "at a time without a zone",
        {"run_at": _FAR.replace(tzinfo=None)},
        None,
        refused=Refusal("invalid", "run_at must be a datetime with a zone", ""),
    ),
    _with("after no run", {"after": [MISSING]}, {"after": [MISSING]}, refused=Refusal("unknown-run", "", "")),
]
_CRAWLS = RunFilter(job="crawl")
_WRONG = Refusal("bad-payload", "url", None)
_OWN_KEY = Refusal("invalid", "its own idempotency_key", "separately")
_MANY = [
    Case(
        "enqueue_many",
        "that follow each other",
        ([Order("rest", {}, {"ref": "a", "run_at": _FAR}), Order("crawl", _URL, {"after": [Follows("a", on="end")]})],),
        reads=_LIST,
        only=(*PYTHON, REST),
        sent=(
            "POST",
            "/runs",
            {
                "runs": [
                    {"job": "rest", "ref": "a", "run_at": "2040-01-31T08:00:00Z"},
                    {"job": "crawl", "payload": _URL, "after": [{"run": "a", "on": "end"}]},
                ]
            },
            None,
        ),
    ),
    Case("enqueue_many", "none", ([],), contains=[], only=PYTHON),
    *refusals(
        "enqueue_many",
        ("of which one is wrong", ([Order("rest", {}), Order("crawl", {"url": 7})],), {}, _WRONG),
        reads=_LIST,
        only=PYTHON,
    ),
    *refusals(
        "enqueue_many",
        ("under a key", ([Order("rest", {}, {"idempotency_key": "k"})],), {}, _OWN_KEY),
        reads=_LIST,
        only=(REMOTE,),  # a request has one key
    ),
]


def _done(count: int) -> dict[str, Any]:
    return {"matched": count, "done": count, "refused": []}


_OTHERS = [
    Case("get_many", "in the order given", (["<run 3>", "<run 1>"],), given=(several,), contains=numbers(3, 1)),
    Case("get_many", "some", (["<run 3>", MISSING],), {"gone_ok": True}, given=(several,), contains=numbers(3)),
    *refusals("get_many", ("of which one is not", ([MISSING],), {}, Refusal("unknown-run", "", ""))),
    Case("list", "all", given=(several,), contains=numbers(4, 3, 2, 1, 0)),
    Case("list", "some", (RunFilter(scope=Scope("tenant", "1")),), {"limit": 1}, given=(several,), contains=numbers(3)),
    *refusals("list", ("too many", (), {"limit": 501}, Refusal("out-of-range", "limit", "give 1 to 500"))),
    Case("wait", "for a final run", ("<run>",), given=(finished,), contains={"id": "<run>", "state": "succeeded"}),
    *refusals("wait", ("too short", ("<run>", "10ms"), {}, Refusal("still-running", "<run>", "")), given=(queued,)),
    Case(
        "cancel_many",
        "of a tag",
        (RunFilter(tag="t2"),),
        {"reason": "enough"},
        given=(several,),
        contains=_done(1),
        reads=_LIST,
        sent=("POST", "/runs:bulk", {"action": "cancel", "filter": {"tag": "t2"}, "reason": "enough"}, None),
        typed=("run", "cancel", "--tag", "t2", "--reason", "enough", "--yes"),
    ),
    Case(
        "cancel_many",
        "as many as expected",
        (_CRAWLS,),
        {"expected": 5},
        given=(several,),
        contains=_done(5),
        reads=_LIST,
    ),
    *refusals(
        "cancel_many",
        ("more than expected", (_CRAWLS,), {"expected": 1}, Refusal("bulk-mismatch", "more runs match", "nothing")),
        ("without a filter", (RunFilter(),), {}, Refusal("invalid", "", "")),
        given=(several,),
        reads=_LIST,
    ),
    Case(
        "retry_many",
        "of a job",
        (_CRAWLS,),
        given=(failed,),
        contains=_done(1),
        reads=_LIST,
        sent=("POST", "/runs:bulk", {"action": "retry", "filter": {"job": "crawl"}}, None),
        typed=("run", "retry", "--job", "crawl", "--yes"),
    ),
    Case(
        "retry_many",
        "that wait",
        (RunFilter(states=(RunState.QUEUED,)),),
        refused=Refusal("invalid", "is queued cannot be retried", None),
        sent=("POST", "/runs:bulk", {"action": "retry", "filter": {"state": ["queued"]}}, None),
        typed=("run", "retry", "--state", "queued", "--yes"),
    ),
    Case(
        "schedules.occurrences",
        "by position",
        ("hourly", _PAST, _LATER),
        {"limit": 2},
        given=(filled,),
        contains=_hours(0, 1),
    ),
    Case(
        "schedules.occurrences",
        "after a place that does not tell its time range",
        ("hourly",),
        {"from_at": _PAST, "to_at": _LATER, "after": PagePosition(_PAST, 1)},
        given=(filled,),
        contains=_hours(1, 2, 3),
    ),
    *refusals(
        "schedules.occurrences",
        (
            "after such a place alone",
            ("hourly",),
            {"after": PagePosition(_PAST, 1)},
            Refusal("invalid", "after", "pass"),
        ),
        ("none", ("hourly",), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 10000")),
        ("that ends first", ("hourly", _LATER, _PAST), {}, Refusal("invalid", "from is after to", None)),
        given=(filled,),
    ),
    Case("workers.find", "of a name", ("web",), given=(workers,), contains=[{"id": "web@aa11"}, {"id": "web@cc33"}]),
    *refusals("workers.find", ("of nobody", ("wob",), {}, Refusal("unknown-worker", "wob", "'web'")), given=(workers,)),
    Case("expectations.find", "of a job without any", ("job", "label"), contains=None),
    Case("check_ready", "a database that is", contains=None),
]


def _purged(
    what: str,
    named: dict[str, Any],
    sent: dict[str, Any],
    typed: tuple[str, ...],
    refused: Refusal | None = None,
    count: int | None = None,
) -> Case:
    """Return a case of a purge of failed runs, as Python, a request and a command say it."""
    run_filter = named.pop("filter", RunFilter())
    return Case(
        "purge",
        what,
        (run_filter,),
        named,
        given=(failed,),
        contains=UNSET if count is None else _done(count),
        refused=refused,
        reads=_LIST,
        sent=("POST", "/runs:purge", sent, None),
        typed=("purge", *typed, "--yes"),
    )


_PURGED = [
    _purged("of a job", {"filter": _CRAWLS}, {"filter": {"job": "crawl"}}, ("--job", "crawl"), count=1),
    _purged("of nobody", {"filter": RunFilter(job="rest")}, {"filter": {"job": "rest"}}, ("--job", "rest"), count=0),
    _purged("that ended long ago", {"older_than": "7d"}, {"older_than": "7d"}, ("--older-than", "7d"), count=0),
    _purged("of all", {"everything": True}, {"everything": True}, ("--all",), count=1),
    _purged(
        "that is only counted",
        {"filter": _CRAWLS, "dry_run": True},
        {"filter": {"job": "crawl"}, "dry_run": True},
        ("--job", "crawl", "--dry-run"),
        count=1,
    ),
    _purged(
        "that have not ended",
        {"filter": RunFilter(states=(RunState.QUEUED,))},
        {"filter": {"state": ["queued"]}},
        ("--state", "queued"),
        Refusal("invalid", "has not ended", None),
    ),
    _purged(
        "by a wrong age",
        {"older_than": "soon"},
        {"older_than": "soon"},
        ("--older-than", "soon"),
        Refusal("bad-duration", "older_than", "90s"),
    ),
    *refusals(
        "purge",
        ("more than expected", (_CRAWLS,), {"expected": 0}, Refusal("bulk-mismatch", "more runs match", "nothing")),
        ("without a filter", (RunFilter(),), {}, Refusal("invalid", "every run", "")),
        given=(failed,),
        reads=_LIST,
        only=PYTHON,
    ),
]
_DEFINED = Case(
    "schedules.define",
    "by its options",
    ("new", "crawl", every("1h"), {"payload": _URL, "jitter": "5s"}),
    contains={"job": "crawl", "jitter": "5s"},
    only=(CLIENT, REMOTE),
)
CASES = [
    _DEFINED,
    *_ENQUEUED,
    *_MANY,
    *_PURGED,
    *(case if case.sent else replace(case, only=PYTHON) for case in _OTHERS),
]
