"""Cases of quotas and live limits."""

from __future__ import annotations

from datetime import timedelta

from tests.conformance.case import BLOCKING, CLIENT, COMMAND, REST, Case, Reading, Refusal, refusals
from tests.conformance.world import World

_LIST: Reading = ("quotas.list", {})


async def two_quotas(world: World) -> None:
    """Set a quota of a kind, and one of a scope."""
    await world.client.quotas.update("tenant", max_concurrency=5, actor="ann")
    await world.client.quotas.update("tenant", "a/42", max_queued=7, rate="10/1m", actor="ann")


async def many_quotas(world: World) -> None:
    """Set more quotas than a page holds."""
    for number in range(5):
        await world.client.quotas.update("tenant", f"{number}", max_queued=number, actor="ann")


async def paused_kind(world: World) -> None:
    """Pause all scopes of a kind."""
    await world.client.quotas.update("tenant", max_concurrency=0, actor="ann")


async def limited(world: World) -> None:
    """Limit a job and a queue while they run."""
    await world.client.limit_job("crawl", rate="5/s", lasts="2h", reason="an outage", actor="ann")
    await world.client.limit_queue("default", max_concurrency=3, actor="ann")


_GLOBAL = Refusal("invalid", "without a scope", "use a limit of their job")
_UPDATES = [
    Case(
        "quotas.update",
        "of a kind",
        ("tenant",),
        {"max_concurrency": 5, "max_queued": 0},
        contains={"kind": "tenant", "id": None, "max_concurrency": 5, "max_queued": 0, "owner": "<actor>"},
        reads=_LIST,
    ),
    Case(
        "quotas.update",
        "of a scope, with a rate as text",
        ("tenant", "a/42"),
        {"rate": "20/1h"},
        contains={"id": "a/42", "rate": "20/1h"},
        reads=_LIST,
    ),
    Case(
        "quotas.update",
        "with a rate as a pair",
        named={"kind": "tenant", "id": "42", "rate": (20, timedelta(minutes=90))},
        contains={"rate": "20/1h30m"},
    ),
    Case(
        "quotas.update",
        "replaces all of it",
        ("tenant", "a/42"),
        {"max_concurrency": 1},
        given=(two_quotas,),
        contains={"max_concurrency": 1, "max_queued": None, "rate": None},
        reads=_LIST,
    ),
]
_REFUSED_UPDATES = refusals(
    "quotas.update",
    ("without a number", ("a",), {}, Refusal("invalid", "limits nothing", "max_concurrency, max_queued or rate")),
    ("a negative number", ("a",), {"max_queued": -1}, Refusal("out-of-range", "max_queued", "give 0 to 1000000000")),
    ("a text for a number", ("a",), {"max_concurrency": "many"}, Refusal("invalid", "max_concurrency", shape=True)),
    ("a number for a rate", ("a",), {"rate": 5}, Refusal("invalid", "rate", shape=True)),
    ("a rate that is none", ("a",), {"rate": "often"}, Refusal("invalid", "rate", '"100/1m", or a pair')),
    ("a rate of no time", ("a",), {"rate": "5/0s"}, Refusal("invalid", "rate", None)),
    ("a rate with a wrong duration", ("a",), {"rate": "5/soon"}, Refusal("bad-duration", "soon", "90s")),
    ("of an impossible kind", ("\t",), {"max_queued": 1}, Refusal("invalid", "kind")),
    reads=_LIST,
)
_UNSAID = refusals(
    "quotas.update",
    ("of an empty id", ("tenant", ""), {"max_queued": 1}, Refusal("invalid", "scope id", None)),
    reads=_LIST,
    only=(CLIENT, BLOCKING, COMMAND),  # no path has an empty part
)
_UNKNOWN_FIELD = refusals(
    "quotas.update",
    ("an unknown field", ("a",), {"max_quued": 1}, Refusal("bad-body", "max_quued", "'max_queued'", shape=True)),
    reads=_LIST,
    only=(REST,),  # Python raises a TypeError, as for every function
)


async def paused_scope(world: World) -> None:
    """Pause a scope that has a quota."""
    await two_quotas(world)
    await world.client.quotas.pause("tenant", "a/42", reason="their database moves", actor="ann")


