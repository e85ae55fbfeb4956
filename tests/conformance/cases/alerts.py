"""Cases of expectations and notifications."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from rota.core.alerts.expectations import ExpectationOptions
from rota.core.states import Outcome
from tests.conformance.case import PYTHON, REST, Case, Reading, Refusal, refusals
from tests.conformance.world import World
from tests.support.runs.runs import claim, put, tell
from tests.support.servers.notification_receivers import hook

_EXPECTED: Reading = ("expectations.list", {})
_NOTIFIED: Reading = ("notifications.list", {})
_URL = "https://me:hunter2@example.com/hook?token=hunter2"
_CRAWL: tuple[Any, ...] = ("job", "crawl")
_UNTYPED = (*PYTHON, REST)


async def expectations(world: World) -> None:
    """Expect something of two jobs."""
    expect: ExpectationOptions = {"success_every": "25h", "over": 9, "min_success_rate": 0.9}
    await world.client.expectations.update("job", "rest", start_within="5m", actor="ann")
    await world.client.expectations.update("job", "crawl", **expect, actor="ann")


async def breached(world: World) -> None:
    """Expect no failure of a job that fails."""
    await expectations(world)
    await world.client.expectations.update("job", "label", max_consecutive_failures=1, actor="ann")
    for _ in range(2):
        await put(world.store, "label", max_attempts=1)
    for held in await claim(world.store, known={"label": 1}):
        await tell(world.store, held, Outcome.FAILED)
    await world.store.expectations.watch()


async def notifications(world: World) -> None:
    """Create three notifications."""
    for name in ("ops", "mail", "dev"):
        to = "mailto:ops@example.com" if name == "mail" else _URL
        await world.client.notifications.create(name, to=to, jobs=["rest"], on=["missed"], owner="me", actor="ann")


async def receiver(world: World) -> None:
    """Create a notification that somebody receives."""
    server = await world.stack.enter_async_context(hook())
    world.note("port", str(urlsplit(server.url).port))
    await world.client.notifications.create("hook", to=server.url, actor="ann")


def _changed(verb: str, what: str, expect: dict[str, Any], **facts: Any) -> Case:
    contains = {"kind": "job", "subject": "crawl", "expect": facts, "owner": "<actor>", "breaches": []}
    return Case(f"expectations.{verb}", what, _CRAWL, expect, given=(expectations,), contains=contains, reads=_EXPECTED)


_KEPT = {"success_every": "1d1h", "over": 9, "min_success_rate": 0.9}
_THREE = [{"subject": job} for job in ("crawl", "label", "rest")]
_LONGER = Refusal("invalid", "shorter than", "finish_within is the longer one")
_NO_SUCH_JOB = Refusal("unknown-job", "craw", "'crawl'")
_NO_KIND = Refusal("invalid", "queue", "job, schedule")
_EXPECTATIONS = [
    _changed("update", "one more", {"max_duration": "1h"}, **_KEPT, max_duration="1h"),
    _changed("update", "a timedelta", {"max_duration": timedelta(minutes=90)}, **_KEPT, max_duration="1h30m"),
    _changed("update", "removes one", {"success_every": None}, over=9, min_success_rate=0.9),
    _changed("update", "a rate in percent", {"min_success_rate": "95%"}, **{**_KEPT, "min_success_rate": 0.95}),
    _changed("update", "nothing", {}, **_KEPT),
    _changed("replace", "all of them", {"max_consecutive_failures": 3}, max_consecutive_failures=3),
    *refusals(
        "expectations.update",
        ("a wrong duration", _CRAWL, {"start_within": "often"}, Refusal("bad-duration", "start_within", "90s")),
        ("an impossible rate", _CRAWL, {"min_success_rate": "7"}, Refusal("invalid", "min_success_rate", '"95%"')),
        ("a huge number", _CRAWL, {"over": 2**70}, Refusal("invalid", "over", shape=True)),
        ("no time", _CRAWL, {"max_duration": "0s"}, Refusal("invalid", "max_duration", "leave it out")),
        ("what contradicts itself", _CRAWL, {"start_within": "5m", "finish_within": "1m"}, _LONGER),
        ("of an unknown job", ("job", "craw"), {"over": 3}, _NO_SUCH_JOB),
        ("of an unknown schedule", ("schedule", "x"), {"over": 3}, Refusal("unknown-schedule", "x", "schedule ls")),
        given=(expectations,),
        reads=_EXPECTED,
    ),
    *refusals(
        "expectations.update",
        ("of a queue", ("queue", "crawl"), {"over": 3}, _NO_KIND),
        ("an unknown one", _CRAWL, {"ovr": 3}, Refusal("unknown-option", "ovr", "'over'", usage=True)),
        given=(expectations,),
        reads=_EXPECTED,
        only=_UNTYPED,
    ),
    *refusals(
        "expectations.replace",
        ("nothing", _CRAWL, {}, Refusal("invalid", "empty", "success_every")),
        ("of an unknown job", ("job", "craw"), {"over": 3}, _NO_SUCH_JOB),
        given=(expectations,),
        reads=_EXPECTED,
    ),
    Case("expectations.get", "of a job", _CRAWL, given=(expectations,), contains={"expect": _KEPT, "owner": "ann"}),
    Case("expectations.list", "none", contains=[]),
    Case(
        "expectations.list", "all", given=(breached,), contains=[{"subject": job} for job in ("crawl", "label", "rest")]
    ),
    Case(
        "expectations.list",
        "those that are breached",
        named={"breached": True},
        given=(breached,),
        contains=[{"subject": "label", "breaches": [{"what": "max_consecutive_failures"}]}],
    ),
    Case("expectations.delete", "of a job", _CRAWL, given=(expectations,), contains=None, reads=_EXPECTED),
    *refusals("expectations.delete", ("of an unknown job", ("job", "craw"), {}, _NO_SUCH_JOB)),
    *(
        case
        for verb in ("expectations.get", "expectations.delete")
        for case in refusals(
            verb,
            ("of a job without any", ("job", "label"), {}, Refusal("not-expected", "label", "")),
            given=(expectations,),
            reads=_EXPECTED,
        )
    ),
    *refusals("expectations.get", ("of a queue", ("queue", "crawl"), {}, _NO_KIND), only=_UNTYPED),
    *refusals("expectations.delete", ("of a queue", ("queue", "crawl"), {}, _NO_KIND), only=_UNTYPED),
]
_OPTIONS: dict[str, Any] = {
    "on": ["failure", "missed"],
    "jobs": ["crawl"],
    "schedules": ["news"],
    "secret": "env:HOOK",
    "include_payload": True,
    "at_most": 3,
    "owner": "me",
}


def _created(what: str, options: dict[str, Any], only: tuple[str, ...] | None = None, **contains: Any) -> Case:
    case = Case("notifications.create", what, ("ops",), {"to": _URL, **options}, contains=contains, reads=_NOTIFIED)
    return case if only is None else replace(case, only=only)


def _altered(what: str, changes: dict[str, Any], **contains: Any) -> Case:
    given = (notifications,)
    return Case("notifications.update", what, ("ops",), changes, given=given, contains=contains, reads=_NOTIFIED)


_UNSIGNED = Refusal("invalid", "secret", "signs")
_UNKNOWN = Refusal("unknown-notification", "opps", "'ops'")
_OF_ONE: dict[str, dict[str, Any]] = {"update": {"enabled": False}, "get": {}, "delete": {}, "test": {}}
_ALL = [{"name": name} for name in ("dev", "mail", "ops")]
_NOTIFICATIONS = [
    _created("with all options", _OPTIONS, **_OPTIONS, enabled=True),
    _created("by default", {}, on=["failure"], jobs=[], at_most=60, secret=None, owner="<actor>"),
    _created("by e-mail", {"to": "mailto:ops@example.com"}, to="mailto:ops@example.com"),
    _created("with a secret", {"secret": "hunter2"}, only=_UNTYPED, secret="***"),
    *refusals(
        "notifications.create",
        ("of a name that is taken", ("dev",), {"to": "https://other.example"}, Refusal("conflict", "dev", "")),
        ("to nowhere", ("x",), {"to": "nowhere"}, Refusal("invalid", "`to`", "https://example.com/hook")),
        ("for a wrong word", ("x",), {"to": _URL, "on": ["fialure"]}, Refusal("invalid", "fialure", "'failure'")),
        ("none an hour", ("x",), {"to": _URL, "at_most": 0}, Refusal("invalid", "at_most", shape=True)),
        ("too many an hour", ("x",), {"to": _URL, "at_most": 2**70}, Refusal("invalid", "at_most", shape=True)),
        (
            "for too many jobs",
            ("x",),
            {"to": _URL, "jobs": ["a"] * 1_001},
            Refusal("out-of-range", "jobs", "give at most 1000 items"),
        ),
        ("a secret in an e-mail", ("x",), {"to": "mailto:a@b.c", "secret": "env:A"}, _UNSIGNED),
        ("with an impossible name", ("a\tb",), {"to": _URL}, Refusal("invalid", "notification name", None)),
        given=(notifications,),
        reads=_NOTIFIED,
    ),
    *refusals(
        "notifications.create",
        ("for a number", ("x",), {"to": _URL, "jobs": [1]}, Refusal("invalid", "job", shape=True)),
        ("with no secret", ("x",), {"to": _URL, "secret": ""}, Refusal("invalid", "secret", shape=True)),
        ("for nothing", ("x",), {"to": _URL, "on": []}, Refusal("invalid", "on must name", None)),
        ("unknown", ("x",), {"to": _URL, "atmost": 1}, Refusal("unknown-option", "atmost", "'at_most'", usage=True)),
        reads=_NOTIFIED,
        only=_UNTYPED,
    ),
    _altered("off", {"enabled": False}, enabled=False, on=["missed"]),
    _altered("back to a default", {"jobs": None, "at_most": 5}, jobs=[], at_most=5),
    Case("notifications.get", "by name", ("ops",), given=(notifications,), contains={"name": "ops", "owner": "me"}),
    Case("notifications.list", "by name", given=(notifications,), contains=_ALL),
    Case("notifications.list", "none", contains=[]),
    Case("notifications.delete", "one", ("ops",), given=(notifications,), contains=None, reads=_NOTIFIED),
    Case("notifications.test", "that arrives", ("hook",), given=(receiver,), contains={"sent": {"status": 200}}),
    *refusals(
        "notifications.test",
        ("that nobody receives", ("hook",), {}, Refusal("unavailable", "could not be sent", None)),
        given=(receiver, lambda world: world.stack.aclose()),
    ),
    *(
        case
        for verb, named in _OF_ONE.items()
        for case in refusals(
            f"notifications.{verb}",
            ("an unknown one", ("opps",), named, _UNKNOWN),
            given=(notifications,),
            reads=_NOTIFIED,
        )
    ),
]
CASES = [*_EXPECTATIONS, *_NOTIFICATIONS]
