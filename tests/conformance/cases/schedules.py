"""Cases of schedules: definitions, control, outlook and history."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rota.core.calendar.notation import written_instant
from rota.core.calendar.triggers import Trigger, cron, every, following, once
from rota.core.jobs.retry import Exponential
from rota.core.ledger.occurrences import PagePosition
from rota.values.scope import Scope
from tests.conformance.case import PYTHON, REST, Arrangement, Case, Reading, Refusal, refusals
from tests.conformance.world import World

_FAR = datetime(2040, 1, 31, 8, tzinfo=UTC)
_PAST = datetime(2020, 1, 31, 8, tzinfo=UTC)
_LIST: Reading = ("schedules.list", {})
_AUDIT: Reading = ("audit", {"kind": "schedule"})
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


def _file(documents: Sequence[Mapping[str, Any]]) -> Arrangement:
    """Write a file of schedules."""

    async def arrange(world: World) -> None:
        folder = Path(world.stack.enter_context(TemporaryDirectory()))
        (folder / "schedules.json").write_text(json.dumps({"schedule": documents}))
        world.note("file", str(folder / "schedules.json"))

    return arrange


async def filled(world: World) -> None:
    """Create several schedules, and backfill three nights of one."""
    await schedules(world)
    await world.client.schedules.backfill("nightly", _PAST, _PAST + timedelta(days=3), actor="ann")


def _night(number: int) -> datetime:
    return datetime(2020, 2, 1, 1, 30, tzinfo=UTC) + timedelta(days=number)


def _nights(*numbers: int) -> list[dict[str, Any]]:
    return [{"kind": "ran", "plan_time": written_instant(_night(number))} for number in numbers]


_TWO_NIGHTS = [night["plan_time"] for night in _nights(0, 1)]


async def replaced(world: World) -> None:
    """Create a schedule by replacing none."""
    await world.client.schedules.replace("new", "crawl", every("1h"), **_URL, actor="ann")


async def paused(world: World) -> None:
    """Pause a schedule."""
    await schedules(world)
    await world.client.schedules.pause("news", reason="a rest", actor="ann")


async def deleted(world: World) -> None:
    """Delete a schedule."""
    await paused(world)
    await world.client.schedules.delete("news", actor="ann")


async def remade(world: World) -> None:
    """Delete a schedule, and create another of its name."""
    await deleted(world)
    await world.client.schedules.create("news", "crawl", every("1h"), **_URL, actor="ann")


async def triggered(world: World) -> None:
    """Run a schedule now, under a key."""
    await schedules(world)
    (run,) = await world.client.schedules.trigger("nightly", actor="ann", idempotency_key="again")
    world.note("run", run.id)


_Audited = tuple[str, tuple[Any, ...], dict[str, Any], tuple[Arrangement, ...], Any]
_AUDITED: list[_Audited] = [
    ("schedules.create", ("x", "rest", every("1h")), {}, (), {"name": "x"}),
    ("schedules.update", ("news",), {"jitter": "10s", "description": "d"}, (schedules,), {"name": "news"}),
    ("schedules.pause", ("news",), {"reason": "r", "until": _FAR}, (schedules,), {"state": "paused"}),
    ("schedules.resume", ("news",), {"catch_up": "latest"}, (paused,), {"state": "active"}),
    ("schedules.disable", ("news",), {}, (schedules,), {"state": "disabled"}),
    ("schedules.enable", ("news",), {}, (schedules,), {"state": "active"}),
    ("schedules.trigger", ("news",), {"force": True}, (schedules,), [{"schedule": "news"}]),
    ("schedules.delete", ("news",), {}, (schedules,), None),
    ("schedules.apply_documents", ([], "me"), {}, (schedules,), [{"kind": "delete"}]),
]


_UNKNOWN = Refusal("unknown-schedule", "nwes", "'news'")
_TRIGGERS: dict[str, tuple[Trigger, str, str]] = {
    "by an interval": (every("30m"), "every 30 minutes", "--every 30m"),
    "by cron": (
        cron("30 2 * * *", "Europe/Berlin"),
        "every day at 02:30, Europe/Berlin",
        "--cron '30 2 * * *' --tz Europe/Berlin",
    ),
    "once": (once(_FAR), "once at 2040-01-31 08:00:00 UTC", "--once 2040-01-31T08:00:00Z"),
    "after another job": (following("rest", on="end"), "after each end of rest", "--following rest --on end"),
}


def _refused(verb: str, *rows: tuple[str, tuple[Any, ...], dict[str, Any], Refusal]) -> list[Case]:
    return refusals(f"schedules.{verb}", *rows, given=(schedules,), reads=_LIST, only=_UNTYPED)


def _typed_refusals(verb: str, *rows: tuple[tuple[Any, ...], dict[str, Any], Refusal, str]) -> list[Case]:
    """Return cases of refusals that the command line can express: its words after the verb come last."""
    return [
        Case(
            f"schedules.{verb}",
            f"typed: {words}",
            args,
            named,
            given=(schedules,),
            refused=refusal,
            reads=_LIST,
            typed=("schedule", verb, *shlex.split(words)),
        )
        for args, named, refusal, words in rows
    ]


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
_RULES: list[tuple[str, str, dict[str, Any]]] = [
    ("to an impossible minute", "minute", {"cron": "61 * * * *"}),
    ("to an unknown zone", "timezone", {"cron": "0 9 * * *", "timezone": "Europe/Berlinn"}),
    ("to an interval of nothing", "interval", {"every": "0s"}),
    ("to no time", "once", {"once": "soon"}),
    ("but never on a day that is not", "exclude", {"every": "1h", "exclude": ["2026-02-30"]}),
    ("only in a window that is none", "windows", {"every": "1h", "windows": ["late"]}),
]
"""What cannot be, and the field that says so."""
_UPDATES: list[tuple[tuple[Any, ...], dict[str, Any], Refusal, str]] = [
    (("nwes",), {"enabled": False}, _UNKNOWN, "nwes --set enabled=false"),
    (("news",), {"cron": "61 * * * *"}, Refusal("bad-trigger", "minute", ""), "news --cron '61 * * * *'"),
    (("news",), {"every": "0s"}, Refusal("bad-trigger", "interval", ""), "news --every 0s"),
    (("news",), {"job": "craw"}, Refusal("unknown-job", "craw", "'crawl'"), "news --job craw"),
    (("news",), {"overlap": "never"}, Refusal("invalid", "never", ""), "news --overlap never"),
    (("news",), {"jitter": "soon"}, Refusal("bad-duration", "jitter", "90s"), "news --jitter soon"),
    (
        ("news",),
        {"payload": {"uri": "x"}},
        Refusal("bad-payload", "uri", "'url'"),
        """news --payload '{"uri": "x"}'""",
    ),
]
_DOCUMENTS: list[tuple[str, list[dict[str, Any]], Refusal]] = [
    ("of another owner", [{"name": "news", "job": "rest", "every": "1h"}], Refusal("conflict", "news", "")),
    ("one name twice", [{"name": "x", "job": "rest", "every": "1h"}] * 2, Refusal("invalid", "x", "")),
    ("a wrong one", [{"name": "x", "job": "rest", "every": "soon"}], Refusal("bad-duration", "soon", "")),
    ("of an unknown job", [{"name": "x", "job": "craw", "every": "1h"}], Refusal("unknown-job", "craw", "'crawl'")),
    (
        "with an unknown key",
        [{"name": "x", "job": "rest", "every": "1h", "overlapp": "skip"}],
        Refusal("unknown-option", "overlapp", "'overlap'"),
    ),
]
_NEW: list[dict[str, Any]] = [
    {"name": "nightly", "job": "rest", "every": "1h"},
    {"name": "new", "job": "rest", "once": "2040-01-31T08:00:00Z"},
]
_APPLY = ("schedule", "apply", "<file>", "--owner", "me", "--yes")
_DEFINITIONS = [
    *(
        Case(
            "schedules.create",
            what,
            ("new", "crawl", trigger),
            _URL,
            contains={"name": "new", "rule": rule, "owner": "<actor>", "revision": 1},
            reads=_LIST,
            typed=("schedule", "create", "new", "crawl", '{"url": "https://example.com"}', *shlex.split(options)),
        )
        for what, (trigger, rule, options) in _TRIGGERS.items()
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
        typed=("schedule", "update", "news", "--cron", "0 3 * * *", "--tz", "UTC", "--jitter", "10s"),
    ),
    Case(
        "schedules.update",
        "back to a default",
        ("news",),
        {"description": None, "enabled": False},
        given=(schedules,),
        contains={"state": "disabled"},
        reads=_LIST,
        typed=("schedule", "update", "news", "--set", "description=null", "--set", "enabled=false"),
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
        *(
            (what, ("news",), {"every": None, **rule}, Refusal("bad-trigger", field, ""))
            for what, field, rule in _RULES
        ),
        ("to a rule of no trigger", ("news",), {"every": None}, Refusal("invalid", "has no trigger", "")),
        ("to two triggers", ("news",), {"cron": "* * * * *", "every": "1h"}, Refusal("invalid", "cron and every", "")),
        ("to a name of none", ("news",), {"evry": "1h"}, Refusal("unknown-option", "evry", "'every'")),
        ("to an unknown job", ("news",), {"job": "craw"}, Refusal("unknown-job", "craw", "'crawl'")),
        *((what, ("news",), named, refusal) for what, named, refusal in _WRONG),
    ),
    *_typed_refusals("update", *_UPDATES),
    Case("schedules.delete", "one", ("news",), given=(schedules,), contains=None, reads=_LIST),
    *_refused(
        "delete",
        ("an unknown one", ("nwes",), {}, _UNKNOWN),
        ("of another revision", ("news",), {"expected_revision": 7}, Refusal("changed-meanwhile", "", "")),
    ),
    Case(
        "schedules.restore",
        "a paused one",
        ("news",),
        given=(deleted,),
        contains={
            "name": "news",
            "state": "paused",
            "pause_reason": "a rest",
            "revision": 4,
            "rule": "every 30 minutes",
        },
        reads=_LIST,
    ),
    *_refused("restore", ("an unknown one", ("gone",), {}, Refusal("unknown-schedule", "gone", "30 days"))),
    *refusals(
        "schedules.restore",
        ("one that is misspelled", ("nwes",), {}, _UNKNOWN),
        given=(deleted,),
        reads=_LIST,
    ),
    *refusals(
        "schedules.restore",
        ("while there is another", ("news",), {}, Refusal("duplicate-schedule", "news", "rota audit --subject news")),
        given=(remade,),
        reads=_LIST,
    ),
]
_FILTERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "all": ({}, ("news", "nightly", "scoped", "then")),
    "of a job": ({"job": "crawl"}, ("news",)),
    "of an owner": ({"owner": "me"}, ("nightly",)),
    "of a text": ({"text": "NIGH"}, ("nightly",)),
    "of a state": ({"state": "paused"}, ("news",)),
    "failing": ({"state": "failing"}, ()),
    "late": ({"state": "late"}, ()),
    "with their last runs": ({"recent": 3, "job": "crawl"}, ("news",)),
}
_BERLIN = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
_SIMULATED: list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("a day", ("news",), {}, {"counts": {"run": 48}, "unlisted": 28}, {}),
    (
        "only its next times",
        ("nightly", "0s"),
        {"limit": 2},
        {"fires": [{"plan_time": "2040-02-01T01:30:00Z", "local": "2040-02-01T02:30:00+01:00"}, {}], "events": []},
        {},
    ),
    (
        "with assumptions and changes",
        ("news", "3h"),
        {
            "duration": "40m",
            "fail_every": 2,
            "outages": ((_FAR, _FAR + timedelta(minutes=50)),),
            "workers": 1,
            "changes": {"every": "20m", "overlap": "queue_all"},
        },
        {"schedules": [{"kind": "change", "rule": "every 20 minutes", "durations": "40m, as given"}]},
        {"only": _UNTYPED},
    ),
    (
        "documents that are right",
        (),
        {"documents": [_BERLIN, {"name": "news", "job": "rest", "every": "1h"}], "limit": 2},
        {
            "schedules": [
                {"kind": "create", "problems": []},
                {"kind": "change", "changes": [{"key": "job"}, {}, {}, {}]},
            ]
        },
        {"only": _UNTYPED},
    ),
    (
        "a document that is wrong",
        (),
        {"documents": [{"job": "crawl", "every": "1h", "overlap": "never"}]},
        {"schedules": [{"problems": [{"key": "overlap"}]}]},
        {"only": _UNTYPED},
    ),
    (
        "documents of an owner",
        (),
        {"documents": [{"name": "news", "job": "rest", "every": "1h"}], "owner": "me"},
        {"schedules": [{"problems": [{"code": "conflict"}]}, {"kind": "delete", "name": "nightly"}]},
        {"only": _UNTYPED},
    ),
]
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
    ),
    *refusals(
        "schedules.list",
        ("of a wrong state", (), {"state": "pausd"}, Refusal("invalid", "pausd", "'paused'")),
        ("none", (), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 1000")),
    ),
    *(
        Case(
            "schedules.simulate", what, arguments, {"start": _FAR, **named}, given=(schedules,), contains=answer, **only
        )
        for what, arguments, named, answer, only in _SIMULATED
    ),
    *_refused(
        "simulate",
        ("for a wrong time", ("news", "soon"), {}, Refusal("bad-duration", "span", "90s")),
        ("with a wrong change", ("news",), {"changes": {"overlap": "never"}}, Refusal("invalid", "never", "")),
        ("with an unknown option", ("news",), {"overlapp": "skip"}, Refusal("unknown-option", "overlapp", "")),
        ("nothing", (), {}, Refusal("invalid", "one schedule, or documents", "`documents`")),
        ("an unknown one", ("nwes",), {}, _UNKNOWN),
        ("too many", ("news",), {"limit": 1_001}, Refusal("out-of-range", "limit", "give 1 to 1000")),
        ("for too long", ("news", "20000d"), {}, Refusal("invalid", "at most 3660 days", None)),
    ),
    Case(
        "schedules.events",
        "of one",
        ("news",),
        given=(paused,),
        contains=[{"type": "created"}, {"type": "paused", "actor": "ann"}],
    ),
    Case("schedules.verify", "one", ("nightly",), given=(filled,), contains={"findings": [], "schedule": "nightly"}),
    Case(
        "schedules.verify",
        "only by counting",
        ("nightly",),
        {"thorough": False},
        given=(filled,),
        contains={"findings": [], "schedule": "nightly"},
    ),
    Case(
        "schedules.explain",
        "a time to come",
        ("nightly", datetime(2040, 2, 1, 1, 30, tzinfo=UTC)),
        given=(schedules,),
        contains={"verdict": "future", "words": ["It will be planned at 2040-02-01T01:30:00Z."]},
        typed=("explain", "nightly", "--at", "2040-02-01T02:30"),
    ),
    Case(
        "schedules.explain",
        "the newest plan time, or the next if none has come",
        ("nightly",),
        given=(schedules,),
        contains={"verdict": "future"},
        typed=("explain", "nightly"),
    ),
    Case(
        "schedules.explain",
        "no plan time",
        ("nightly", _FAR),
        given=(schedules,),
        contains={"verdict": "not_planned", "facts": {"before": "2040-01-31T01:30:00Z"}},
        typed=("explain", "nightly", "--at", "2040-01-31T08:00:00Z"),
    ),
    Case(
        "schedules.recent",
        "of some",
        (["nightly", "news"],),
        given=(triggered,),
        contains={"nightly": {"recent": [], "p50_duration_ms": None}, "news": {"recent": []}},
    ),
    Case(
        "schedules.occurrence_page",
        "by position",
        ("nightly", _PAST, _PAST + timedelta(days=3)),
        given=(filled,),
        contains={"items": _nights(0, 1, 2), "next_cursor": None},
    ),
    Case(
        "schedules.occurrence_page",
        "the first two",
        ("nightly",),
        {"from_at": _PAST, "to_at": _PAST + timedelta(days=3), "limit": 2},
        given=(filled,),
        contains={"items": _nights(0, 1), "next_cursor": "<next_cursor>"},
    ),
    Case(
        "schedules.occurrence_page",
        "after the first two, in the time range of the place",
        ("nightly",),
        {"after": PagePosition(_night(1), 1, _PAST, _PAST + timedelta(days=3))},
        given=(filled,),
        contains={"items": _nights(2), "next_cursor": None},
    ),
    Case("schedules.occurrence_page", "of the last day", ("news",), given=(schedules,), contains={"next_cursor": None}),
    *refusals(
        "schedules.occurrence_page",
        ("of an unknown one", ("nightli",), {}, Refusal("unknown-schedule", "nightli", "'nightly'")),
        ("that ends first", ("nightly", _FAR, _PAST), {}, Refusal("invalid", "from is after to", None)),
        ("none", ("nightly",), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 10000")),
        ("too many", ("nightly",), {"limit": 10_001}, Refusal("out-of-range", "limit", "give 1 to 10000")),
        given=(schedules,),
    ),
    Case(
        "schedules.backfill",
        "by position, dry",
        ("nightly", _PAST, _PAST + timedelta(days=2)),
        {"dry_run": True},
        given=(schedules,),
        contains={"count": 2, "dry_run": True, "plan_times": _TWO_NIGHTS, "runs": []},
    ),
    Case(
        "schedules.backfill",
        "some",
        ("nightly", _PAST, _PAST + timedelta(days=2)),
        {"concurrency": 2},
        given=(schedules,),
        contains={"count": 2, "dry_run": False, "plan_times": _TWO_NIGHTS, "runs": ["<id 1>", "<id 2>"]},
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
        (
            "until nobody can tell",
            ("news",),
            {"until": datetime(2300, 1, 1, tzinfo=UTC)},
            Refusal("invalid", "until", ""),
        ),
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
        "none, which deletes what the owner has",
        ([], "me"),
        given=(schedules, _file([])),
        contains=[{"kind": "delete", "name": "nightly"}],
        reads=_LIST,
        typed=_APPLY,
    ),
    *(
        Case(verb, "as the audit tells it", args, named, given=given, contains=answer, reads=_AUDIT, only=_UNTYPED)
        for verb, args, named, given, answer in _AUDITED
    ),
    Case(
        "schedules.apply_documents",
        "as they are",
        (_NEW, "me"),
        given=(schedules, _file(_NEW)),
        contains=[{"kind": "change", "name": "nightly"}, {"kind": "create", "name": "new"}],
        reads=_LIST,
        typed=_APPLY,
    ),
    *(
        Case(
            "schedules.apply_documents",
            what,
            (documents, "me"),
            given=(schedules, _file(documents)),
            refused=refusal,
            reads=_LIST,
            typed=_APPLY,
        )
        for what, documents, refusal in _DOCUMENTS
    ),
]
CASES = [*_DEFINITIONS, *_QUESTIONS, *_ACTS]
