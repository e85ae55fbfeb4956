"""Cases of schedules: definitions, control, outlook and history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rota.core.calendar.triggers import Trigger, cron, every, following, once
from rota.core.jobs.retry import Exponential
from rota.core.planning.simulation_report import SimulationOptions
from rota.values.scope import Scope
from tests.conformance.case import PYTHON, REST, Case, Reading, Refusal, refusals
from tests.conformance.world import World

_FAR = datetime(2040, 1, 31, 8, tzinfo=UTC)
_PAST = datetime(2020, 1, 31, 8, tzinfo=UTC)
_LIST: Reading = ("schedules.list", {})
_NEWS: Reading = ("schedules.get", {"name": "news"})
_UNTYPED = (*PYTHON, REST)
_URL: dict[str, Any] = {"payload": {"url": "https://example.com"}}
_RICH: dict[str, Any] = {
    **_URL,
    "scopes": [("account", "1"), ("account", "2")],
    "delay": "5s",
    "jitter": timedelta(seconds=90),
    "catch_up": {"mode": "all", "keep": 3, "window": "2d"},
    "overlap": "queue_one",
    "failure": {"mode": "half_open", "threshold": 2},
    "max_concurrency": 3,
    "when_full": "skip",
    "rate": "10/1h",
    "max_runs": 100,
    "start_at": _PAST,
    "end_at": _FAR,
    "windows": ["00:00-12:00 MON,TUE,WED,THU,FRI,SAT,SUN"],
    "exclude": ["2027-12-24"],
    "description": "much",
    "queue": "slow",
    "timeout": "10s",
    "backoff": Exponential(timedelta(seconds=2)),
    "tags": ["a"],
    "metadata": {"m": [1]},
    "expect": {"start_within": "5m"},
    "owner": "me",
}


async def schedules(world: World) -> None:
    """Create several schedules."""
    create = world.client.schedules.create
    await create("news", "crawl", every("30m"), payload={"url": "u"}, description="of the day", actor="ann")
    await create("nightly", "rest", cron("30 2 * * *", "Europe/Berlin"), owner="me", actor="ann")
    await create("then", "rest", following("crawl", on="end"), actor="ann")
    await create("scoped", "rest", every("1d"), scopes=[("a", "1"), ("b", "2")], actor="ann")


async def replaced(world: World) -> None:
    """Create a schedule by replacing none."""
    await world.client.schedules.replace("new", "crawl", every("1h"), **_URL, actor="ann")


async def paused(world: World) -> None:
    """Pause a schedule."""
    await schedules(world)
    await world.client.schedules.pause("news", reason="a rest", actor="ann")


async def triggered(world: World) -> None:
    """Run a schedule now, under a key."""
    await schedules(world)
    (run,) = await world.client.schedules.trigger("nightly", actor="ann", idempotency_key="again")
    world.note("run", run.id)


_UNKNOWN = Refusal("unknown-schedule", "nwes", "'news'")
_TRIGGERS: dict[str, tuple[Trigger, str]] = {
    "by an interval": (every("30m"), "every 30 minutes"),
    "by cron": (cron("30 2 * * *", "Europe/Berlin"), "every day at 02:30, Europe/Berlin"),
    "once": (once(_FAR), "once at 2040-01-31 08:00:00 UTC"),
    "after another job": (following("rest", on="end"), "after each end of rest"),
}


def _refused(verb: str, *rows: tuple[str, tuple[Any, ...], dict[str, Any], Refusal]) -> list[Case]:
    return refusals(f"schedules.{verb}", *rows, given=(schedules,), reads=_LIST, only=_UNTYPED)


_WRONG: list[tuple[str, dict[str, Any], Refusal]] = [
    ("an unknown overlap", {"overlap": "never"}, Refusal("invalid", "never", "")),
    ("a wrong duration", {"jitter": "soon"}, Refusal("bad-duration", "jitter", "90s")),
    ("an unknown option", {"overlapp": "skip"}, Refusal("unknown-option", "overlapp", "'overlap'")),
    ("a payload that does not fit", {"payload": {"uri": "x"}}, Refusal("bad-payload", "uri", "'url'")),
    (
        "a time without a zone",
        {"start_at": _PAST.replace(tzinfo=None)},
        Refusal("bad-trigger", "start_at", "end it with Z"),
    ),
]
_DEFINITIONS = [
    *(
        Case(
            "schedules.create",
            what,
            ("new", "crawl", trigger),
            _URL,
            contains={"name": "new", "rule": rule, "owner": "<actor>", "revision": 1},
            reads=_LIST,
            only=_UNTYPED,
        )
        for what, (trigger, rule) in _TRIGGERS.items()
    ),
    Case(
        "schedules.create",
        "with all options",
        ("rich", "crawl", every("1h")),
        _RICH,
        contains={"owner": "me", "state": "active"},
        reads=_LIST,
        only=_UNTYPED,
    ),
    *_refused(
        "create",
        (
            "of a name that is taken",
            ("news", "crawl", every("1h")),
            _URL,
            Refusal("duplicate-schedule", "news", "edit it"),
        ),
        ("of an unknown job", ("new", "craw", every("1h")), {}, Refusal("unknown-job", "craw", "'crawl'")),
        ("that makes a ring", ("new", "rest", following("rest")), {}, Refusal("following-ring", "rest", "")),
        *((what, ("new", "crawl", every("1h")), {**_URL, **named}, refusal) for what, named, refusal in _WRONG),
    ),
    Case(
        "schedules.replace",
        "one",
        ("news", "crawl", every("1h")),
        _URL,
        given=(schedules,),
        contains={"revision": 2, "rule": "every hour"},
        reads=_LIST,
        only=_UNTYPED,
    ),
    Case(
        "schedules.replace",
        "none",
        ("new", "crawl", every("1h")),
        {**_URL, "expected_revision": 0},
        contains={"revision": 1, "created": True},
        reads=_LIST,
        only=_UNTYPED,
    ),
    Case(
        "schedules.replace",
        "one by the same",
        ("new", "crawl", every("1h")),
        _URL,
        given=(replaced,),
        contains={"revision": 1},
        reads=_LIST,
        only=_UNTYPED,
    ),
    *_refused(
        "replace",
        (
            "one that must not be",
            ("news", "crawl", every("1h")),
            {**_URL, "expected_revision": 0},
            Refusal("duplicate-schedule", "news", "edit it"),
        ),
        (
            "of another revision",
            ("news", "crawl", every("1h")),
            {**_URL, "expected_revision": 7},
            Refusal("changed-meanwhile", "", ""),
        ),
    ),
    Case(
        "schedules.update",
        "its trigger",
        ("news",),
        {"trigger": cron("0 3 * * *", "UTC"), "jitter": "10s"},
        given=(schedules,),
        contains={"revision": 2, "rule": "every day at 03:00, UTC"},
        reads=_LIST,
        only=_UNTYPED,
    ),
    Case(
        "schedules.update",
        "back to a default",
        ("news",),
        {"description": None, "enabled": False},
        given=(schedules,),
        contains={"state": "disabled"},
        reads=_LIST,
        only=_UNTYPED,
    ),
    Case(
        "schedules.update",
        "of an expected revision",
        ("news",),
        {"description": "new", "expected_revision": 1},
        given=(schedules,),
        contains={"revision": 2},
        reads=_LIST,
        only=_UNTYPED,
    ),
    *_refused(
        "update",
        ("an unknown one", ("nwes",), {"enabled": False}, _UNKNOWN),
        (
            "of another revision",
            ("news",),
            {"enabled": False, "expected_revision": 7},
            Refusal("changed-meanwhile", "", ""),
        ),
        ("to an unknown job", ("news",), {"job": "craw"}, Refusal("unknown-job", "craw", "'crawl'")),
        *((what, ("news",), named, refusal) for what, named, refusal in _WRONG),
    ),
    Case("schedules.delete", "one", ("news",), given=(schedules,), contains=None, reads=_LIST),
    *_refused(
        "delete",
        ("an unknown one", ("nwes",), {}, _UNKNOWN),
        ("of another revision", ("news",), {"expected_revision": 7}, Refusal("changed-meanwhile", "", "")),
    ),
]
_FILTERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "all": ({}, ("news", "nightly", "scoped", "then")),
    "of a job": ({"job": "crawl"}, ("news",)),
    "of an owner": ({"owner": "me"}, ("nightly",)),
    "of a text": ({"text": "NIGH"}, ("nightly",)),
    "of a state": ({"state": "paused"}, ("news",)),
    "with their last runs": ({"recent": 3, "job": "crawl"}, ("news",)),
}
_QUESTIONS = [
    Case(
        "schedules.get",
        "by name",
        ("news",),
        given=(paused,),
        contains={"name": "news", "state": "paused", "paused_by": "ann", "definition": {"every": "30m"}},
    ),
    Case(
        "schedules.get",
        "with its last runs",
        ("nightly",),
        {"recent": 3},
        given=(triggered,),
        contains={"name": "nightly"},
    ),
    *(
        Case("schedules.list", what, named=named, given=(paused,), contains=[{"name": name} for name in names])
        for what, (named, names) in _FILTERS.items()
    ),
    Case(
        "schedules.list",
        "the next page",
        named={"limit": 1, "after": "news"},
        given=(schedules,),
        contains=[{"name": "nightly"}],
        only=PYTHON,
    ),
    *refusals(
        "schedules.list",
        ("of a wrong state", (), {"state": "pausd"}, Refusal("invalid", "pausd", "'paused'")),
        ("none", (), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 1000")),
    ),
    Case(
        "schedules.preview",
        "its next times",
        ("nightly", 3),
        {"after": _FAR},
        given=(schedules,),
        contains=[{"plan_time": "2040-02-01T01:30:00Z", "local": "2040-02-01T02:30:00+01:00"}, {}, {}],
    ),
    *refusals(
        "schedules.preview",
        ("no times", ("news", 0), {}, Refusal("out-of-range", "n", "give 1 to 1000")),
        given=(schedules,),
        only=PYTHON,
    ),
    Case(
        "schedules.preview_document",
        "that is right",
        ({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, 2),
        {"after": _FAR},
        contains={"problems": [], "fires": [{}, {}]},
        only=_UNTYPED,
    ),
    Case(
        "schedules.preview_document",
        "that is wrong",
        ({"job": "crawl", "every": "1h", "overlap": "never"},),
        {"after": _FAR},
        contains={"problems": [{}]},
        only=_UNTYPED,
    ),
    Case("schedules.simulate", "a day", ("news",), {"start": _FAR}, given=(schedules,), only=_UNTYPED),
    Case(
        "schedules.simulate",
        "with assumptions and changes",
        (
            "news",
            "3h",
            SimulationOptions(duration="40m", fail_every=2, outages=((_FAR, _FAR + timedelta(minutes=50)),), workers=1),
        ),
        {"start": _FAR, "trigger": every("20m"), "overlap": "queue_all"},
        given=(schedules,),
        only=_UNTYPED,
    ),
    *_refused(
        "simulate",
        ("for a wrong time", ("news", "soon"), {}, Refusal("bad-duration", "span", "90s")),
        ("with a wrong change", ("news",), {"overlap": "never"}, Refusal("invalid", "never", "")),
    ),
    Case(
        "schedules.events",
        "of one",
        ("news",),
        given=(paused,),
        contains=[{"type": "created"}, {"type": "paused", "actor": "ann"}],
    ),
    Case("schedules.verify", "one", ("news",), given=(schedules,)),
    Case("schedules.verify", "only by counting", ("news",), {"thorough": False}, given=(schedules,)),
    Case(
        "schedules.explain", "a time to come", ("nightly", datetime(2040, 2, 1, 1, 30, tzinfo=UTC)), given=(schedules,)
    ),
    Case("schedules.explain", "no plan time", ("nightly", _FAR), given=(schedules,)),
    Case("schedules.recent", "of some", (["nightly", "news"],), given=(triggered,)),
    Case(
        "schedules.occurrences",
        "by position",
        ("nightly", _PAST, _PAST + timedelta(days=3)),
        {"limit": 2},
        given=(schedules,),
        contains=[],
    ),
    Case(
        "schedules.backfill",
        "by position, dry",
        ("nightly", _PAST, _PAST + timedelta(days=2)),
        {"dry_run": True},
        given=(schedules,),
    ),
    Case(
        "schedules.backfill",
        "some",
        ("nightly", _PAST, _PAST + timedelta(days=2)),
        {"concurrency": 2},
        given=(schedules,),
        reads=("schedules.occurrences", {"name": "nightly", "from_at": _PAST, "to_at": _PAST + timedelta(days=3)}),
    ),
    *refusals(
        "schedules.backfill",
        (
            "that ends first",
            ("nightly", _PAST, _PAST - timedelta(days=1)),
            {},
            Refusal("invalid", "from is after to", None),
        ),
        ("of the future", ("nightly", _PAST, _FAR), {}, Refusal("invalid", "future", "")),
        ("in a wrong way", ("nightly", _PAST, _PAST), {"ran": "alll"}, Refusal("invalid", "alll", "'all'")),
        (
            "none at a time",
            ("nightly", _PAST, _PAST),
            {"concurrency": 0},
            Refusal("out-of-range", "concurrency", "give 1 to 10000"),
        ),
        given=(schedules,),
        reads=("schedules.events", {"name": "nightly"}),
    ),
    *refusals(
        "schedules.backfill",
        (
            "from no zone",
            ("nightly", _PAST.replace(tzinfo=None), _PAST),
            {},
            Refusal("invalid", "from must be a datetime with a zone", ""),
        ),
        given=(schedules,),
        only=PYTHON,
    ),
]
_ACTS = [
    Case(
        "schedules.pause",
        "until somebody resumes it",
        ("news",),
        {"reason": "a rest"},
        given=(schedules,),
        contains={"state": "paused", "paused_by": "<actor>", "pause_reason": "a rest", "resume_at": None},
        reads=_LIST,
    ),
    Case(
        "schedules.pause",
        "for a time as text",
        ("news",),
        {"until": "2h"},
        given=(schedules,),
        contains={"resume_at": "<time>"},
        reads=_LIST,
    ),
    Case(
        "schedules.pause",
        "for a timedelta",
        ("news",),
        {"until": timedelta(hours=2)},
        given=(schedules,),
        contains={"resume_at": "<time>"},
        reads=_LIST,
    ),
    Case(
        "schedules.pause",
        "until a time",
        ("news",),
        {"until": _FAR},
        given=(schedules,),
        contains={"resume_at": "2040-01-31T08:00:00Z"},
        reads=_LIST,
    ),
    *refusals(
        "schedules.pause",
        ("until the past", ("news",), {"until": _PAST}, Refusal("invalid", "until must be in the future", None)),
        ("until nothing", ("news",), {"until": "soon"}, Refusal("bad-duration", "until", "90s")),
        given=(schedules,),
        reads=_LIST,
    ),
    Case(
        "schedules.resume",
        "and skip",
        ("news",),
        given=(paused,),
        contains={"state": "active", "paused_at": None},
        reads=_LIST,
    ),
    Case(
        "schedules.resume",
        "and catch up",
        ("news",),
        {"catch_up": "all"},
        given=(paused,),
        contains={"state": "active"},
        reads=_LIST,
    ),
    *refusals(
        "schedules.resume",
        ("in a wrong way", ("news",), {"catch_up": "last"}, Refusal("invalid", "last", "latest")),
        given=(paused,),
        reads=_LIST,
    ),
    Case("schedules.disable", "one", ("news",), given=(schedules,), contains={"state": "disabled"}, reads=_LIST),
    Case(
        "schedules.enable",
        "one",
        ("news",),
        given=(schedules, lambda world: world.client.schedules.disable("news", actor="ann")),
        contains={"state": "active"},
        reads=_LIST,
    ),
    Case(
        "schedules.trigger",
        "now",
        ("nightly",),
        given=(schedules,),
        contains=[{"job": "rest", "state": "queued"}],
        reads=("schedules.events", {"name": "nightly"}),
    ),
    Case(
        "schedules.trigger",
        "for all scopes",
        ("scoped",),
        given=(schedules,),
        contains=[{"scope": {"kind": "a", "id": "1"}}, {"scope": {"kind": "b", "id": "2"}}],
    ),
    Case(
        "schedules.trigger",
        "for a scope",
        ("scoped",),
        {"scope": Scope("a", "1")},
        given=(schedules,),
        contains=[{"scope": {"kind": "a", "id": "1"}}],
    ),
    Case(
        "schedules.trigger",
        "for a scope as a pair",
        ("scoped",),
        {"scope": ("b", "2")},
        given=(schedules,),
        contains=[{"scope": {"kind": "b", "id": "2"}}],
    ),
    Case(
        "schedules.trigger",
        "under a key that was used",
        ("nightly",),
        {"idempotency_key": "again"},
        given=(triggered,),
        contains=[{"id": "<run>"}],
    ),
    Case(
        "schedules.trigger",
        "with force",
        ("nightly",),
        {"force": True},
        given=(triggered,),
        contains=[{"state": "queued"}],
    ),
    *refusals(
        "schedules.trigger",
        ("while it runs", ("nightly",), {}, Refusal("overlapping", "nightly", "force")),
        given=(triggered,),
    ),
    *refusals(
        "schedules.trigger",
        ("for a foreign scope", ("scoped",), {"scope": ("a", "7")}, Refusal("invalid", "a/7", "")),
        given=(schedules,),
    ),
    *(
        case
        for verb in ("get", "preview", "pause", "resume", "enable", "disable", "trigger", "events", "verify", "explain")
        for case in refusals(f"schedules.{verb}", ("an unknown one", ("nwes",), {}, _UNKNOWN), given=(schedules,))
    ),
    Case(
        "schedules.apply_documents",
        "as they are",
        (
            [
                {"name": "nightly", "job": "rest", "every": "1h"},
                {"name": "new", "job": "rest", "once": "2040-01-31T08:00:00Z"},
            ],
            "me",
        ),
        given=(schedules,),
        reads=_LIST,
        only=_UNTYPED,
    ),
    Case(
        "schedules.apply_documents",
        "dry",
        ([], "me"),
        {"dry_run": True},
        given=(schedules,),
        reads=_LIST,
        only=_UNTYPED,
    ),
    *_refused(
        "apply_documents",
        (
            "of another owner",
            ([{"name": "news", "job": "rest", "every": "1h"}], "me"),
            {},
            Refusal("conflict", "news", ""),
        ),
        ("one name twice", ([{"name": "x", "job": "rest", "every": "1h"}] * 2, "me"), {}, Refusal("invalid", "x", "")),
        (
            "a wrong one",
            ([{"name": "x", "job": "rest", "every": "soon"}], "me"),
            {},
            Refusal("bad-duration", "soon", ""),
        ),
    ),
]
CASES = [*_DEFINITIONS, *_QUESTIONS, *_ACTS]
