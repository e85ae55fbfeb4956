"""Cases of jobs, queues and data jobs."""

from __future__ import annotations

import json
import shlex
from datetime import timedelta
from typing import Any

from rota.client.client import Order
from rota.core.calendar.triggers import every
from rota.core.jobs.retry import Delays, Exponential
from rota.core.jobs.secrets import MASK
from rota.core.jobs.status import JobFilter
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from tests.conformance.case import DOORS, PYTHON, REST, Case, Reading, Refusal, refusals
from tests.conformance.cases.runs import failed, finished
from tests.conformance.world import World

_URL = "https://example.com/health?key=hunter2"
_PING: Reading = ("job", {"name": "ping"})
_UNTYPED = (*PYTHON, REST)


async def paused(world: World) -> None:
    """Pause a job and a queue."""
    await world.client.pause_job("crawl", reason="the site is down", actor="ann")
    await world.client.pause_queue("default", reason="the relay is down", actor="ann")


async def cancelled(world: World) -> None:
    """Cancel a job that is being waited for."""
    await waiting(world)
    await world.client.cancel_job("crawl", reason="enough", actor="ann")


async def waiting(world: World) -> None:
    """Enqueue runs of two queues, and create a schedule."""
    world.note("run", (await world.client.enqueue(Order("crawl", {"url": "u"}, {"delay": "9h"}))).id)
    await world.client.enqueue(Order("rest", {}, {"queue": "slow"}))
    await world.client.schedules.create("news", "crawl", every("30m"), payload={"url": "u"}, actor="ann")


_PARTS = [{"step": "fetch", "job": "crawl", "payload": {"url": "{payload.url}"}}, {"step": "tell", "job": "rest"}]


async def ping(world: World) -> None:
    """Create a data job."""
    await world.client.data_jobs.create(
        "ping", "http", url=_URL, headers={"Authorization": "Bearer hunter2"}, actor="ann"
    )


async def dropped(world: World) -> None:
    """Create a data job, and delete it."""
    await ping(world)
    await world.client.data_jobs.delete("ping", actor="ann")


async def pinged(world: World) -> None:
    """Create a data job with a schedule of its own, another schedule, and a run."""
    await ping(world)
    await world.client.schedules.create("nightly", "ping", every("1d"), actor="ann")
    world.note("run", (await world.client.enqueue(Order("ping", {}, {"delay": "1h"}))).id)


