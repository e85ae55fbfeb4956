"""The documentation is true: its tables leave nothing out, its links lead somewhere. Snippets: test_snippets.py."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from rota import Attempt, BlockingClient, Client, Context, Enqueued, Job, Run, RunFilter, Schedule, SyncContext
from rota.api.operations.enqueue_body import RunBody
from rota.api.operations.request import LARGEST_BODY
from rota.cli import root
from rota.client.access.tokens import TokensClient
from rota.client.alerts.expectations import ExpectationsClient
from rota.client.alerts.notifications import NotificationsClient
from rota.client.blocking_parts import (
    BlockingDataJobs,
    BlockingExpectations,
    BlockingExternal,
    BlockingMonitoring,
    BlockingNotifications,
    BlockingSchedules,
    BlockingWorkers,
)
from rota.client.client import MOST_LISTED
from rota.client.external.external import ExternalClient
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.jobs.jobs import JobVerbs
from rota.client.monitoring.monitoring import MonitoringClient
from rota.client.runs.assignment import AssignmentVerbs
from rota.client.schedules.control import ControlVerbs
from rota.client.schedules.history import HistoryVerbs
from rota.client.schedules.schedules import SchedulesClient
from rota.client.schedules.simulate import SimulateVerbs
from rota.client.workers.workers import WorkersClient
from rota.config import load_config
from rota.core.access.roles import Role, Token
from rota.core.alerts.expectations import EXPECTED, OPTIONS, Breached, Expected
from rota.core.alerts.notifications import ON
from rota.core.alerts.notifications import OPTIONS as NOTIFICATION_OPTIONS
from rota.core.external.external import Assignment, Heartbeat
from rota.core.jobs.http import HTTP_OPTIONS
from rota.core.jobs.job import JobKind
from rota.core.limits.limits import WHEN_FULL
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.charts import Bucket
from rota.core.monitoring.overview import NextRun, Overview
from rota.core.monitoring.timeline import Lane, TimelineAttempt
from rota.core.progress.notes import LogLine, Progress
from rota.core.progress.steps import Step
from rota.core.runs.options import RUN_OPTIONS
from rota.core.schedules.diff import read_file
from rota.core.schedules.documents import parse
from rota.core.schedules.policies import CATCH_UP, FAILURE, OVERLAP
from rota.core.schedules.recent_runs import Recent, RecentRun
from rota.core.schedules.schedule import SCHEDULE_OPTIONS
from rota.core.states import Outcome
from rota.core.workers.worker import Worker, WorkerState
from rota.engine.handlers.context import RunContext
from rota.registry.data_jobs import kind_options
from rota.registry.jobs import FunctionOptions
from tests.support.documents.pages import ROOT, pages

TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"`([a-z_]+)`")


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text()


def named_in_first_column(page: str, heading: str) -> set[str]:
    text = text_of(page).partition(f"{heading}\n")[2]
    rows = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    return {name for row in rows for name in CELL.findall(row.split("|")[1])}


def test_every_option_of_a_job_is_documented() -> None:
    assert named_in_first_column("jobs.md", "## Options of a job") == set(FunctionOptions.__annotations__)


def test_every_option_of_a_run_is_documented() -> None:
    assert named_in_first_column("jobs.md", "## Options of a run") == set(RUN_OPTIONS)


def test_every_option_of_a_schedule_is_documented() -> None:
    assert named_in_first_column("schedules.md", "## Options of a schedule") == set(SCHEDULE_OPTIONS)


def test_the_sample_file_of_schedules_is_accepted() -> None:
    (sample,) = TOML.findall(text_of("schedules.md"))
    file = read_file(sample)
    assert file.owner == "team-a"
    assert [parse(document).name for document in file.documents] == ["news", "report"]


def test_every_policy_is_documented() -> None:
    for heading, name, modes in (
        ("## Late", "catch_up", CATCH_UP),
        ("## Overlap", "overlap", OVERLAP),
        ("## Failure", "failure", FAILURE),
    ):
        assert named_in_first_column("schedules.md", heading) == {name, *modes}
    assert unnamed("schedules.md", (f"`{word}`" for word in WHEN_FULL)) == []


def test_what_a_handler_may_say_is_documented() -> None:
    offered = {*public(RunContext), *public(Context)}
    assert unnamed("jobs.md", offered) == []
    assert set(public(Context)) == set(public(SyncContext))
    for kind in (Step, Progress, LogLine):
        assert unnamed("python.md", (f"`{name}`" for name in kind.__struct_fields__)) == []
    assert unnamed("rest.md", (f"`{name}`" for name in {*Progress.__struct_fields__, *Step.__struct_fields__})) == []


def unnamed(page: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in text_of(page)]


def public(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


def test_everything_a_request_may_say_is_documented() -> None:
    assert named_in_first_column("rest.md", "## Enqueue") == set(RunBody.__struct_fields__)
    filters = {name.removesuffix("s") for name in RunFilter.__struct_fields__}
    assert named_in_first_column("rest.md", "## List") == {*filters, "limit", "cursor"}
    assert unnamed("rest.md", [f"{LARGEST_BODY:,}".replace(",", " "), f"1 to {MOST_LISTED};"]) == []


def test_everything_an_answer_says_is_documented() -> None:
    assert named_in_first_column("rest.md", "## A run") == set(Run.__struct_fields__)
    assert named_in_first_column("rest.md", "## An attempt") == set(Attempt.__struct_fields__)
    assert unnamed("rest.md", (f"`{outcome.value}`" for outcome in Outcome)) == []


def commands_below(group: click.Group, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands_below(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def test_every_command_is_documented() -> None:
    documented = re.findall(r"^\| `(rota .*?)` \|", text_of("cli.md"), re.MULTILINE)
    assert sorted(documented) == sorted(commands_below(root, "rota"))


def test_every_verb_is_documented() -> None:
    assert (
        unnamed(
            "python.md",
            (
                f"`{verb}("
                for verb in {*public(Client), *public(JobVerbs), *public(AssignmentVerbs), *public(BlockingClient)}
            ),
        )
        == []
    )
    assert (
        unnamed(
            "python.md",
            (f"`{verb}(" for verb in {*public(BlockingSchedules), "define"}),
        )
        == []
    )
    assert unnamed("python.md", (f"`{name}`" for name in (*Schedule.__struct_fields__, "state"))) == []
    assert unnamed("python.md", (f"`{verb}(" for verb in (*public(WorkersClient), *public(NotificationsClient)))) == []
    assert unnamed("python.md", (f"`{name}`" for name in Worker.__struct_fields__)) == []
    assert unnamed("cli.md", (f"`{state.value}`" for state in WorkerState)) == []
    assert unnamed("python.md", (f"`{verb}(" for verb in public(TokensClient))) == []
    assert unnamed("python.md", (f"`{name}`" for name in Token.__struct_fields__)) == []
    assert unnamed("access.md", (f"`{role.value}`" for role in Role)) == []
    assert unnamed("python.md", (f".{name}(" for name in public(Job))) == []
    assert unnamed("python.md", (f"`{name}`" for name in ("id", "created", "created_at", "run_at"))) == []
    assert {"id", "created", "created_at", "run_at"} <= set(dir(Enqueued))


def test_both_clients_have_the_same_verbs_for_schedules() -> None:
    kinds = (SchedulesClient, HistoryVerbs, ControlVerbs, SimulateVerbs)
    assert {name for kind in kinds for name in public(kind)} == set(public(BlockingSchedules))


def test_both_clients_have_the_same_verbs_for_workers() -> None:
    assert set(public(WorkersClient)) == set(public(BlockingWorkers))


def test_what_those_outside_may_say_is_documented() -> None:
    assert unnamed("external.md", (f"`{verb}(" for verb in public(ExternalClient))) == []
    assert (
        unnamed("external.md", (f"`{name}`" for kind in (Assignment, Heartbeat) for name in kind.__struct_fields__))
        == []
    )
    assert set(public(ExternalClient)) == set(public(BlockingExternal))


def test_everything_that_can_be_expected_is_documented() -> None:
    assert named_in_first_column("expectations.md", "# Expectations") == set(EXPECTED)
    assert unnamed("expectations.md", (f"`{name}`" for name in OPTIONS)) == []
    assert set(public(ExpectationsClient)) == set(public(BlockingExpectations))
    assert unnamed("python.md", (f"`{verb}(" for verb in public(ExpectationsClient))) == []
    assert unnamed("python.md", (f"`{name}`" for name in Expected.__struct_fields__)) == []
    assert unnamed("python.md", (f"`{name}`" for name in Breached.__struct_fields__)) == []


def test_both_clients_have_the_same_verbs_for_notifications() -> None:
    assert set(public(NotificationsClient)) == set(public(BlockingNotifications))


def test_every_option_of_a_notification_is_documented() -> None:
    documented = named_in_first_column("notifications.md", "## Options of a notification")
    assert documented == {"on", *NOTIFICATION_OPTIONS, *ON}


def test_jobs_that_are_data_are_documented() -> None:
    page = "http-and-commands.md"
    codes = {"http_status", "connection_failed", "timed_out", "address_refused"}
    codes |= {"bad_request", "bad_redirect", "too_many_redirects"}
    assert named_in_first_column(page, "## HTTP jobs") == {*HTTP_OPTIONS, *codes}
    assert named_in_first_column(page, "## Command jobs") == set(kind_options(JobKind.COMMAND))
    assert unnamed("python.md", (f"`{verb}(" for verb in public(DataJobsClient))) == []
    assert set(public(DataJobsClient)) == set(public(BlockingDataJobs))


def test_what_people_look_at_is_documented() -> None:
    assert set(public(MonitoringClient)) == set(public(BlockingMonitoring))
    assert unnamed("python.md", (f"`{verb}(" for verb in public(MonitoringClient))) == []
    for kind in (Overview, Attention, NextRun, Recent, RecentRun, Bucket, Lane, TimelineAttempt):
        assert unnamed("rest.md", (f'"{name}"' for name in kind.__struct_fields__)) == []


def test_the_sample_configuration_is_accepted(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    file = tmp_path / "rota.toml"
    for sample in TOML.findall(text):
        file.write_text(sample)
        config = load_config(environment={}, file=file)
        assert config.database_url == tomllib.loads(sample)["database_url"]


@pytest.mark.parametrize(
    "page", [*pages(), ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_check_of_the_doctor_is_in_the_table() -> None:
    table = (
        (ROOT / "docs" / "cli.md")
        .read_text(encoding="utf-8")
        .partition("What `rota doctor` checks")[2]
        .partition("\n## ")[0]
    )
    described = {
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("doctor*.py")]
    checks = {name for text in sources for name in re.findall(r"(?:Check\(\s*name=|_orphans\()\"(\w+)\"", text)}
    assert len(checks) > 20
    assert described == checks
