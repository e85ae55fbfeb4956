"""Jobs of rq-scheduler: its expressions fire when they did there, and what Redis holds is read without harm."""

import json
import pickle
import random
import zlib
from datetime import UTC, datetime
from typing import Any

import pytest
from crontab import CronTab

from rota.core.calendar.rules import Rule, compiled
from rota.core.calendar.triggers import cron
from rota.core.formats.imported import Imported
from rota.core.formats.task_queues.rq_hashes import RqHash
from rota.core.formats.task_queues.rq_jobs import read_rq_jobs
from rota.core.formats.task_queues.tasks import Tasks
from rota.values.instants import instant, micros_at
from tests.support.forms import with_long_form

AT = datetime(2026, 2, 27, 13, 31, 7, tzinfo=UTC)


def stored(data: bytes, at: float = 0.0, **fields: bytes) -> RqHash:
    return RqHash("one", at, {b"data": data, **{key.encode(): value for key, value in fields.items()}})


def imported(*jobs: object, zone: str | None = None) -> Imported:
    return read_rq_jobs(jobs, Tasks(), zone)


def call(*args: Any, **kwargs: Any) -> bytes:
    return zlib.compress(pickle.dumps(("shop.bill", None, args, kwargs)))


def written_field(draw: random.Random, low: int, high: int, names: tuple[str, ...] = ()) -> str:
    first = draw.randint(low, high)
    last = draw.randint(min(first + 1, high), high)  # there, sun-sun is each day of the week
    several = f"{first}-{last}" if first < last else "*"
    name = names[first - low] if names else str(last)
    step = f"*/{draw.randint(1, 6)}"
    return draw.choice(["*", "*", "*", step, several, name, str(first), f"{first},{last}", f"{low}-{high}/2"])


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@pytest.mark.parametrize("seed", with_long_form(range(5), range(5, 100)))
def test_expressions_fire_when_they_do_there(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        fields = [
            written_field(draw, 0, 59), written_field(draw, 0, 23), written_field(draw, 1, 28),
            written_field(draw, 1, 12, MONTHS), written_field(draw, 0, 6, DAYS),
        ]  # fmt: skip
        extra = draw.choice([0, 0, 0, 1, 2])
        text = " ".join([*(["7"] if extra == 2 else []), *fields, *(["2026-2028"] if extra else [])])
        theirs = CronTab(text)
        found = imported({"id": "c", "func_name": "f", "meta": {"cron_string": text}})
        if not found.documents:
            assert theirs.next(now=AT, return_datetime=True) is None  # it never fires
            continue
        (document,) = found.documents
        times, at = compiled(Rule(cron(document["cron"], "UTC")), ""), AT
        for _ in range(3):
            expected = theirs.next(now=at, return_datetime=True)
            plan = times.next(micros_at(at))
            assert (None if plan is None else instant(plan)) == expected, (text, document["cron"])
            if expected is None:
                break
            at = expected


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (stored(b""), "its job is no longer in Redis"),
        (stored(b"x"), "neither a pickle nor JSON"),
        (stored(b"[1]"), "its data are a list, and no call"),
        (stored(b'["a.b", {"x": 1}, [], {}]'), "it calls a method of an object"),
        (stored(zlib.compress(b"\x80" * 5_000_000)), "its data have more than 1000000 bytes"),
        (stored(call(), meta=b"\x80\x05broken"), "no pickle that can be read"),
        (stored(call(), meta=pickle.dumps([1])), "its meta is no table"),
        (stored(call(), timeout=b"x"), "invalid literal"),
        (stored(call(), at=1e300), "it is not understood"),
        (stored(call(), at=1e17), "it is not understood"),
        (stored(call(), dependency_ids=b'["a"]'), "it waits for other jobs"),
    ],
)
def test_what_redis_may_hold(job: RqHash, why: str) -> None:
    (unconverted,) = imported(job).unconverted
    assert why in unconverted.why


def test_serializers_of_rq() -> None:
    data = zlib.compress(json.dumps(["shop.bill", None, [], {"who": "ada"}]).encode())
    for one in (stored(data, 60.0, meta=b'{"interval": 90}'), stored(call(who="ada"), 60.0, meta=b'{"interval": 90}')):
        assert imported(one).documents[0]["payload"] == {"who": "ada"}
    (plain,) = imported(stored(pickle.dumps(("shop.bill", None, (), {})), 60.0)).documents  # not compressed
    assert plain == {"name": "one", "job": "bill", "once": "1970-01-01T00:01:00Z"}


def test_times_that_show_the_zone() -> None:
    nine = {"id": "r", "func_name": "f", "meta": {"cron_string": "0 9 * * 1-5"}}
    assert imported({**nine, "scheduled_at": "2026-01-02T09:00:00Z"}).documents[0]["cron"] == "0 9 * * 1-5"
    (refused,) = imported({**nine, "scheduled_at": "2026-01-02T08:00:00Z"}).unconverted
    assert refused.why.endswith("does not fire in UTC: name the zone of its machine with --tz")
    in_berlin = imported({**nine, "scheduled_at": "2026-01-02T08:00:00Z"}, zone="Europe/Berlin")
    assert (in_berlin.documents[0]["timezone"], in_berlin.remarks) == ("Europe/Berlin", ())
    assert (
        "compare the times" in imported({**nine, "scheduled_at": "2026-01-02T09:00:00Z"}, zone="Asia/Tokyo").remarks[0]
    )
    every = {"id": "d", "func_name": "f", "meta": {"cron_string": "@daily", "repeat": 0}}
    assert imported({**every, "scheduled_at": "2026-01-02T00:00:00Z"}).documents == (
        {"name": "d", "job": "f", "cron": "@daily", "max_runs": 1},
    )
