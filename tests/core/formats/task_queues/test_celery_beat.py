"""Celery beat: classes as Celery 5 has them, and what django-celery-beat 2.9 dumped."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rota.core.formats.task_queues.celery_beat import beat_tables, read_beat_schedule, read_beat_tables
from rota.core.formats.task_queues.tasks import Tasks, tasks_of
from rota.errors import Invalid

DUMP = Path(__file__).with_name("django_celery_beat.json").read_text()


def crontab(**given: Any) -> Any:
    """Imitate `celery.schedules.crontab`, which keeps what it was given under these names."""
    fields = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
    return SimpleNamespace(**{f"_orig_{field}": given.get(field, "*") for field in fields})


SCHEDULE = {
    "bills": {"task": "shop.bill", "schedule": crontab(hour=7, minute=30, day_of_week="mon-fri"), "args": ["all"],
              "options": {"queue": "mail", "expires": 30, "countdown": 5}},
    "both": {"task": "shop.sync", "schedule": crontab(hour=[7, 8], day_of_month="1-7", day_of_week="monday")},
    "wrap": {"task": "shop.sync", "schedule": crontab(hour="22-3", minute=0, day_of_week="fri-mon")},
    "float": {"task": "shop.sync", "schedule": 30.0},
    "delta": {"task": "shop.sync", "schedule": SimpleNamespace(run_every=timedelta(minutes=5), relative=True)},
    "sun": {"task": "shop.sync", "schedule": SimpleNamespace(event="sunset", lat=1, lon=2)},
    "object": {"task": "shop.sync", "schedule": 30.0, "kwargs": {"x": {1, 2}}},
    "other": {"task": "shop.other.sync", "schedule": 30.0},
    "braces": {"task": "shop.sync", "schedule": 30.0, "kwargs": {"at": "{plan_time}"}},
    "odd": "what",
}  # fmt: skip


def test_a_beat_schedule() -> None:
    found = read_beat_schedule(SCHEDULE, Tasks(known={"shop.bill": ["who"]}.get), "Europe/Berlin")
    documents = {one["name"]: one for one in found.documents}
    assert documents["bills"] == {
        "name": "bills", "job": "bill", "payload": {"who": "all"}, "cron": "30 7 * * mon-fri", "queue": "mail",
        "timezone": "Europe/Berlin", "delay": "5s",
    }  # fmt: skip
    assert documents["both"]["cron"] == "* 7,8 1-7 * +mon"
    assert documents["wrap"]["cron"] == "0 22-23,0-3 * * 5-6,0-1"
    assert (documents["float"]["every"], documents["delta"]["every"]) == ("30s", "5m")
    whys = {one.text: one.why for one in found.unconverted}
    assert list(whys) == ["sun", "object", "other", "braces", "odd"]
    assert "follows the sun" in whys["sun"]
    assert "'x' is a set" in whys["object"]
    assert "as that of shop.sync: give --task shop.other.sync=NAME" in whys["other"]
    assert found.remarks[0] == "intervals count from 1970 in UTC, not from when beat started"
    assert [remark.partition(" ")[0] for remark in found.remarks[1:]] == ["bills:", "delta:"]


def test_a_dump_of_the_tables() -> None:
    found = read_beat_tables(beat_tables(DUMP), Tasks(tasks_of(["shop.bill=bill(who)"])))
    documents = {one["name"]: one for one in found.documents}
    assert documents["bills"] == {
        "name": "bills", "job": "bill", "payload": {"who": "all"}, "cron": "30 7 * * mon-fri",
        "timezone": "Europe/Berlin", "queue": "mail", "priority": 5, "description": "d",
    }  # fmt: skip
    assert documents["posit"]["payload"] == {"who": "ada"}
    assert (documents["sync"]["enabled"], documents["once"]["once"]) == (False, "2030-01-01T00:00:00Z")
    assert documents["exp"]["start_at"] == "2030-01-01T00:00:00Z"
    assert [(one.text, "sun" in one.why) for one in found.unconverted] == [("sun", True)]


@pytest.mark.parametrize("text", ["{", "5", '[{"model": "x"}]', '{"a": 1}'])
def test_what_is_no_dump(text: str) -> None:
    with pytest.raises(Invalid, match="no dump"):
        beat_tables(text)


@pytest.mark.parametrize("text", ["bill", "shop.bill=", "a=b(c", "=x"])
def test_a_task_that_is_misspelled(text: str) -> None:
    with pytest.raises(Invalid, match="--task cannot be"):
        tasks_of([text])
