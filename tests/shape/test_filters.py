"""Every filter is there everywhere, under the same name: REST, bulk commands, exports, the command line, over HTTP."""

from datetime import UTC, datetime
from typing import Any

import click
import msgspec
import pytest

from rota.api.docs.openapi import described
from rota.api.operations.run_filter import RunQuery
from rota.api.runs.bulk import RunsBulkBody
from rota.app import Rota
from rota.cli.runs.run_control import cancel, count, retry
from rota.cli.runs.runs import run
from rota.cli.verbs.run_filter import filter_of as filter_of_options
from rota.core.runs.run import RunFilter
from rota.core.states import RunState
from rota.server import asgi
from rota.values.scope import Scope
from rota.verbs.spread import dotted, spread
from tests.support.documents.pages import ROOT

list_runs = run.commands["list"]
NAMED: dict[str, str] = {"states": "state"}
SAMPLES: dict[str, Any] = {
    "states": (RunState.FAILED,),
    "scope": Scope("account", "42"),
    "created_after": datetime(2026, 1, 31, tzinfo=UTC),
    "created_before": datetime(2026, 1, 31, tzinfo=UTC),
    "retried": False,
    "payload": {"url": "https://example.com", "a.b": "5"},
}
LISTS = ["/api/v1/runs", "/api/v1/runs:count", "/api/v1/jobs/{name}/runs", "/api/v1/export/runs"]
FIELDS = RunFilter.__struct_fields__


def external(name: str) -> str:
    return NAMED.get(name, name)


def sample(name: str) -> RunFilter:
    return RunFilter(**{name: SAMPLES.get(name, "one")})


def test_the_words_of_the_issue_are_all_there() -> None:
    asked = {"states", "job", "schedule", "queue", "scope", "key", "tag", "worker", "error", "payload", "fingerprint"}
    assert asked | {"created_after", "created_before"} <= set(FIELDS)


def test_rest_has_no_others() -> None:
    assert set(RunQuery.__struct_encode_fields__) == {external(name) for name in FIELDS}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return described(asgi(Rota("sqlite:///none.db")).routes)


@pytest.mark.parametrize("name", FIELDS)
def test_it_is_a_parameter_of_every_list(name: str, document: dict[str, Any]) -> None:
    wanted = "payload.{path}" if name == "payload" else external(name)
    for path in LISTS:
        assert wanted in [one["name"] for one in document["paths"][path]["get"]["parameters"]], path


@pytest.mark.parametrize("name", FIELDS)
def test_it_is_a_field_of_bulk_commands(name: str) -> None:
    body = msgspec.json.encode({"action": "retry", "filter": spread(sample(name))})
    assert getattr(msgspec.json.decode(body, type=RunsBulkBody).filter, name) != getattr(RunQuery(), name)


@pytest.mark.parametrize("name", FIELDS)
def test_it_is_asked_for_over_http(name: str) -> None:
    given = dotted(spread(sample(name)))
    assert [one for one in given if one.partition(".")[0] == external(name)]
    assert all(isinstance(value, str | bool | datetime | list) for value in given.values())


@pytest.mark.parametrize("command", [list_runs, count, cancel, retry], ids=lambda command: command.name)
@pytest.mark.parametrize("name", FIELDS)
def test_it_is_an_option(command: click.Command, name: str) -> None:
    options = {one.name: one.opts for one in command.params}
    assert f"--{external(name).replace('_', '-')}" in options[name]


def test_options_become_filters() -> None:
    words = ["--state", "failed", "--payload", "url=https://x/?a=b", "--payload", "a.b=5", "--fingerprint", "5be1"]
    context = list_runs.make_context("list_runs", words)
    given = {name: context.params[name] for name in FIELDS}
    wanted = {"url": "https://x/?a=b", "a.b": "5"}
    assert filter_of_options(given) == RunFilter(states=(RunState.FAILED,), payload=wanted, fingerprint="5be1")


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("page", ["rest.md", "cli.md", "python.md"])
def test_it_is_documented(name: str, page: str) -> None:
    word = {"cli.md": f"`--{external(name).replace('_', '-')}", "python.md": f"`{name}`"}.get(
        page, f"`{external(name)}"
    )
    assert word in (ROOT / "docs" / page).read_text(encoding="utf-8")
