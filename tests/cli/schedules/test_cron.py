"""`rota cron`, which needs no database: exactly this JSON, a table for people, errors that name the field."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rota.cli import root


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")


def cron(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["cron", *arguments])


def answer(*arguments: str) -> Any:
    done = cron(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_document_is_exactly_this() -> None:
    assert answer("30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-26T12:00:00Z", "-n", "3") == {
        "expression": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "description": "every day at 02:30, Europe/Berlin",
        "fires": ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"],
    }


def test_in_a_pipe_local_time_utc_and_marks() -> None:
    lines = cron(
        "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-27T12:00:00Z", "-n", "2"
    ).stdout.splitlines()
    assert [line.split("\t") for line in lines] == [
        ["2027-03-28T03:00:00+02:00", "2027-03-28T01:00:00Z", "gap,transition"],
        ["2027-03-29T02:30:00+02:00", "2027-03-29T00:30:00Z", ""],
    ]


def test_the_law_of_daylight_saving_can_be_chosen() -> None:
    autumn = ("30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-10-30T12:00:00Z", "-n", "2")
    assert answer(*autumn)["fires"] == ["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"]
    assert answer(*autumn, "--fold", "both")["fires"] == ["2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"]
    assert answer(*autumn, "--fold", "last")["fires"][0] == "2027-10-31T01:30:00Z"
    spring = ("30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-27T12:00:00Z", "-n", "1", "--gap", "skip")
    assert answer(*spring)["fires"] == ["2027-03-29T00:30:00Z"]


def test_it_begins_now_and_gives_ten() -> None:
    assert len(answer("* * * * * *")["fires"]) == 10


def test_h_depends_on_the_name_of_the_schedule() -> None:
    fires = {
        answer("H H * * *", "--salt", name, "--after", "2026-01-01T00:00:00Z", "-n", "1")["fires"][0] for name in "abcd"
    }
    assert len(fires) > 1
    assert "a time of its own" in answer("H H * * *")["description"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["61 * * * *"], "minute: '61' is out of range"),
        (["0 9 * * MUN"], "day of week: 'mun' is not understood"),
        (["0 9 * *"], "expression: '0 9 * *' has 4 fields instead of 5, 6 or 7"),
        (["0 0 30 2 *"], "day of month: 30 never comes in February\nhint: it has 29 days at most"),
        (["*/15 * * * *", "--fold", "last"], "fold: means nothing: the minute begins with *"),
        (["@dayly"], "did you mean '@daily'?"),
        (["0 9 * * *", "--tz", "Europe/Berlim"], "did you mean 'Europe/Berlin'?"),
        (["0 9 * * *", "--after", "2026-01-01"], "has no time zone"),
        (["0 9 * * *", "--after", "1960-01-01T00:00:00Z"], "is before 1970"),
        (["0 9 * * *", "-n", "0"], "0 is not in the range"),
        ([], "missing argument"),
    ],
)
def test_an_error_names_the_field_and_exits_2(arguments: list[str], said: str) -> None:
    done = cron(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_an_error_is_json_if_that_is_wanted() -> None:
    done = cron("61 * * * *", "--json")
    assert (done.exit_code, json.loads(done.stderr)["code"]) == (2, "bad-trigger")
