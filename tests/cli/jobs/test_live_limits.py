"""`rota job limit` and `rota queue limit`: what is typed, and what people read. Also how a queue is paused."""

import asyncio

import pytest

from rota.cli.verbs import looks
from tests.cli.jobs.test_jobs import introduce
from tests.support.processes.command_line import answer, rota


@pytest.fixture(autouse=True)
def known(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))


def test_a_job_is_limited_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rota("job", "limit", "greet", "5/s", "3", "--for", "2h", "--reason", "an outage").stdout == "greet\n"
    shown = dict(line.split("\t")[:2] for line in rota("job", "get", "greet").stdout.splitlines())
    assert shown["live_limit"] == "3 at once and 5/1s"
    assert shown["limit_reason"] == "an outage"
    assert shown["limited_until"] > shown["limited_since"]
    monkeypatch.setattr(looks, "on_terminal", lambda: True)
    assert rota("job", "limit", "greet", "7").stdout == "greet is limited to 7 at once\n"
    assert rota("job", "limit", "greet", "--clear").stdout == "the live limit of greet is cleared\n"
    again = rota("job", "limit", "greet", "--clear")
    assert again.exit_code == 4
    assert "job 'greet' has no live limit" in again.stderr


def test_a_queue_is_limited_and_let_go() -> None:
    assert answer("queue", "limit", "default", "10/1m")["live_limit"]["rate"] == "10/1m"
    assert rota("queue", "ls").stdout == "default\t0\t0\t0\tno\t\t10/1m\n"
    assert answer("queue", "limit", "default", "--clear")["live_limit"] is None
    assert rota("queue", "ls").stdout == "default\t0\t0\t0\tno\t\t\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "give a limit, or --clear"),
        (("5/s", "--clear"), "give a limit, or --clear"),
        (("5", "6"), "two limits of one kind"),
        (("0",), "would be a pause"),
        (("soon",), "rate cannot be 'soon'"),
    ],
)
def test_what_cannot_be_a_limit_is_refused(words: tuple[str, ...], complaint: str) -> None:
    refused = rota("job", "limit", "greet", *words)
    assert refused.exit_code != 0
    assert complaint in refused.stderr


def test_a_queue_that_nobody_knows_is_paused_and_limited_only_by_force(monkeypatch: pytest.MonkeyPatch) -> None:
    for verb in (("pause",), ("limit", "3")):
        refused = rota("queue", verb[0], "defualt", *verb[1:])
        assert refused.exit_code == 4
        assert "did you mean 'default'?" in refused.stderr
    assert rota("queue", "ls").stdout.split("\t")[0] == "default"
    assert rota("queue", "limit", "never", "3", "--force").stdout == "never\n"
    assert rota("queue", "limit", "never", "--clear").stdout == "never\n"
    assert rota("queue", "pause", "later", "--force").stdout == "later\n"
    monkeypatch.setattr(looks, "on_terminal", lambda: True)
    assert rota("queue", "pause", "default", "--reason", "a rest").stdout == "queue default is paused\n"
    assert rota("queue", "resume", "default").stdout == "queue default is resumed\n"
    assert rota("queue", "resume", "default").stdout == "queue default was not paused\n"