_PAUSES = [
    Case(
        "quotas.pause",
        "without a quota",
        ("tenant", "7"),
        contains={"kind": "tenant", "id": "7", "paused": True, "max_concurrency": None, "owner": "<actor>"},
        reads=_LIST,
    ),
    Case(
        "quotas.pause",
        "with a quota and a reason",
        ("tenant", "a/42"),
        {"reason": "their database moves"},
        given=(two_quotas,),
        contains={"paused": True, "reason": "their database moves", "max_queued": 7, "owner": "ann"},
        reads=_LIST,
    ),
    Case("quotas.pause", "again", ("tenant", "a/42"), given=(paused_scope,), contains={"paused": True}, reads=_LIST),
    *refusals("quotas.pause", ("of runs without a scope", ("global", "global"), {}, _GLOBAL), reads=_LIST),
    Case(
        "quotas.resume",
        "a paused one",
        ("tenant", "a/42"),
        given=(paused_scope,),
        contains={"was_paused": True},
        reads=_LIST,
    ),
    Case("quotas.resume", "one that is not", ("tenant", "7"), contains={"was_paused": False}, reads=_LIST),
    Case(
        "quotas.resume",
        "one that is paused with its kind",
        ("tenant", "7"),
        given=(paused_kind,),
        refused=Refusal("kind-paused", "tenant/7 is paused with all scopes", "rota quota delete tenant"),
        reads=_LIST,
    ),
    Case(
        "quotas.update",
        "to zero",
        ("tenant", "7"),
        {"max_concurrency": 0},
        contains={"paused": True, "max_concurrency": None},
        reads=_LIST,
    ),
    Case(
        "quotas.update",
        "during a pause",
        ("tenant", "a/42"),
        {"max_concurrency": 3},
        given=(paused_scope,),
        contains={"paused": True, "max_concurrency": 3},
        reads=_LIST,
    ),
]
_STATUS: Reading = ("job_status", {"name": "crawl"})
_QUEUES: Reading = ("queues", {})
_LIVE = [
    Case(
        "limit_job",
        "to a rate, for a while",
        ("crawl",),
        {"rate": "5/s", "lasts": timedelta(hours=2), "reason": "an outage"},
        contains={"job": "crawl", "live_limit": {"rate": "5/1s", "max_concurrency": None, "reason": "an outage"}},
        reads=_STATUS,
    ),
    Case(
        "limit_job",
        "to so many at a time, anew",
        ("crawl",),
        {"max_concurrency": 3},
        given=(limited,),
        contains={"live_limit": {"max_concurrency": 3, "rate": None, "by": "<actor>", "until": None}},
        reads=_STATUS,
    ),
    Case(
        "limit_queue",
        "to both",
        ("default",),
        {"max_concurrency": 3, "rate": "10/1m"},
        contains={"queue": "default", "live_limit": {"max_concurrency": 3, "rate": "10/1m"}},
        reads=_QUEUES,
    ),
    Case(
        "limit_queue",
        "that nobody names yet",
        ("new",),
        {"max_concurrency": 3, "force": True},
        contains={"queue": "new", "queued": 0},
        reads=_QUEUES,
    ),
    *refusals(
        "limit_job",
        ("of an unknown name", ("craw",), {"max_concurrency": 1}, Refusal("unknown-job", "craw", "'crawl'")),
        ("to nothing", ("crawl",), {"max_concurrency": 0}, Refusal("invalid", "would be a pause", "rota job pause")),
        ("to a wrong rate", ("crawl",), {"rate": "often"}, Refusal("invalid", "often", "100/1m")),
        (
            "for no time",
            ("crawl",),
            {"rate": "5/s", "lasts": "0s"},
            Refusal("invalid", "longer than zero", "leave it out"),
        ),
        (
            "with a long reason",
            ("crawl",),
            {"max_concurrency": 1, "reason": "x" * 1_001},
            Refusal("out-of-range", "reason cannot have 1001 characters", "give at most 1000 characters"),
        ),
        reads=_STATUS,
    ),
    *refusals(
        "limit_queue",
        ("of a wrong name", ("defalt",), {"max_concurrency": 1}, Refusal("unknown-queue", "defalt", "'default'")),
        reads=_QUEUES,
    ),
    Case("job_status", "of a limited job", ("crawl",), given=(limited,), contains={"live_limit": {"by": "ann"}}),
    Case(
        "queues",
        "of which one is limited",
        given=(limited,),
        contains=[{"queue": "default", "live_limit": {"by": "ann"}}],
    ),
    Case("clear_job_limit", "that is there", ("crawl",), given=(limited,), contains=None, reads=_STATUS),
    Case("clear_queue_limit", "that is there", ("default",), given=(limited,), contains=None, reads=_QUEUES),
    Case(
        "clear_job_limit",
        "that is not there",
        ("crawl",),
        refused=Refusal("unknown-limit", "job 'crawl' has no live limit", "rota job ls"),
        reads=_STATUS,
    ),
    Case(
        "clear_queue_limit",
        "that is not there",
        ("default",),
        refused=Refusal("unknown-limit", "queue 'default' has no live limit", "rota queue ls"),
        reads=_QUEUES,
    ),
]
CASES = [
    *_LIVE,
    *_PAUSES,
    *_UNSAID,
    *_UNKNOWN_FIELD,
    *refusals("quotas.update", ("of runs without a scope", ("global",), {"max_queued": 1}, _GLOBAL), reads=_LIST),
    *_UPDATES,
    *_REFUSED_UPDATES,
    Case("quotas.get", "of a kind", ("tenant",), given=(two_quotas,), contains={"max_concurrency": 5}),
    Case("quotas.get", "of a scope", ("tenant", "a/42"), given=(two_quotas,), contains={"max_queued": 7}),
    Case(
        "quotas.get",
        "of a scope that has none of its own",
        ("tenant", "43"),
        given=(two_quotas,),
        refused=Refusal("unknown-quota", "tenant/43", "rota quota ls"),
    ),
    Case("quotas.delete", "of a kind", ("tenant",), given=(two_quotas,), contains=None, reads=_LIST),
    Case("quotas.delete", "of a scope", ("tenant", "a/42"), given=(two_quotas,), contains=None, reads=_LIST),
    Case(
        "quotas.delete",
        "of nobody",
        ("tenant", "43"),
        given=(two_quotas,),
        refused=Refusal("unknown-quota", "tenant/43", "rota quota ls"),
        reads=_LIST,
    ),
    Case("quotas.list", "none", contains=[]),
    Case("quotas.list", "of a kind first", given=(two_quotas,), contains=[{"id": None}, {"id": "a/42"}]),
    Case("quotas.list", "over pages", given=(many_quotas,), contains=[{"max_queued": number} for number in range(5)]),
    Case("quotas.list", "a page", named={}, given=(many_quotas,), contains=[{}, {}, {}, {}, {}]),
]
