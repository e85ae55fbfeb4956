"""Cases of the overview, charts and the timeline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.conformance.case import PYTHON, Case, Refusal, refusals
from tests.conformance.world import World
from tests.support.runs.runs import claim, finish, put

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


CASES = [
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
        ("of none", (), {"limit": 0}, Refusal("invalid", "limit", shape=True)),
    ),
    *(
        Case(verb, "a time without a zone", (_AT.replace(tzinfo=None),), refused=_NAIVE, only=PYTHON)
        for verb in ("monitoring.series", "monitoring.timeline")
    ),
]
