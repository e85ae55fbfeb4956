"""`rota import`: crontabs and interval jobs become schedules, on both databases, or a file to apply."""

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rota.app import Rota
from rota.core.formats.crontab import even_interval, read_crontab
from rota.core.formats.interval_jobs import read_intervals
from rota.errors import Invalid
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import answer, rota


async def introduce(url: str) -> None:
    app = Rota(url)

    @app.job
    async def run_command(
        command: str, environment: dict[str, str] | None = None, stdin: str = "", user: str = ""
    ) -> None: ...

    @app.job
    async def crawl(source_name: str = "", source_id: str = "", url: str = "") -> None: ...

    await save_jobs_of(app)


@pytest.fixture
def known_url(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", database_url)
    asyncio.run(introduce(database_url))
    return database_url


CRONTAB = r"""
# Too far above to mean anything

# Nightly backup
# of everything
0 2 * * * /usr/local/bin/backup.sh --full /data > /dev/null 2>&1
SHELL=/bin/sh
MAILTO = "ops@example.com"
*/15 * * * * cd /srv/app && LANG=C ./sync.py
# 5 4 * * * switched-off
CRON_TZ=Europe/Berlin
0 9 * * mon-fri mail -s report boss%Dear boss,%100\% done.
@reboot /usr/bin/start
@daily	/usr/bin/tidy
61 * * * * /usr/bin/never
* * * *
0 0 * * * echo {plan_time}
0 0 * * * echo {scope.name}
"""


def test_a_crontab_as_cron_reads_it() -> None:
    found = read_crontab(CRONTAB)
    names = {document["name"]: document for document in found.documents}
    environment = {"SHELL": "/bin/sh", "MAILTO": "ops@example.com"}
    assert names["backup-full-data"] == {
        "name": "backup-full-data",
        "job": "run_command",
        "cron": "0 2 * * *",
        "payload": {"command": "/usr/local/bin/backup.sh --full /data > /dev/null 2>&1"},
        "description": "Nightly backup of everything",
    }
    assert names["sync"]["payload"] == {"command": "cd /srv/app && LANG=C ./sync.py", "environment": environment}
    assert "description" not in names["sync"]
    mail = names["mail-s-report-boss"]
    assert (mail["cron"], mail["timezone"]) == ("0 9 * * mon-fri", "Europe/Berlin")
    assert mail["payload"]["command"] == "mail -s report boss"
    assert mail["payload"]["stdin"] == "Dear boss,\n100% done.\n"
    assert mail["payload"]["environment"] == environment
    assert names["tidy"]["cron"] == "@daily"
    assert len(found.documents) == 4


def test_lines_that_cannot_be_schedules_are_listed() -> None:
    found = {one.line: one.why for one in read_crontab(CRONTAB).unconverted}
    assert list(found) == [13, 15, 16, 17, 18]
    assert "start of a machine" in found[13]
    assert "minute: '61' is out of range" in found[15]
    assert "too few fields" in found[16]
    assert "braces" in found[17]
    assert "unknown placeholder" in found[18]


def test_what_never_fires_is_listed() -> None:
    found = read_crontab("0 0 30 2 * never\n# 0 0 30 2 * switched-off\n0 0 28 2 * yearly\n")
    assert [(one.line, one.why) for one in found.unconverted] == [
        (1, "day of month: 30 never comes in February (it has 29 days at most)")
    ]
    assert [(document["name"], "description" in document) for document in found.documents] == [("yearly", False)]
    old = read_intervals('[{"name": "f", "schedule_time": "0 0 30 2 *"}]')
    assert [one.why for one in old.unconverted] == ["day of month: 30 never comes in February (it has 29 days at most)"]


def test_system_crontabs_have_a_column_for_the_user() -> None:
    text = "TZ=:Asia/Tokyo\n-0 3 * * * root /bin/x  --now\n@hourly www-data /bin/y\n0 3 * * * root\n"
    found = read_crontab(text, system=True)
    assert [document["payload"].get("user") for document in found.documents] == ["root", "www-data"]
    assert found.documents[0]["payload"]["command"] == "/bin/x  --now"
    assert found.documents[0]["payload"]["environment"] == {"TZ": ":Asia/Tokyo"}
    assert found.documents[0]["timezone"] == "Asia/Tokyo"
    assert [one.line for one in found.unconverted] == [4]


def test_names_are_unique_and_stay_whatever_stands_above() -> None:
    first, second = "0 1 * * * /bin/backup\n", "0 2 * * * /bin/backup\n"
    names = [document["name"] for document in read_crontab(first + second).documents]
    assert len(set(names)) == 2
    assert all(name.startswith("backup-") for name in names)
    assert [document["name"] for document in read_crontab("5 5 * * * /bin/new\n" + second + first).documents][
        1:
    ] == names[::-1]
    twice = [document["name"] for document in read_crontab(first + first).documents]
    assert twice == [twice[0], f"{twice[0]}-2"]
    assert read_crontab("* * * * * > /tmp/x\n").documents[0]["name"] == "command"


@pytest.mark.parametrize(
    ("expression", "zone", "same"),
    [
        ("0 * * * *", "UTC", {"every": "1h"}),
        ("*/15 * * * *", "UTC", {"every": "15m"}),
        ("0 0 * * *", "UTC", {"every": "1d"}),
        ("0 */6 * * *", "UTC", {"every": "6h"}),
        ("@hourly", "Etc/UTC", {"every": "1h"}),
        ("30 * * * *", "UTC", {"every": "1h", "anchor": "1970-01-01T00:30:00Z"}),
        ("0 0 * * *", "Etc/GMT+5", {"every": "1d", "anchor": "1970-01-01T05:00:00Z"}),
        ("*/7 * * * *", "UTC", None),
        ("0 */5 * * *", "UTC", None),
        ("0 0 */2 * *", "UTC", None),
        ("0 0 1 1 *", "UTC", None),
        ("0 0 29 2 *", "UTC", None),
        ("0 0 1 * *", "UTC", None),
        ("0 9 * * mon-fri", "UTC", None),
        ("0 * * * *", "Europe/Berlin", None),
        ("0 0 * * *", "Asia/Tokyo", None),
        ("H * * * *", "UTC", None),
    ],
)
def test_an_interval_only_where_it_is_the_same(expression: str, zone: str, same: dict[str, str] | None) -> None:
    assert even_interval(expression, zone) == same


def test_what_is_printed_can_be_applied(tmp_path: Path, known_url: str) -> None:
    Path("old.cron").write_text(CRONTAB)
    printed = rota("import", "crontab", "old.cron", "--as-every")
    assert printed.exit_code == 0
    assert "note: line 13: @reboot /usr/bin/start" in printed.stderr
    assert "# line 13: @reboot" in printed.stdout
    document = tomllib.loads(printed.stdout)
    assert document["owner"] == "file:old.cron"
    assert document["schedule"][1]["every"] == "15m"
    (tmp_path / "schedules.toml").write_text(printed.stdout)
    applied = answer("schedule", "apply", "schedules.toml")
    assert applied["counts"] == {"create": 4, "change": 0, "delete": 0, "unchanged": 0}
    assert answer("schedule", "apply", "schedules.toml")["counts"]["unchanged"] == 4
    done = rota("import", "crontab", "old.cron", "--apply", "--json")
    assert done.exit_code == 1
    as_cron = json.loads(done.stdout)
    changed = {
        one["name"]: [change["key"] for change in one["changes"]] for one in as_cron["items"] if one["kind"] == "change"
    }
    assert changed["sync"] == ["every", "cron"]
    assert answer("schedule", "get", "tidy")["owner"] == "file:old.cron"


@pytest.mark.usefixtures("known_url")
def test_from_stdin_it_needs_an_owner_to_be_applied() -> None:
    entry = "0 * * * * /bin/x\n"
    assert "owner" not in tomllib.loads(rota("import", "crontab", "-", stdin=entry).stdout)
    refused = rota("import", "crontab", "-", "--apply", stdin=entry)
    assert (refused.exit_code, "--owner" in refused.stderr) == (2, True)
    assert rota("import", "crontab", "-", "--apply", "--owner", "cron", stdin=entry).stdout.startswith("create\tx\t")
    unknown = rota("import", "crontab", "-", "--apply", "--owner", "cron", "--job", "run_comand", stdin=entry)
    assert (unknown.exit_code, "'run_command'?; or give another one with --job" in unknown.stderr) == (
        4,
        True,
    )


def test_without_a_zone_times_are_taken_as_utc_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entry = "0 9 * * * /bin/x\n"
    note = "note: times are read as UTC, but cron uses the machine's time zone: set it with --tz\n"
    assert rota("import", "crontab", "-", stdin=entry).stderr == note
    assert rota("import", "crontab", "-", stdin=f"CRON_TZ=Asia/Tokyo\n{entry}").stderr == ""
    assert rota("import", "crontab", "-", stdin=f"{entry}CRON_TZ=Asia/Tokyo\n").stderr == note
    berlin = rota("import", "crontab", "-", "--tz", "Europe/Berlin", stdin=f"{entry}TZ=Asia/Tokyo\n0 8 * * * /bin/y\n")
    zones = [schedule["timezone"] for schedule in tomllib.loads(berlin.stdout)["schedule"]]
    assert (berlin.stderr, zones) == ("", ["Europe/Berlin", "Asia/Tokyo"])
    assert rota("import", "crontab", "-", "--tz", "UTC", stdin=entry).stderr == ""
    assert rota("import", "crontab", "-", "--tz", "Nowhere", stdin=entry).exit_code == 2
    assert answer("import", "crontab", "-", stdin=entry)["remarks"] == [note.removeprefix("note: ").strip()]


@pytest.mark.usefixtures("known_url")
def test_an_import_that_would_delete_wants_consent_unless_it_has_an_owner() -> None:
    Path("old.cron").write_text("0 9 * * * /bin/x\n0 9 * * * /bin/y\n")
    assert rota("import", "crontab", "old.cron", "--apply").exit_code == 0
    Path("old.cron").write_text("0 9 * * * /bin/y\n")
    refused = rota("import", "crontab", "old.cron", "--apply")
    assert (refused.exit_code, "delete x of owner file:old.cron" in refused.stderr) == (2, True)
    assert answer("import", "crontab", "old.cron", "--apply", "--yes")["counts"]["delete"] == 1


def test_importing_needs_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = answer("import", "crontab", "-", stdin="# x\n0 * * * * /bin/x\n@reboot y\n")
    assert found["schedule"] == [
        {"name": "x", "job": "run_command", "cron": "0 * * * *", "payload": {"command": "/bin/x"}, "description": "x"}
    ]
    assert [one["line"] for one in found["unconverted"]] == [3]
    missing = rota("import", "crontab", "nothing.cron")
    assert (missing.exit_code, "cannot read nothing.cron" in missing.stderr) == (2, True)
    Path("latin").write_bytes(b"# \xe4\n")
    assert "is not UTF-8" in rota("import", "crontab", "latin").stderr


INTERVALS: list[Any] = [
    {"source_name": "example.com", "url": "https://example.com", "interval_minutes": 30, "interval_type": "minutes",
     "schedule_enabled": True, "max_retries": 3, "retry_backoff_seconds": 60, "metadata": {"category": "news"}},
    {"name": "six", "source_id": "s6", "interval_minutes": 6, "interval_type": "hours", "schedule_enabled": False},
    {"name": "old", "schedule_time": "0 */6 * * *", "is_paused": True},
    {"name": "now", "schedule_enabled": False},
    {"name": "bad", "interval_minutes": 6, "interval_type": "weeks"},
    {"name": "worse", "interval_minutes": 6, "interval_type": "days", "max_retries": -1},
    {"name": "six", "interval_minutes": 1, "interval_type": "days"},
    "what",
]  # fmt: skip


def test_interval_jobs() -> None:
    found = read_intervals(json.dumps(INTERVALS))
    assert found.documents[0] == {
        "name": "example.com",
        "job": "crawl",
        "interval_minutes": 30,
        "interval_type": "minutes",
        "payload": {"source_name": "example.com", "url": "https://example.com"},
        "max_attempts": 4,
        "backoff": {"base": "60s"},
        "metadata": {"category": "news"},
    }
    assert [document["name"] for document in found.documents] == ["example.com", "six", "old"]
    assert [one.why for one in found.unconverted[1:3]] == [
        "interval_type cannot be 'weeks' (known: days, hours, minutes)",
        "max_retries must be a whole number from 0 up, not -1",
    ]  # fmt: skip
    unnamed = read_intervals('[{"name": "n", "interval_minutes": 5}, {"name": "o", "interval_minutes": 0}]')
    assert unnamed.documents[0]["interval_type"] == "minutes"
    assert unnamed.unconverted[0].why == "interval_minutes must be a whole number from 1 up, not 0"
    assert found.documents[1]["enabled"] is False
    assert found.documents[2]["cron"] == "0 */6 * * *"
    assert found.remarks == ("old: is paused there: `rota schedule pause old`",)
    assert [(one.line, one.text) for one in found.unconverted] == [
        (4, "now"), (5, "bad"), (6, "worse"), (7, "six"), (8, "'what'"),
    ]  # fmt: skip
    odd = [{"name": name, "interval_minutes": 5, "bogus": 1, "created_at": 2} for name in "fgh"]
    assert read_intervals(json.dumps([*odd, {"name": "i", "interval_minutes": 5, "tag": 1}])).remarks == (
        "f and 2 more: bogus is not known, and left out",
        "f and 2 more: created_at is not known, and left out",
        "i: tag is not known, and left out",
    )
    for text in ("{", "5", '{"things": []}'):
        with pytest.raises(Invalid):
            read_intervals(text)


@pytest.mark.usefixtures("known_url")
def test_interval_jobs_are_applied() -> None:
    Path("jobs.json").write_text(json.dumps({"jobs": INTERVALS}))
    first, again = (rota("import", "intervals", "jobs.json", "--apply", "--json") for _ in range(2))
    assert (json.loads(first.stdout)["counts"]["create"], json.loads(again.stdout)["counts"]["unchanged"]) == (3, 3)
    assert (first.exit_code, again.exit_code, rota("import", "intervals", "jobs.json").exit_code) == (1, 1, 0)
    assert "note: job 5: bad: interval_type cannot be 'weeks' (known: days, hours, minutes)\n" in first.stderr
    Path("good.json").write_text(json.dumps(INTERVALS[:2]))
    assert answer("import", "intervals", "good.json", "--apply", "--owner", "file:jobs.json")["counts"]["delete"] == 1
    shown = answer("schedule", "get", "six")
    assert (shown["rule"], shown["state"]) == ("every 6 hours", "disabled")
    assert answer("schedule", "get", "example.com")["definition"]["max_attempts"] == 4