_DECLARED = ("crawl", "label", "rest")
_UNKNOWN = Refusal("unknown-job", "craw", "'crawl'")
_STATUS: Reading = ("job_status", {"name": "crawl"})
_QUEUES: Reading = ("queues", {})
_QUESTIONS = [
    Case(
        "job",
        "declared in code",
        ("crawl",),
        contains={"name": "crawl", "kind": "python", "tags": ["net"], "status": {"job": "crawl", "state": "pending"}},
    ),
    Case("job", "defined as data", ("ping",), given=(ping,), contains={"kind": "http", "timeout": "10s", "version": 1}),
    Case("jobs", "by name", given=(ping,), contains=[{"name": name} for name in ("crawl", "label", "ping", "rest")]),
    Case("jobs", "of a kind", named={"kind": "http"}, given=(ping,), contains=[{"name": "ping"}]),
    Case("jobs", "of a tag", named={"tag": "net"}, contains=[{"name": "crawl"}]),
    Case("jobs", "that are paused", named={"state": "paused"}, given=(paused,), contains=[{"name": "crawl"}]),
    Case("jobs", "of a pattern", named={"name": "r*"}, contains=[{"name": "rest"}]),
    Case("jobs", "of a text", named={"text": "AB"}, contains=[{"name": "label"}]),
    Case("jobs", "a page", named={"limit": 2}, contains=[{"name": "crawl"}, {"name": "label"}]),
    Case(
        "jobs",
        "the next page",
        named={"limit": 2, "after": "crawl"},
        contains=[{"name": "label"}, {"name": "rest"}],
    ),
    *refusals(
        "jobs",
        ("of an unknown state", (), {"state": "pausd"}, Refusal("invalid", "pausd", "'paused'")),
        ("of an unknown kind", (), {"kind": "htpt"}, Refusal("invalid", "htpt", "'http'")),
        ("none", (), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 1000")),
        ("too many", (), {"limit": 1_001}, Refusal("out-of-range", "limit cannot be 1001", "give 1 to 1000")),
        ("by a long text", (), {"text": "x" * 201}, Refusal("out-of-range", "text", "give at most 200 characters")),
    ),
    Case("jobs", "up to a thousand", named={"limit": 1_000}, contains=[{"name": name} for name in _DECLARED]),
    *(
        case
        for verb in ("pause_job", "cancel_job", "pause_queue")
        for case in refusals(
            verb,
            (
                "with a long reason",
                ("crawl",),
                {"reason": "x" * 1_001},
                Refusal("out-of-range", "reason cannot have 1001 characters", "give at most 1000 characters"),
            ),
            reads=_STATUS,
        )
    ),
    Case(
        "job_status", "of a paused job", ("crawl",), given=(paused,), contains={"state": "paused", "paused_by": "ann"}
    ),
    Case(
        "job_status", "of a job with runs", ("crawl",), given=(waiting,), contains={"state": "scheduled", "waiting": 1}
    ),
    Case("job_stats", "of a job", ("crawl",), given=(failed,), contains={"job": "crawl", "failed": 1, "total": 1}),
    Case(
        "stats_of_jobs",
        "of a page",
        named={"limit": 1, "text": "CRA"},
        given=(failed,),
        contains=[{"job": "crawl", "failed": 1, "total": 1, "success_rate": 0.0}],
    ),
    Case("stats_of_jobs", "of all jobs", given=(failed,), contains=[{"job": name} for name in _DECLARED]),
    Case("stats_of_jobs", "of none", named={"tag": "nobody"}, contains=[]),
    Case("queues", "of all jobs", given=(waiting,), contains=[{"queue": "default"}, {"queue": "slow", "queued": 1}]),
    Case(
        "queues",
        "that are paused",
        given=(paused,),
        contains=[{"queue": "default", "paused": {"reason": "the relay is down"}}],
    ),
    Case(
        "scheduler_metrics",
        "of all",
        given=(failed,),
        contains={"executions": {"total": 1, "success_rate": 0.0}, "jobs": {"failed": 1, "pending": 2}},
    ),
    Case(
        "executions",
        "of a job",
        ("crawl",),
        given=(failed,),
        contains={"total": 1, "limit": 50, "offset": 0, "executions": [{"execution_number": 1, "status": "failed"}]},
    ),
    Case("executions", "beyond the last", ("crawl",), {"offset": 7}, given=(failed,), contains={"executions": []}),
    *refusals(
        "executions",
        ("of an unknown job", ("craw",), {}, _UNKNOWN),
        ("none", ("crawl",), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 500")),
        ("too far away", ("crawl",), {"offset": 10_001}, Refusal("out-of-range", "offset", "give 0 to 10000")),
    ),
    Case(
        "execution",
        "by the id of its run",
        ("<run>",),
        given=(failed,),
        contains={"run_id": "<run>", "execution_number": 1, "retry_attempt": 0, "status": "failed"},
    ),
    *refusals(
        "execution", ("of a run that waits", ("<run>",), {}, Refusal("not-found", "", "attempt")), given=(waiting,)
    ),
    *refusals(
        "stats_of_jobs",
        ("too many", (), {"limit": 1_001}, Refusal("out-of-range", "limit", "give 1 to 1000")),
    ),
    *(
        case
        for verb in ("job", "job_status", "job_stats", "pause_job", "resume_job", "cancel_job", "retry_job")
        for case in refusals(verb, ("an unknown job", ("craw",), {}, _UNKNOWN))
    ),
]
_ACTS = [
    Case(
        "pause_job",
        "with a reason",
        ("crawl",),
        {"reason": "a rest"},
        given=(waiting,),
        contains={"state": "paused", "pause_reason": "a rest", "paused_by": "<actor>"},
        reads=("schedules.list", {}),
    ),
    Case("pause_job", "without one", ("crawl",), contains={"state": "paused", "pause_reason": None}, reads=_STATUS),
    Case(
        "resume_job",
        "and skip",
        ("crawl",),
        given=(paused,),
        contains={"state": "pending", "paused_at": None},
        reads=_STATUS,
    ),
    Case(
        "resume_job",
        "and catch up",
        ("crawl",),
        {"catch_up": "latest"},
        given=(waiting, paused),
        contains={"state": "scheduled", "paused_at": None},
        reads=("schedules.list", {}),
    ),
    *refusals(
        "resume_job",
        ("in a wrong way", ("crawl",), {"catch_up": "last"}, Refusal("invalid", "last", "latest")),
        given=(paused,),
        reads=_STATUS,
    ),
    Case(
        "cancel_job",
        "with its runs",
        ("crawl",),
        {"reason": "enough"},
        given=(waiting,),
        contains={"job": "crawl", "cancelled": 1, "status": {"state": "cancelled"}},
        reads=("schedules.list", {}),
    ),
    *(
        case
        for verb in ("cancel_job", "pause_job", "retry_job")
        for case in refusals(
            verb,
            ("that is cancelled", ("crawl",), {}, Refusal("job-state", "is cancelled", "possible now: resume")),
            given=(cancelled,),
            reads=_STATUS,
        )
    ),
    Case(
        "resume_job",
        "that is cancelled",
        ("crawl",),
        given=(cancelled,),
        contains={"state": "scheduled", "cancelled_at": None},
        reads=("schedules.list", {}),
    ),
    *refusals(
        "retry_job",
        ("that succeeded", ("label",), {}, Refusal("nothing-to-retry", "it did not fail", "")),
        given=(finished,),
    ),
    Case("retry_job", "that failed", ("crawl",), given=(failed,), contains={"retry_of": "<run>", "created": True}),
    *refusals("retry_job", ("that has no runs", ("rest",), {}, Refusal("nothing-to-retry", "rest", "enqueue one"))),
    *refusals("retry_job", ("that waits", ("crawl",), {}, Refusal("nothing-to-retry", "crawl", "")), given=(waiting,)),
    Case(
        "pause_queue",
        "with a reason",
        ("default",),
        {"reason": "a rest"},
        contains={"queue": "default", "paused": {"reason": "a rest"}},
        reads=_QUEUES,
    ),
    Case(
        "pause_queue",
        "that nobody names yet",
        ("new",),
        {"force": True},
        contains={"queue": "new", "queued": 0},
        reads=_QUEUES,
    ),
    *refusals(
        "pause_queue",
        ("of a wrong name", ("defalt",), {}, Refusal("unknown-queue", "defalt", "'default'")),
        reads=_QUEUES,
    ),
    Case(
        "resume_queue",
        "that is paused",
        ("default",),
        given=(paused,),
        contains={"was_paused": True, "paused": None},
        reads=_QUEUES,
    ),
    Case("resume_queue", "that is not", ("default",), contains={"was_paused": False}, reads=_QUEUES),
    *refusals("pause_queue", ("of an impossible name", ("\t",), {}, Refusal("invalid", "queue", None))),
]
_OPTIONS: dict[str, Any] = {
    "url": _URL,
    "headers": {"Authorization": "Bearer hunter2"},
    "timeout": timedelta(minutes=3),
    "backoff": Exponential(timedelta(seconds=2)),
    "unique": Unique(("id",), timedelta(minutes=1)),
    "limit": [Limit(max=2, by=("scope",)), Limit(max=9, per=timedelta(minutes=1))],
    "expect": {"success_every": timedelta(hours=25)},
    "expect_status": ["2xx", 404],
    "owner": "me",
}


def _created(what: str, named: dict[str, Any], contains: Any, given: Any = (), typed: str | None = None) -> Case:
    words = None if typed is None else ("job", "create", "ping", *shlex.split(typed))
    only = _UNTYPED if typed is None else DOORS
    facts: dict[str, Any] = {"given": given, "contains": contains, "reads": _PING}
    return Case("data_jobs.create", what, ("ping",), named, **facts, only=only, typed=words)


_CREATED = [
    _created(
        "of requests",
        {"kind": "http", "url": _URL},
        {"kind": "http", "created": True, "schedule": None, "run": None, "version": 1},
        typed=f"--url {_URL}",
    ),
    _created("whose kind is implied", {"url": _URL}, {"kind": "http", "created": True}),
    _created("with all options", _OPTIONS, {"timeout": "3m", "expect": {"success_every": "1d1h"}}),
    _created(
        "of a command",
        {"argv": ["pg_dump"], "env": {"PGPASSWORD": "hunter2"}},
        {"kind": "command"},
        typed="--command --env PGPASSWORD=hunter2 pg_dump",
    ),
    _created(
        "of work outside",
        {"kind": "external", "payload_schema": {"type": "object"}},
        {"kind": "external"},
        typed="""--external --payload-schema '{"type": "object"}'""",
    ),
    _created(
        "of work outside, with steps",
        {"kind": "external", "steps": ["look", {"id": "tell", "timeout": "1m", "cancelable": False}], "timeout": "1h"},
        {"steps": [{"id": "look"}, {"id": "tell", "timeout": "1m", "cancelable": False}], "timeout": "1h"},
    ),
    _created(
        "of a command with limits",
        {"argv": ["pg_dump"], "cpu_limit": "30s", "memory_limit": "64MB"},
        {"cpu_limit": "30s", "memory_limit": 64 << 20},
    ),
    _created(
        "of a pipeline",
        {"pipeline": _PARTS},
        {"kind": "pipeline", "steps": [{"id": "fetch", "name": "crawl"}, {"id": "tell", "name": "rest"}]},
        typed=f"--pipeline {shlex.quote(json.dumps(_PARTS))}",
    ),
    _created(
        "with a schedule",
        {"url": _URL, "schedule": {"every": "30m"}},
        {"schedule": {"name": "ping", "rule": "every 30 minutes"}},
        typed=f"""--url {_URL} --set 'schedule={{"every": "30m"}}'""",
    ),
    _created("with a run", {"url": _URL, "run": {"a": 1}}, {"run": {"payload": {"a": 1}, "state": "queued"}}),
    _created(
        "in other words",
        {
            "url": _URL,
            "max_retries": 2,
            "timeout_seconds": 90,
            "cron_expr": "0 3 * * *",
            "misfire_policy": "CATCH_UP_LIMITED",
            "catchup_limit": 3,
            "overlap_action": "CANCEL_PREV",
            "schedule_enabled": False,
        },
        {
            "timeout": "1m30s",
            "retry": {"max_attempts": 3},
            "schedule": {"enabled": False, "definition": {"cron": "0 3 * * *", "overlap": "cancel_previous"}},
        },
    ),
    _created(
        "in other words, to run now",
        {"url": _URL, "schedule_enabled": False, "payload": {"a": 1}},
        {"schedule": None, "run": {"payload": {"a": 1}}},
    ),
    *refusals(
        "data_jobs.create",
        (
            "in words without a counterpart",
            ("ping",),
            {"url": _URL, "stale_timeout": 5},
            Refusal("invalid", "stale_timeout", "lease"),
        ),
        (
            "in two words for the same",
            ("ping",),
            {"url": _URL, "max_retries": 3, "max_attempts": 4},
            Refusal("invalid", "exclude each other", "one of them"),
        ),
        (
            "with another word for a word",
            ("ping",),
            {"url": _URL, "cron_expr": "0 3 * * *", "overlap_action": "SKP"},
            Refusal("invalid", "overlap_action", "'SKIP'"),
        ),
        reads=("jobs", {}),
        only=_UNTYPED,
    ),
    _created(
        "a second time",
        {"kind": "http", "url": _URL, "headers": {"Authorization": "Bearer hunter2"}},
        {"created": False},
        (ping,),
    ),
    *refusals(
        "data_jobs.create",
        ("of an unknown kind", ("x", "htpt"), {"url": _URL}, Refusal("invalid", "htpt", "'http'")),
        ("of no kind", ("x",), {}, Refusal("invalid", "kind", "url")),
        ("of an empty part", ("x",), {"pipeline": [{"step": "a"}]}, Refusal("invalid", "step and a job", "fetch")),
        (
            "of a pipeline within itself",
            ("x",),
            {"pipeline": [{"step": "a", "job": "x"}]},
            Refusal("invalid", "part of itself"),
        ),
        (
            "of a request with steps",
            ("x",),
            {"url": _URL, "steps": ["a"]},
            Refusal("unknown-option", "steps", ""),
        ),
        (
            "that code declares",
            ("crawl", "http"),
            {"url": _URL},
            Refusal("conflict", "declared in code", "another name"),
        ),
        ("that differs", ("ping", "http"), {"url": "https://other.example"}, Refusal("conflict", "ping", "")),
        (
            "with an option of another kind",
            ("x", "http"),
            {"url": _URL, "argv": ["ls"]},
            Refusal("unknown-option", "argv", ""),
        ),
        (
            "with a wrong duration",
            ("x", "http"),
            {"url": _URL, "timeout": "soon"},
            Refusal("bad-duration", "timeout", "90s"),
        ),
        (
            "with a wrong schedule",
            ("x",),
            {"url": _URL, "schedule": {"cron": "nonsense"}},
            Refusal("bad-trigger", "nonsense", ""),
        ),
        (
            "with a masked secret",
            ("x",),
            {"url": _URL, "secret": MASK},
            Refusal("masked-secret", "secret", "", shape=True),
        ),
        given=(ping,),
        reads=("jobs", {}),
        only=_UNTYPED,
    ),
    *refusals(
        "data_jobs.create",
        (
            "with an unknown option",
            ("x", "http"),
            {"url": _URL, "prioriti": 1},
            Refusal("unknown-option", "prioriti", "'priority'", usage=True),
        ),
        only=_UNTYPED,
    ),
]
_CHANGED = [
    Case(
        "data_jobs.update",
        "some options",
        ("ping",),
        {"timeout": "3s", "backoff": Delays((timedelta(seconds=5),))},
        given=(ping,),
        contains={"version": 2, "timeout": "3s"},
        reads=_PING,
        typed=("job", "update", "ping", "--timeout", "3s", "--set", 'backoff=["5s"]'),
    ),
    Case(
        "data_jobs.update",
        "back to a default",
        ("ping",),
        {"timeout": None, "enabled": False},
        given=(ping,),
        contains={"enabled": False},
        reads=_PING,
        typed=("job", "update", "ping", "--set", "timeout=null", "--set", "enabled=false"),
    ),
    Case(
        "data_jobs.update",
        "of an expected version",
        ("ping",),
        {"priority": 1, "expected_revision": 1},
        given=(ping,),
        contains={"version": 2},
        reads=_PING,
        only=_UNTYPED,
    ),
    Case(
        "data_jobs.update",
        "words of its schedule",
        ("ping",),
        {"interval_minutes": 6, "interval_type": "hours", "max_retries": 5},
        given=(ping,),
        contains={"version": 2},
        reads=("schedules.list", {"job": "ping"}),
        only=_UNTYPED,
    ),
    *refusals(
        "data_jobs.update",
        (
            "of another version",
            ("ping",),
            {"priority": 1, "expected_revision": 7},
            Refusal("changed-meanwhile", "", ""),
        ),
        ("unknown", ("pong",), {"priority": 1}, Refusal("unknown-job", "pong", "")),
        ("that code declares", ("crawl",), {"priority": 1}, Refusal("conflict", "code", "")),
        ("of another kind", ("ping",), {"kind": "command"}, Refusal("conflict", "of kind http", "delete it")),
        given=(ping,),
        reads=_PING,
        only=_UNTYPED,
    ),
    Case(
        "data_jobs.replace",
        "all options",
        ("ping",),
        {"url": _URL, "method": "HEAD"},
        given=(ping,),
        contains={"created": False, "version": 2, "http": {"method": "HEAD", "headers": {}}},
        reads=_PING,
        only=_UNTYPED,
    ),
    Case(
        "data_jobs.replace",
        "with a schedule",
        ("ping",),
        {"url": _URL, "schedule": {"every": "6h", "overlap": "allow"}},
        given=(ping,),
        contains={"created": False, "version": 2},
        reads=("schedules.list", {"job": "ping"}),
        only=_UNTYPED,
    ),
    Case(
        "data_jobs.replace",
        "none",
        ("new",),
        {"url": _URL, "expected_revision": 0},
        contains={"created": True, "version": 1},
        only=_UNTYPED,
    ),
    *refusals(
        "data_jobs.replace",
        ("one that must not be", ("ping",), {"url": _URL, "expected_revision": 0}, Refusal("conflict", "ping", None)),
        ("of another version", ("ping",), {"url": _URL, "expected_revision": 7}, Refusal("changed-meanwhile", "", "")),
        ("of another kind", ("ping",), {"argv": ["ls"]}, Refusal("conflict", "of kind http", "delete it")),
        ("that code declares", ("crawl",), {"url": _URL}, Refusal("conflict", "declared in code", "change it there")),
        given=(ping,),
        reads=_PING,
        only=_UNTYPED,
    ),
    Case("data_jobs.delete", "unused", ("ping",), given=(ping,), contains=None, reads=("jobs", {})),
    Case(
        "data_jobs.delete",
        "with force",
        ("ping",),
        {"force": True},
        given=(pinged,),
        contains=None,
        reads=("schedules.list", {}),
    ),
    *refusals(
        "data_jobs.delete",
        ("in use", ("ping",), {}, Refusal("job-in-use", "ping", "force")),
        given=(pinged,),
        reads=_PING,
    ),
    *refusals(
        "data_jobs.delete",
        ("unknown", ("pong",), {}, Refusal("unknown-job", "pong", "")),
        ("that code declares", ("crawl",), {}, Refusal("conflict", "code", "")),
        ("of another version", ("ping",), {"expected_revision": 7}, Refusal("changed-meanwhile", "", "")),
        given=(ping,),
        reads=_PING,
        only=_UNTYPED,
    ),
    Case(
        "data_jobs.restore",
        "a deleted one",
        ("ping",),
        given=(dropped,),
        contains={"name": "ping", "version": 2, "kind": "http"},
        reads=_PING,
    ),
    *refusals(
        "data_jobs.restore",
        ("unknown", ("pong",), {}, Refusal("unknown-job", "pong", "'ping'")),
        given=(dropped,),
        reads=("jobs", {}),
    ),
    *refusals(
        "data_jobs.restore",
        ("that is there", ("ping",), {}, Refusal("conflict", "ping", "rota audit --subject ping")),
        given=(ping,),
        reads=_PING,
    ),
    *refusals(
        "data_jobs.restore",
        ("that code declares", ("crawl",), {}, Refusal("conflict", "code", "")),
        only=_UNTYPED,
    ),
]
_MANY = [
    Case(
        "change_jobs",
        "pause those of a tag",
        ("pause", JobFilter(tag="net")),
        {"reason": "a rest", "expected": 1},
        contains={"matched": 1, "done": 1, "refused": []},
        reads=("jobs", {}),
        typed=("job", "bulk", "pause", "--tag", "net", "--reason", "a rest", "--yes"),
    ),
    Case(
        "change_jobs",
        "resume all",
        ("resume",),
        {"everything": True, "catch_up": "latest"},
        given=(paused,),
        contains={"matched": 3, "done": 3},
        reads=("jobs", {}),
        typed=("job", "bulk", "resume", "--all", "--catch-up", "latest", "--yes"),
    ),
    Case(
        "change_jobs",
        "cancel those that wait",
        ("cancel", JobFilter(state="scheduled")),
        given=(waiting,),
        contains={"matched": 2, "done": 2},
        reads=("jobs", {}),
        only=_UNTYPED,
    ),
    Case(
        "change_jobs",
        "retry those of a pattern",
        ("retry", JobFilter(name="[cr]*")),
        given=(failed,),
        contains={"matched": 2, "done": 1, "refused": [{"code": "nothing-to-retry", "examples": ["rest"]}]},
        only=_UNTYPED,
    ),
    Case(
        "change_jobs",
        "only count",
        ("pause", JobFilter(kind="python", text="RE", queue="default")),
        {"dry_run": True},
        contains={"matched": 1, "done": 0},
        reads=("jobs", {}),
        only=_UNTYPED,
    ),
    *refusals(
        "change_jobs",
        ("without a filter", ("pause",), {}, Refusal("invalid", "would pause every job", "add a condition")),
        (
            "of more than expected",
            ("pause", JobFilter(name="*")),
            {"expected": 2},
            Refusal("bulk-mismatch", "jobs", ""),
        ),
        ("in an unknown way", ("pasue", JobFilter(name="*")), {}, Refusal("invalid", "pasue", "'pause'")),
        (
            "of an unknown state",
            ("pause", JobFilter(state="pausd")),
            {},
            Refusal("invalid", "pausd", "'paused'"),
        ),
        reads=("jobs", {}),
        only=_UNTYPED,
    ),
]
CASES = [*_QUESTIONS, *_ACTS, *_CREATED, *_CHANGED, *_MANY]
