"""APScheduler's job store: pickles that APScheduler 3.11 wrote, and those that somebody made to do harm."""

import base64
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rota.core.formats.imported import Imported
from rota.core.formats.task_queues.apscheduler import read_job_store
from rota.core.formats.task_queues.restricted_pickle import read_pickle
from rota.core.formats.task_queues.tasks import Tasks, tasks_of

STORED = json.loads(Path(__file__).with_name("apscheduler_jobs.json").read_text())
ROWS = [{**row, "job_state": base64.b64decode(row["job_state"])} for row in STORED]


@pytest.fixture(scope="module")
def imported() -> Imported:
    return read_job_store(ROWS, Tasks(tasks_of(["crawling:crawl=fetch(url, depth)"])))


def test_triggers_that_a_schedule_has(imported: Imported) -> None:
    keys = ("cron", "every", "once", "either", "timezone", "anchor")
    rules = {one["name"]: {key: one[key] for key in keys if key in one} for one in imported.documents}
    berlin = {"timezone": "Europe/Berlin"}
    assert rules == {
        "both": {"cron": "0 1 13 * +FRI", **berlin},
        "cal": {"cron": "0 3 19 * *"},
        "month": {"cron": "0 3 L * *", **berlin},
        "morning": {"cron": "0 9 * * MON,TUE,WED,THU,FRI"},
        "news": {"every": "30m", "anchor": "2026-01-01T09:20:00Z"},
        "once": {"once": "2030-01-01T00:00:00Z"},
        "or": {"either": [{"cron": "0 1 * * *"}, {"cron": "3 5 * * *"}]},
        "paused": {"every": "1m30s", "anchor": rules["paused"]["anchor"]},
        "pos": {"cron": "0 8-10/2 * * FRI#2,SUN#L", **berlin},
        "wrap": {"cron": "0 0 * 1-3 SAT,MON,TUE", **berlin},
    }


def test_policies_and_arguments(imported: Imported) -> None:
    documents = {one["name"]: one for one in imported.documents}
    morning, paused, month = documents["morning"], documents["paused"], documents["month"]
    assert (morning["job"], morning["payload"]) == ("fetch", {"url": "https://example.org"})
    assert morning["overlap"] == {"mode": "parallel", "max_overlap": 3}
    assert morning["catch_up"] == {"mode": "latest", "window": "1m"}
    assert (paused["enabled"], "catch_up" in paused, month["jitter"]) == (False, False, "2m")
    assert imported.remarks == (
        "month: jitter makes runs later only; there it made them earlier, too",
        "paused: is paused there, and disabled here",
    )


def test_what_it_cannot_take_and_why(imported: Imported) -> None:
    assert {one.text: one.why.partition(":")[0] for one in imported.unconverted} == {
        "and": "its AndTrigger has no counterpart",
        "obj": "its state has a crawling.Thing, which is not read",
        "week": "it names weeks of the year (3), which cron expressions cannot",
    }
    (alone,) = read_job_store([row for row in ROWS if row["id"] == "morning"], Tasks()).unconverted
    assert alone.why.endswith("give --task 'crawling:crawl=crawl(a)'")


class Harm:
    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._reduced = call, arguments

    def __reduce__(self) -> Any:
        return self._reduced


def deep() -> dict[str, Any]:
    shared: list[Any] = []
    for _ in range(60):
        shared = [shared, shared]
    return {"func": "m:f", "kwargs": {"x": shared}, "trigger": None}


def endless() -> dict[str, Any]:
    itself: list[Any] = []
    itself.append(itself)
    return {"func": "m:f", "kwargs": {"x": itself}, "trigger": None}


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (pickle.dumps(endless()), "nested too deeply"),
        (pickle.dumps(Harm(os.system, "touch harmed")), "which is not read: a pickle can run anything"),
        (pickle.dumps(Harm(eval, "open('harmed', 'w')")), "builtins.eval, which is not read"),
        (b"cbuiltins\ngetattr\n(cdatetime\ndatetime\nVnow\ntR.",
         "asks for the attribute 'now'"),
        (b"czoneinfo\nZoneInfo\n(V../../etc/passwd\ntR.", "a zone in a way that is not read"),
        (b"cpytz\n_p\n(N}V__defaults__\n(VEurope/Berlin\ntstb.", "changes a function"),
        (b"czoneinfo\nZoneInfo\n(N}V__init__\nNstb.", "changes a function"),
        (b"Nr\xff\xff\xff\x0f.", "a place beyond its end"),
        (pickle.dumps(deep()), "has too many values"),
        (b"\x80\x05broken", "no pickle that can be read"),
        (pickle.dumps([1]), "its state is a list"),
        (pickle.dumps({"func": "m:f", "trigger": None}), "its trigger is a NoneType"),
        (pickle.dumps("x" * 1_000_001), "more than 1000000 bytes"),
    ],
)  # fmt: skip
def test_a_harmful_state_is_refused_and_does_nothing(
    state: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = read_job_store([{"id": "harm", "job_state": state}], Tasks())
    assert not found.documents
    assert why in found.unconverted[0].why
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_does_not_change_how_the_next_one_is_read() -> None:
    harm = b"cpytz\n_p\n(N}V__defaults__\n(VEurope/Berlin\ntstb."
    assert not read_job_store([{"id": "harm", "job_state": harm}], Tasks()).documents
    assert str(read_pickle(b"cpytz\n_UTC\n(tR.", {})) == "UTC"
