"""The page that translates terms of other schedulers: rota knows every word that it recommends, and reads theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rota
from rota.api.docs.openapi import described
from rota.api.docs.page import page_of
from rota.client.client import Client
from rota.config import Config
from rota.core.jobs.command import CommandLine
from rota.core.jobs.http import HttpRequest
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import JobState
from rota.core.limits.limits import Limit, WhenFull
from rota.core.progress.steps import StepDefinition
from rota.core.runs.options import RunOptions
from rota.core.runs.outcome import OnLost
from rota.core.runs.run import Run
from rota.core.schedules.documents import KEYS, OTHER_KEYS, parse
from rota.core.schedules.policies import CatchUp, CatchUpMode, FailureMode, OverlapMode
from rota.core.schedules.schedule import Schedule
from rota.core.schedules.vocabulary import translated
from rota.core.states import RunState
from rota.core.workers.replicas import Replicas
from rota.engine.handlers.context import Context
from rota.engine.observability.meters import Meters
from rota.registry.jobs import JOB_OPTIONS, SharedOptions
from tests.support.processes.command_line import rota as command

PAGE = Path(__file__).parents[2] / "docs" / "coming-from" / "vocabularies.md"
TABLES = PAGE.read_text(encoding="utf-8").partition("## All of these in Python")[0]
VALUES = {"rows", "items_crawled", "target", "account", "accounts", "gpu"}
"""Values of the examples, which are nobody's words."""


def known() -> set[str]:
    """Return every word of rota that the page may recommend, taken from the program."""
    structs = (CatchUp, Replicas, Limit, Run, Schedule, JobDefinition, HttpRequest, CommandLine, Config, StepDefinition)
    words = {field for struct in structs for field in struct.__struct_fields__}
    words |= {*JOB_OPTIONS, *SharedOptions.__annotations__, *RunOptions.__annotations__, *KEYS, *OTHER_KEYS}
    for modes in (CatchUpMode, OverlapMode, FailureMode, WhenFull, OnLost, RunState, JobState):
        words |= {mode.value for mode in modes}
    words |= {
        *dir(Context),
        *dir(Client),
        *dir(rota.Rota),
        *rota.__all__,
        "app",
        "ctx",
        "rota",
        "clear",
        "stale_timeout",
        "rota_",
    }
    return words


def rows() -> Iterator[tuple[str, str]]:
    for line in TABLES.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 2 and cells[0] not in ("you say", "---|---"):
            yield cells[0], cells[1]


ROWS = list(rows())


def test_the_page_has_its_tables() -> None:
    assert len(ROWS) > 60


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_rota_knows_each_word_that_the_page_recommends(row: tuple[str, str]) -> None:
    words: set[str] = set()
    for code in re.findall(r"`([^`]+)`", row[1]):
        if not code.startswith(("/", "GET", "POST", "PUT", "PATCH", "DELETE", "rota ", "LISTEN", "NOTIFY")):
            words |= set(re.findall(r"[A-Za-z_]{3,}", re.sub(r"\{[a-z_.]+\}", "", code)))
    assert words - known() - VALUES == set()


@pytest.mark.parametrize("code", sorted(set(re.findall(r"`(rota [a-z ]+)[^`]*`", TABLES))))
def test_each_command_exists(code: str) -> None:
    assert command(*code.split()[1:3], "--help").exit_code == 0


def test_readers_of_every_door_find_the_page() -> None:
    docs = PAGE.parents[1]
    for page in ("rest.md", "cli.md"):
        assert "(coming-from/vocabularies.md)" in (docs / page).read_text(encoding="utf-8")
    assert "vocabularies.md" in command("--help").stdout
    assert "vocabularies.md" in command("schedule", "apply", "--help").stdout
    assert "vocabularies.md" in page_of(described([]))


def test_each_metric_exists_with_the_prefix_of_rota() -> None:
    """Also those that the page of metrics names."""
    named = set(re.findall(r"`([a-z_]+_total)`", TABLES))
    other = (PAGE.parents[1] / "metrics.md").read_text(encoding="utf-8")
    text = Meters().text(None)
    assert named
    for name in {f"rota_{name.removeprefix('rota_')}" for name in named} | set(re.findall(r"rota_[a-z_]+", other)):
        assert re.search(rf"^# TYPE {name} ", text, re.MULTILINE), name


@pytest.mark.parametrize(
    ("theirs", "own"),
    [
        ({"misfire_policy": "FIRE_NOW"}, {"catch_up": "all"}),
        ({"misfire_policy": "SKIP"}, {"catch_up": "none"}),
        ({"misfire_policy": "CATCH_UP_LIMITED", "catchup_limit": 3}, {"catch_up": {"mode": "all", "keep": 3}}),
        ({"overlap_action": "ALLOW"}, {"overlap": "allow"}),
        ({"overlap_action": "SKIP"}, {"overlap": "skip"}),
        ({"overlap_action": "CANCEL_PREV"}, {"overlap": "cancel_previous"}),
        ({"overlap_action": "PARALLEL"}, {"overlap": "parallel"}),
        ({"failure_action": "RUN_NEW"}, {"failure": "run_new"}),
        ({"failure_action": "SKIP"}, {"failure": "skip"}),
        ({"failure_action": "RETRY"}, {"failure": "retry"}),
        ({"concurrency_policy": "SKIP"}, {"when_full": "skip"}),
        ({"concurrency_policy": "QUEUE"}, {"when_full": "queue"}),
        ({"timeout_seconds": 8}, {"timeout": "8s"}),
    ],
)
def test_their_word_is_what_the_page_says(theirs: dict[str, Any], own: dict[str, Any]) -> None:
    assert translated(theirs) == own
    ((name, value),) = own.items()
    (said,) = [row[1] for row in ROWS if all(f"`{word}`" in row[0] or word in row[0] for word in theirs)]
    assert f"`{name}`" in said
    if isinstance(value, str) and value != "8s":
        assert f'"{value}"' in said
    document = {"name": "s", "job": "j", "max_concurrency": 1, "every": "5m", **theirs}
    assert msgspec.json.encode(parse(document).options)
