"""Cases of the overview, charts, the timeline, error groups, the audit log and the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.core.calendar.triggers import every
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from tests.conformance.case import CLIENT, PYTHON, REMOTE, REST, Case, Refusal, refusals
from tests.conformance.world import World
from tests.support.runs.runs import claim, finish, put, put_and_claim, tell

_AT = datetime(2020, 1, 31, 8, tzinfo=UTC)
_LATER = _AT + timedelta(hours=2)
_NAIVE = Refusal("invalid", "from must be a datetime with a zone", "datetime.now(UTC)")
_ZONED = "2020-01-31T08:00:00Z"


async def a_finished_run(world: World) -> None:
    """Finish one run, and leave one."""
    world.note("first", await put(world.store))
    (held,) = await claim(world.store)
    await finish(world.store, held)
    world.note("second", await put(world.store))


async def failures(world: World) -> None:
    """Let runs of two jobs fail, one of them in a scope."""
    for number, (job, options) in enumerate((("rest", {"scope": ("tenant", "7")}), ("crawl", {}), ("crawl", {}))):
        held = await put_and_claim(world.store, job, max_attempts=1, **options)
        world.note(f"failed {number}", held.run_id)
        error = stored_error(RunError("Timeout", f"no answer from {job}"))
        await tell(world.store, held, Outcome.FAILED, error=error)


async def something_to_come(world: World) -> None:
    """Make a schedule and a paused one, a run that is delayed, and one that may begin now."""
    create = world.client.schedules.create
    await create(
        "news", "crawl", every("6h"), payload={"url": "u"}, scopes=[("account", "1"), ("account", "2")], actor="ann"
    )
    await create("paused", "rest", every("1m"), actor="ann")
    await world.client.schedules.pause("paused", actor="ann")
    world.note("delayed", await put(world.store, delay=timedelta(minutes=1)))
    await put(world.store)


async def a_schedule_that_fails(world: World) -> None:
    """Note that the last 18 runs of a schedule failed."""
    schedule = await world.client.schedules.create("backup", "rest", every("1d"), actor="ann")
    lane = "insert into rota_lane (schedule_id, scope_kind, scope_id, failed, failures, attempt, finished_at, skips)"
    values = f"values ('{schedule.id}', 'global', 'global', 1, 18, 1, 1, 0)"
    await world.store.database.transact(lambda tx: tx.fetch_sql(f"{lane} {values}"))


async def a_snoozed_schedule(world: World) -> None:
    """Snooze it."""
    await a_schedule_that_fails(world)
    await world.client.attention.snooze("schedule_failing", "backup", reason="known", actor="ann")


async def acts(world: World) -> None:
    """Change two queues."""
    await world.client.pause_queue("mail", reason="down", force=True, actor="ann")
    await world.client.pause_queue("print", force=True, actor="bob")
    await world.client.resume_queue("mail", actor="ann")


async def a_copy(world: World) -> None:
    """Let the database be a copy that nobody has accepted."""
    await world.store.database.transact(lambda tx: tx.fetch_sql("update rota_epoch set is_copy = 1"))


_DATABASE = [
    Case("database.get", "the original", contains={"held": False, "accepted_by": None}),
    Case("database.examine", "a new installation", only=(REMOTE,)),  # sizes differ
    Case("database.get", "a copy", given=(a_copy,), contains={"held": True, "accepted_at": None}),
    Case(
        "database.accept",
        "a copy",
        named={"reason": "restored"},
        given=(a_copy,),
        contains={"held": False, "accepted_by": "<actor>"},
        reads=("audit", {"kind": "database"}),
    ),
    Case(
        "database.accept",
        "the original, which stays as it is",
        contains={"held": False, "accepted_by": None},
        reads=("audit", {"kind": "database"}),
    ),
    *refusals(
        "database.accept",
        ("a long reason", (), {"reason": "x" * 1_001}, Refusal("out-of-range", "reason", "1000")),
        given=(a_copy,),
        reads=("database.get", {}),
    ),
]

_AUDIT = [
    Case("audit", "of nothing", contains=[]),
    Case(
        "audit",
        "the newest first",
        given=(acts,),
        contains=[
            {"kind": "queue", "subject": "mail", "type": "resumed", "actor": "ann"},
            {"subject": "print", "type": "paused", "actor": "bob"},
            {"subject": "mail", "type": "paused", "details": {"reason": "down"}},
        ],
    ),
    Case("audit", "of an actor", named={"actor": "bob"}, given=(acts,), contains=[{"subject": "print"}]),
    Case("audit", "of a subject", named={"kind": "queue", "subject": "mail"}, given=(acts,), contains=[{}, {}]),
    Case("audit", "a page", named={"limit": 1}, given=(acts,), contains=[{"type": "resumed"}]),
    *refusals(
        "audit",
        ("of an unknown kind", (), {"kind": "queues"}, Refusal("invalid", "unknown kind", "did you mean 'queue'?")),
        ("of none", (), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 500")),
        ("of too many", (), {"limit": 501}, Refusal("out-of-range", "limit", "give 1 to 500")),
    ),
]
_SCOPED = (CLIENT, REMOTE, REST)
_GROUPS = [
    Case("error_groups.list", "of nothing", contains={"items": [], "truncated": False, "next_cursor": None}),
    Case(
        "error_groups.list",
        "the most recent first",
        given=(failures,),
        contains={
            "items": [
                {"job": "crawl", "count": 2, "last_run_id": "<failed 2>", "message": "no answer from crawl"},
                {"job": "rest", "type": "Timeout", "count": 1, "last_run_id": "<failed 0>"},
            ]
        },
    ),
    Case(
        "error_groups.list",
        "of all jobs, the largest first, with a text",
        named={"all_jobs": True, "sort": "count", "search": "FROM REST"},
        given=(failures,),
        contains={"items": [{"type": "Timeout", "parts": [{"job": "rest", "count": 1}], "job_count": 1}]},
    ),
    Case("error_groups.list", "of a job", named={"job": "rest"}, given=(failures,), contains={"items": [{}]}),
    Case(
        "error_groups.list",
        "of a scope",
        named={"scope": ("tenant", "7")},
        given=(failures,),
        contains={"items": [{"job": "rest"}]},
    ),
    Case(
        "error_groups.list",
        "for a caller of a scope",
        given=(failures,),
        scope=("tenant", "7"),
        contains={"items": [{"job": "rest"}]},
        only=_SCOPED,
    ),
    Case(
        "error_groups.list",
        "of another scope",
        named={"scope": ("tenant", "8")},
        given=(failures,),
        scope=("tenant", "7"),
        refused=Refusal("forbidden", "only runs of tenant/7"),
        only=_SCOPED,
    ),
    Case(
        "error_groups.list",
        "of a time",
        named={"since": _AT, "until": _LATER},
        given=(failures,),
        contains={"items": [], "since": _ZONED},
    ),
    *refusals(
        "error_groups.list",
        ("that ends first", (), {"since": _LATER, "until": _AT}, Refusal("invalid", "since must be before until")),
        ("after a strange cursor", (), {"cursor": "x"}, Refusal("invalid", "cursor 'x' is invalid", "next_cursor")),
    ),
    Case("time", "of the database", contains={"now": "<time>"}),
]
_NO_KIND = Refusal("invalid", "unknown kind", "'run_slow'")
_FAILING = {"kind": "schedule_failing", "subject": "backup", "severity": "problem", "weight": 18}
_ATTENTION = [
    Case("attention.list", "of nothing", contains=[]),
    Case("attention.list", "of a kind", named={"kind": "run_slow"}, given=(a_schedule_that_fails,), contains=[]),
    Case("attention.list", "of what is wrong", given=(a_schedule_that_fails,), contains=[_FAILING]),
    Case("attention.list", "but what is snoozed", given=(a_snoozed_schedule,), contains=[]),
    Case(
        "attention.list",
        "of what is snoozed",
        named={"snoozed": True},
        given=(a_snoozed_schedule,),
        contains=[{**_FAILING, "snoozed_by": "ann", "snooze_reason": "known"}],
    ),
    Case(
        "attention.snooze",
        "an item",
        ("schedule_failing", "backup", "2h"),
        {"reason": "known"},
        given=(a_schedule_that_fails,),
        contains={**_FAILING, "snoozed_by": "<actor>", "snooze_reason": "known"},
        reads=("attention.list", {}),
    ),
    Case(
        "attention.unsnooze",
        "an item",
        ("schedule_failing", "backup"),
        given=(a_snoozed_schedule,),
        contains={"was_snoozed": True},
        reads=("attention.list", {}),
    ),
    Case("attention.unsnooze", "nothing", ("clock",), contains={"was_snoozed": False}, reads=("attention.list", {})),
    *refusals(
        "attention.snooze",
        ("of nothing", ("run_slow", "r"), {}, Refusal("unknown-attention", "'run_slow' of 'r'", "rota attention")),
        ("of a wrong kind", ("run_slwo",), {}, _NO_KIND),
        ("for no time", ("run_slow", "r", "0s"), {}, Refusal("invalid", "length must be more than 0s", None)),
    ),
    *refusals(
        "attention.list",
        ("of a wrong kind", (), {"kind": "run_slwo"}, _NO_KIND),
    ),
    *refusals("attention.unsnooze", ("of a wrong kind", ("run_slwo",), {}, _NO_KIND)),
]
CASES = [
    *_ATTENTION,
    *_AUDIT,
    *_DATABASE,
    *_GROUPS,
    Case("monitoring.overview", "of nothing", contains={"live": {"running": 0, "queued": 0}, "attention_count": 0}),
    Case(
        "monitoring.overview",
        "of runs",
        given=(a_finished_run,),
        contains={"live": {"queued": 1}, "workers": {"alive": 0}},
    ),
    Case("monitoring.series", "by default", contains={"step": "15m"}),
    Case(
        "monitoring.series",
        "with times by position",
        (_AT, _LATER, "1h"),
        contains={"from": _ZONED, "to": "2020-01-31T10:00:00Z", "step": "1h", "buckets": [{}, {}]},
    ),
    Case(
        "monitoring.series",
        "with a step that is a timedelta",
        (_AT, _LATER),
        {"step": timedelta(hours=1)},
        contains={"step": "1h", "buckets": [{}, {}]},
    ),
    Case("monitoring.timeline", "of nothing", contains={"by": "schedule", "lanes": [], "truncated": False}),
    Case(
        "monitoring.timeline",
        "of a run, by job",
        given=(a_finished_run,),
        named={"by": "job"},
        contains={"lanes": [{"name": "work", "attempts": [{"run_id": "<first>", "no": 1, "state": "succeeded"}]}]},
    ),
    Case("monitoring.timeline", "of a range", (_AT, _LATER), {"by": "queue"}, contains={"from": _ZONED, "by": "queue"}),
    Case("monitoring.upcoming", "of nothing", contains={"items": [], "total": 0, "truncated": False}),
    Case(
        "monitoring.upcoming",
        "of a schedule and a delayed run",
        ("1d",),
        {"each": 2},
        given=(something_to_come,),
        contains={
            "items": [
                {"run_id": "<delayed>", "job": "work", "queue": "default", "schedule": None, "attempt": 0},
                {"schedule": "news", "job": "crawl", "run_id": None, "rule": "every 6 hours", "scopes": 2, "more": 0},
                {"schedule": "news", "more": 2},
            ],
            "total": 5,
            "truncated": False,
        },
    ),
    Case(
        "monitoring.upcoming",
        "no more than asked for",
        ("1d",),
        {"limit": 1},
        given=(something_to_come,),
        contains={"items": [{"run_id": "<delayed>"}], "truncated": True},
    ),
    *refusals(
        "monitoring.upcoming",
        ("of no time", ("0s",), {}, Refusal("invalid", "within must be more than 0s", None)),
        ("of a year", ("365d",), {}, Refusal("invalid", "at most 31d", None)),
        ("of none", (), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to")),
    ),
    *refusals(
        "monitoring.series",
        ("that ends first", (_LATER, _AT), {}, Refusal("invalid", "from is after to", None)),
        ("with a wrong step", (), {"step": "soon"}, Refusal("bad-duration", "step", "90s")),
        ("with a step of seconds", (), {"step": "10s"}, Refusal("invalid", "step", None)),
    ),
    *refusals(
        "monitoring.timeline",
        ("that ends first", (_LATER, _AT), {}, Refusal("invalid", "from is after to", None)),
        ("by a wrong word", (), {"by": "jobs"}, Refusal("invalid", "by", "'job'")),
        ("of none", (), {"limit": 0}, Refusal("out-of-range", "limit", "give 1 to 500")),
    ),
    *(
        Case(verb, "a time without a zone", (_AT.replace(tzinfo=None),), refused=_NAIVE, only=PYTHON)
        for verb in ("monitoring.series", "monitoring.timeline")
    ),
]
