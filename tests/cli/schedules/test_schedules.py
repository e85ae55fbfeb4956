"""Schedules from the command line; what a person sees, on a real terminal."""

import asyncio
import contextlib
import os
import pty
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from click.testing import Result

from rota import cron
from rota.app import Rota
from rota.cli.schedules.schedule_format import schedule_state_cell, soon_cell
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.schedule import Schedule, define
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import answer, refused, rota


def app_on(url: str) -> Rota:
    app = Rota(url)

    @app.job
    async def crawl(url: str = "") -> str:
        return url

    @app.job(max_attempts=1)
    async def boom() -> None:
        raise ValueError("no luck")

    return app


async def introduce(url: str) -> None:
    await save_jobs_of(app_on(url))


@pytest.fixture
def known_url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))
    return sqlite_url


@pytest.mark.usefixtures("known_url")
def test_add_takes_triggers_policies_and_anything_else() -> None:
    added = answer(
        "schedule", "create", "news", "crawl", '{"url": "https://example.com/{plan_time}"}',
        "--cron", "0 9 * * MON-FRI", "--tz", "Europe/Berlin", "--overlap", "queue_one", "--catch-up", "all",
        "--failure", "retry", "--window", "08:00-17:00 mon-fri", "--exclude", "2026-12-25", "--delay", "5s",
        "--jitter", "10s", "--max-runs", "99", "--start-at", "2026-01-01T00:00:00Z", "--end-at", "2099-01-01T00:00:00Z",
        "--scope", "account/1", "--scope", "account/2", "--max-concurrency", "2", "--when-full", "skip",
        "--tag", "news", "--description", "Each morning", "--set", "queue=mail", "--set", "priority=5",
        "--set", 'catch_up={"mode": "all", "keep": 3}', "--set", "fold=both",
    )  # fmt: skip
    assert (added["name"], added["state"], added["owner"]) == ("news", "active", "cli")
    assert added["rule"].startswith("weekdays at 09:00, Europe/Berlin")
    assert added["definition"] == {
        "job": "crawl",
        "cron": "0 9 * * MON-FRI",
        "fold": "both",
        "payload": {"url": "https://example.com/{plan_time}"},
        "scopes": ["account/1", "account/2"],
        "delay": "5s",
        "jitter": "10s",
        "catch_up": {"mode": "all", "keep": 3},
        "overlap": "queue_one",
        "failure": "retry",
        "max_concurrency": 2,
        "when_full": "skip",
        "max_runs": 99,
        "start_at": "2026-01-01T00:00:00Z",
        "end_at": "2099-01-01T00:00:00Z",
        "windows": ["08:00-17:00 mon,tue,wed,thu,fri"],
        "exclude": ["2026-12-25"],
        "timezone": "Europe/Berlin",
        "description": "Each morning",
        "queue": "mail",
        "priority": 5,
        "tags": ["news"],
    }
    assert answer("schedule", "get", "news")["definition"] == added["definition"]


@pytest.mark.usefixtures("known_url")
def test_a_cadence_that_is_shorter_than_a_grace_is_warned_of() -> None:
    words = ("schedule", "create", "hasty", "crawl", '{"url": "https://example.com"}', "--every", "2s")
    done = rota(*words, "--overlap", "cancel_previous")
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: plan times are 2s apart, and a run that is cancelled may take its ")
    assert rota(*words[:2], "calm", *words[3:5], "--every", "1h").stderr == ""


@pytest.mark.usefixtures("known_url")
def test_every_kind_of_trigger() -> None:
    later = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0)
    rules = {
        "--every=90m": "every 1 hour 30 minutes",
        "--after=5m": "5 minutes after the last run ended",
        f"--once={later.isoformat()}": f"once at {later:%Y-%m-%d %H:%M:%S} UTC",
        '--set=either=[{"cron": "0 9 * * *"}, {"every": "1h"}]': "every day at 09:00, UTC or every hour",
    }
    for number, (option, rule) in enumerate(rules.items()):
        assert answer("schedule", "create", f"s{number}", "crawl", option)["rule"] == rule
    assert answer("schedule", "create", "off", "crawl", "--every", "1h", "--disabled")["state"] == "disabled"
    lines = rota("schedule", "ls").stdout.splitlines()
    assert [line.split("\t")[:3] for line in lines[1:]] == [
        [f"s{number}", "active", rule] for number, rule in enumerate(rules.values())
    ]
    assert all(len(line.split("\t")) == 7 for line in lines)
    page = answer("schedule", "ls", "--limit", "2")
    assert [item["name"] for item in page["items"]] == ["off", "s0"]
    rest = answer("schedule", "ls", "--cursor", page["next_cursor"])
    assert ([item["name"] for item in rest["items"]], rest["next_cursor"]) == (["s1", "s2", "s3"], None)
    assert answer("schedule", "ls", "--job", "boom")["items"] == []
    assert len(answer("schedule", "ls", "--owner", "cli")["items"]) == 5


@pytest.mark.usefixtures("known_url")
def test_what_cannot_be_is_told_with_a_hint() -> None:
    add = ("schedule", "create", "news", "crawl")
    assert "cron: minute: '61' is out of range" in refused(2, *add, "--cron", "61 * * * *")
    assert "day of month: 30 never comes in February" in refused(2, *add, "--cron", "0 0 30 2 *")
    assert "end_at: it is over" in refused(2, *add, "--every", "1h", "--end-at", "2020-01-01T00:00:00Z")
    assert "once: it is over" in refused(2, *add, "--once", "2020-01-01T00:00:00Z")
    assert "has no trigger" in refused(2, *add)
    assert "has cron and every" in refused(2, *add, "--cron", "* * * * *", "--every", "1h")
    assert "did you mean 'skip'?" in refused(2, *add, "--every", "1h", "--overlap", "skp")
    assert "did you mean 'priority'?" in refused(2, *add, "--every", "1h", "--set", "prioriti=1")
    assert "backoff: 5 is not a duration" in refused(2, *add, "--every", "1h", "--set", "backoff=5")
    assert "max_concurrency must be" in refused(2, *add, "--every", "1h", "--max-concurrency", "0")
    assert "has no =" in refused(2, *add, "--every", "1h", "--set", "priority")
    assert "is not JSON" in refused(2, *add, "--every", "1h", "--set", "catch_up={mode}")
    assert "--scope or --scopes" in refused(2, *add, "--every", "1h", "--scope", "a/b", "--scopes", "p")
    assert "payload at $.link" in refused(2, "schedule", "create", "news", "crawl", '{"link": 1}', "--every", "1h")
    assert "did you mean 'crawl'?" in refused(4, "schedule", "create", "news", "crwl", "--every", "1h")
    assert rota(*add, "--every", "1h").exit_code == 0
    assert "there is a schedule 'news' already" in refused(6, *add, "--every", "1h")
    for verb in ("get", "update", "pause", "resume", "enable", "disable", "trigger", "preview", "simulate"):
        assert "did you mean 'news'?" in refused(4, "schedule", verb, "nws")
    assert "did you mean 'news'?" in refused(4, "schedule", "rm", "nws", "--yes")


@pytest.mark.usefixtures("known_url")
def test_edit_changes_what_is_given_and_says_what_that_does() -> None:
    rota(
        "schedule",
        "create",
        "news",
        "crawl",
        '{"url": "a"}',
        "--every",
        "1h",
        "--overlap",
        "allow",
        "--set",
        "queue=mail",
    )
    assert "nothing changes" in rota("schedule", "update", "news").stderr
    change = ("schedule", "update", "news", "--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--set", "queue=null")
    (looked,) = answer(*change, "--dry-run")["schedules"]
    assert [(one["key"], one["before"], one["after"]) for one in looked["changes"]] == [
        ("every", "1h", None),
        ("queue", "mail", None),
        ("cron", None, "0 9 * * *"),
        ("timezone", None, "Asia/Tokyo"),
    ]
    assert looked["fires_before"] != looked["fires_after"]
    assert looked["fires_after"][0].endswith("T00:00:00Z")
    assert answer("schedule", "get", "news")["revision"] == 1
    kept = answer(*change)["definition"]
    assert (kept["overlap"], kept["payload"], "queue" in kept) == ("allow", {"url": "a"}, False)
    assert answer("schedule", "update", "news", "--payload", "{}", "--job", "boom")["job"] == "boom"
    assert rota("schedule", "update", "news", "--overlap", "skip").stdout == "overlap\tallow\t\n"
    assert answer("schedule", "update", "news", "--overlap", "skip")["revision"] == 4
    assert "overlap cannot be 'x'" in refused(2, "schedule", "update", "news", "--overlap", "x")


@pytest.mark.usefixtures("known_url")
def test_pause_resume_enable_disable_and_rm() -> None:
    rota("schedule", "create", "news", "crawl", "--every", "1h")
    paused = answer("schedule", "pause", "news", "--reason", "too loud", "--until", "2h")
    assert (paused["state"], paused["pause_reason"], paused["next_plan"]) == ("paused", "too loud", None)
    assert paused["paused_by"].startswith("cli")
    assert paused["resume_at"] is not None
    line = rota("schedule", "ls").stdout
    assert "too loud" in line.split("\t")[-1]
    assert f"until {paused['resume_at']}" in line, "in UTC, for programs"
    assert "in the future" in refused(2, "schedule", "pause", "news", "--until", "2020-01-01T00:00:00Z")
    assert answer("schedule", "resume", "news", "--catch-up", "latest")["state"] == "active"
    assert answer("schedule", "disable", "news")["state"] == "disabled"
    assert rota("schedule", "enable", "news").stdout.split("\t")[:2] == ["news", "active"]
    assert "--yes" in refused(2, "schedule", "rm", "news")
    assert answer("schedule", "rm", "news", "--yes") == {"name": "news", "deleted": True}
    assert refused(4, "schedule", "get", "news")


def test_trigger_waits_and_its_exit_code_tells(known_url: str) -> None:
    rota("schedule", "create", "good", "crawl", "--every", "1h")
    rota("schedule", "create", "bad", "boom", "--every", "1h", "--scope", "a/1", "--scope", "a/2")

    async def at_work() -> tuple[Result, Result]:
        async with app_on(known_url).running():
            good = await asyncio.to_thread(rota, "schedule", "trigger", "good", "--wait")
            return good, await asyncio.to_thread(rota, "schedule", "trigger", "bad", "--wait")

    good, bad = asyncio.run(at_work())
    assert rota("schedule", "get", "good").stdout.splitlines()[-1].split("\t")[1] == "succeeded"
    assert (good.exit_code, good.stdout.split("\t")[1]) == (0, "succeeded")
    assert (bad.exit_code, [line.split("\t")[1] for line in bad.stdout.splitlines()]) == (1, ["failed", "failed"])
    last = {line.split("\t")[0]: line.split("\t")[4] for line in rota("schedule", "ls").stdout.splitlines()}
    assert last == {"good": "succeeded", "bad": "failed"}


@pytest.mark.usefixtures("known_url")
def test_preview_marks_what_daylight_saving_does() -> None:
    rota("schedule", "create", "early", "crawl", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--delay", "10s")
    found = answer("schedule", "preview", "early", "-n", "2", "--after", "2027-03-27T12:00:00Z")
    assert found["fires"][0] == {
        "plan_time": "2027-03-28T01:00:00Z",
        "local": "2027-03-28T03:00:00+02:00",
        "eligible_at": "2027-03-28T01:00:10Z",
        "marks": ["gap", "transition"],
        "zone": "Europe/Berlin",
        "schedule": "early",
    }
    assert len(rota("schedule", "preview", "early").stdout.splitlines()) == 10
    assert refused(2, "schedule", "preview", "early", "-n", "0")


@pytest.mark.usefixtures("known_url")
def test_simulate_tries_policies_out_and_stores_nothing() -> None:
    rota("schedule", "create", "news", "crawl", "--every", "1h")
    ask = ("schedule", "simulate", "news", "--from", "2026-06-01T00:30:00Z", "--for", "6h")
    slow = answer(*ask, "--duration", "90m")
    assert (slow["counts"]["run"], slow["counts"]["skipped"]) == (3, 3)
    assert slow["events"][1]["kind"] == "skipped"
    assert answer(*ask, "--duration", "90m", "--overlap", "allow")["counts"]["run"] == 6
    assert answer(*ask, "--every", "30m")["counts"]["run"] == 12
    away = ("--outage", "+1h..+4h")
    late = answer(*ask, *away)
    assert (late["counts"]["run"], late["counts"]["covered"]) == (4, 2)
    assert next(event for event in late["events"] if event["kind"] == "covered")["to_at"] == "2026-06-01T03:00:00Z"
    assert answer(*ask, *away, "--catch-up", "all")["counts"]["run"] == 6
    assert answer(*ask, "--outage", "2026-06-01T01:30:00Z..2026-06-01T04:30:00Z")["counts"] == late["counts"]
    assert answer(*ask, "--fail-every", "2", "--failure", "skip", "--set", "max_attempts=1")["counts"]["failed"] == 2
    assert rota(*ask).stdout.splitlines()[0].split("\t")[:2] == ["2026-06-01T01:00:00Z", "run"]
    assert "has no .." in refused(2, *ask, "--outage", "1h")
    assert "before it begins" in refused(2, *ask, "--outage", "+4h..+1h")
    assert "is not a duration" in refused(2, *ask[:-1], "-1s")
    assert answer(*ask[:-1], "0s")["events"] == []
    assert "is not a duration" in refused(2, *ask, "--duration", "soon")
    assert answer("schedule", "get", "news")["revision"] == 1


@pytest.mark.usefixtures("known_url")
def test_simulate_says_how_far_it_got() -> None:
    rota("schedule", "create", "news", "crawl", "--every", "1h")
    ask = ("schedule", "simulate", "news", "--from", "2026-06-01T00:00:00Z", "--for")
    whole = answer(*ask, "12h")
    assert (whole["truncated"], whole["unlisted"], len(whole["events"])) == (False, 0, 12)
    many = answer(*ask, "100d", "--limit", "30")
    assert (many["truncated"], many["unlisted"], len(many["events"])) == (False, 2_370, 30)
    printed = rota(*ask, "100d")
    assert len(printed.stdout.splitlines()) == 20
    assert "2380 more plan times are counted and not listed; raise --limit" in printed.stderr
    told = rota(*ask, "1000d", "--every", "1s")
    assert "that is too long for one simulation: it ends at 2026-06-01T" in told.stderr


@pytest.mark.usefixtures("known_url")
def test_backfill_counts_first_and_wants_consent() -> None:
    rota("schedule", "create", "news", "crawl", "--every", "1h")
    ask = ("schedule", "backfill", "news", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T04:00:00Z")
    assert rota(*ask, "--dry-run").stdout == "5\n"
    assert "`rota schedule backfill news … --yes` does not ask" in refused(2, *ask)
    assert answer("run", "ls")["items"] == []
    made = answer(*ask, "--concurrency", "2", "--yes")
    assert (made["count"], len(made["runs"]), made["dry_run"]) == (5, 5, False)
    again = answer(*ask, "--yes")
    assert (again["count"], again["already"]) == (0, 5)
    assert len(answer("run", "ls", "--schedule", "news")["items"]) == 5
    assert "is in the future" in refused(2, *ask[:-1], "2099-01-01T00:00:00Z")
    assert "missing option '--from'" in refused(2, "schedule", "backfill", "news")
    items = answer("schedule", "occurrences", "news", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T04:00:00Z")
    assert [item["kind"] for item in items["items"]] == ["ran"] * 5
    assert items["next_cursor"] is None


@pytest.mark.usefixtures("known_url")
def test_explain_a_plan_time_or_a_run() -> None:
    rota("schedule", "create", "news", "crawl", "--every", "1h")
    next_plan = answer("schedule", "get", "news")["next_plan"]
    coming = answer("explain", "news", "--at", next_plan)
    assert set(coming) == {"verdict", "words", "facts"}
    between = answer("explain", "news", "--at", next_plan.replace(":00:00Z", ":07:00Z"))
    assert coming["verdict"] != between["verdict"]
    id = rota("schedule", "trigger", "news").stdout.strip()
    verdict, words = rota("explain", id).stdout.rstrip("\n").split("\t", 1)
    assert verdict == answer("explain", id)["verdict"]
    assert words
    assert answer("explain", "news")["facts"]["at"] == next_plan  # none has come yet
    assert "there is no run and no schedule 'nobody'" in refused(4, "explain", "nobody")
    assert "did you mean 'news'?" in refused(4, "explain", "nws", "--at", next_plan)


TEAM = """
owner = "team-a"

[[schedule]]
name = "news"
job = "crawl"
every = "30m"
payload = {url = "https://example.com"}

[[schedule]]
name = "berlin"
job = "crawl"
cron = "0 9 * * MON-FRI"
timezone = "Europe/Berlin"
"""


@pytest.mark.usefixtures("known_url")
def test_plan_and_apply_a_file() -> None:
    Path("team.toml").write_text(TEAM)
    rota("schedule", "create", "mine", "crawl", "--every", "1h")
    planned = answer("schedule", "plan", "team.toml")
    assert (planned["owner"], planned["applied"]) == ("team-a", False)
    assert planned["counts"] == {"create": 2, "change": 0, "delete": 0, "unchanged": 0}
    assert [item["name"] for item in answer("schedule", "ls")["items"]] == ["mine"]
    assert rota("schedule", "apply", "team.toml").stdout.splitlines()[1] == "create\tberlin\tjob,cron,timezone"
    before = answer("schedule", "ls")
    assert answer("schedule", "apply", "team.toml")["counts"]["unchanged"] == 2
    assert answer("schedule", "ls") == before

    rota("schedule", "pause", "news", "--reason", "hold")
    Path("team.toml").write_text(TEAM.replace('"30m"', '"10m"').replace('"berlin"', '"paris"'))
    items = {item["name"]: item for item in answer("schedule", "apply", "team.toml")["items"]}
    assert {name: item["kind"] for name, item in items.items()} == {
        "news": "change",
        "paris": "create",
        "berlin": "delete",
    }
    assert items["news"]["changes"] == [{"key": "every", "before": "30m", "after": "10m"}]
    assert (items["news"]["paused"], items["news"]["fires_before"] == items["news"]["fires_after"]) == (True, False)
    assert (items["berlin"]["fires_after"], len(items["berlin"]["fires_before"])) == ([], 3)
    shown = answer("schedule", "get", "news")
    assert (shown["state"], shown["pause_reason"], shown["owner"]) == ("paused", "hold", "team-a")
    assert [item["name"] for item in answer("schedule", "ls")["items"]] == ["mine", "news", "paris"]


@pytest.mark.usefixtures("known_url")
def test_files_do_not_touch_what_belongs_to_others() -> None:
    Path("team.toml").write_text(TEAM)
    rota("schedule", "apply", "team.toml")
    Path("other.toml").write_text(TEAM.replace('owner = "team-a"', ""))
    assert "'news' belongs to 'team-a'" in refused(6, "schedule", "apply", "other.toml")
    Path("other.toml").write_text("")
    assert answer("schedule", "apply", "other.toml") == {
        "owner": "file:other.toml", "applied": True, "counts": {"create": 0, "change": 0, "delete": 0, "unchanged": 0},
        "items": [],
    }  # fmt: skip
    assert answer("schedule", "apply", "-", "--owner", "team-a", stdin="")["counts"]["delete"] == 2


@pytest.mark.usefixtures("known_url")
def test_a_file_with_a_mistake_changes_nothing() -> None:
    for broken, code, said in (
        (TEAM.replace("every", "evry"), 2, "did you mean 'every'?"),
        (TEAM.replace("MON-FRI", "MON-FRY"), 2, "schedule 'berlin': cron: day of week"),
        (TEAM.replace('cron = "0 9', 'overlap = "skp"\ncron = "0 9'), 2, "schedule 'berlin': overlap cannot be 'skp'"),
        (TEAM.replace('"berlin"', '"news"'), 2, "'news' is there 2 times"),
        (TEAM.replace('job = "crawl"\ncron', 'job = "crwl"\ncron'), 4, "schedule 'berlin': no job is called 'crwl'"),
        (TEAM.replace('"team-a"', '"code"'), 2, "a file cannot be the owner 'code'"),
        (TEAM + "[[schedule", 2, "team.toml: "),
    ):
        Path("team.toml").write_text(broken)
        assert said in refused(code, "schedule", "apply", "team.toml")
    assert answer("schedule", "ls")["items"] == []
    assert "cannot read" in refused(2, "schedule", "plan", "nothing.toml")
    assert "--owner" in refused(2, "schedule", "plan", "-", stdin=TEAM.replace("owner", "# "))


def on_terminal(*arguments: str, answered: bytes = b"") -> tuple[str, int]:
    pid, terminal = pty.fork()
    if pid == 0:
        values = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "NO_COLOR": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "rota", *arguments], values)
    shown = b""
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while part := os.read(terminal, 65536):
            shown += part
            if answered and b"[y/N]" in shown:
                os.write(terminal, answered)
                answered = b""
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def with_news(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))
    rota("schedule", "create", "news", "crawl", "--cron", "30 2 * * *", "--tz", "Europe/Berlin")


@pytest.mark.usefixtures("with_news")
def test_what_a_person_sees() -> None:
    listed, _ = on_terminal("schedule", "ls")
    assert "◷ active" in listed
    assert "every day at 02:30, Europe/Berlin" in listed
    assert on_terminal("schedule", "ls", "--state", "failing")[0] == "no schedules match\n"
    shown, _ = on_terminal("schedule", "get", "news")
    assert "while a run is going on, plan times are skipped" in shown
    assert shown.count("02:30 CE") >= 4  # of five; in a night in spring there is no such time
    paused, _ = on_terminal("schedule", "pause", "news", "--reason", "tired")
    assert "⏸ paused" in paused
    assert "tired" in paused
    edited, _ = on_terminal("schedule", "update", "news", "--every", "1h")
    assert "next before" in edited
    Path("team.toml").write_text(TEAM.replace('"news"', '"more"'))
    planned, _ = on_terminal("schedule", "plan", "team.toml")
    assert "+ berlin\n" in planned
    assert "2 to create; owner team-a" in planned
    tried, _ = on_terminal("schedule", "simulate", "news", "--for", "3h", "--duration", "2h")
    assert "every hour" in tried
    assert "skipped" in tried
    meant, _ = on_terminal("cron", "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-27T12:00:00Z", "-n", "1")
    assert meant.startswith("every day at 02:30, Europe/Berlin\n")
    assert "moved: clocks skip the time" in meant


@pytest.mark.usefixtures("with_news")
@pytest.mark.parametrize(("said", "code", "left"), [(b"y\n", 0, 0), (b"n\n", 3, 1)])
def test_on_a_terminal_rm_asks(said: bytes, code: int, left: int) -> None:
    shown, exit_code = on_terminal("schedule", "rm", "news", answered=said)
    assert "delete schedule news (every day at 02:30, Europe/Berlin)?" in shown
    assert ("nothing was done" in shown, "error" in shown) == (code == 3, False)
    assert (exit_code, len(answer("schedule", "ls")["items"])) == (code, left)


@pytest.mark.usefixtures("with_news")
def test_on_a_terminal_backfill_tells_the_count_and_asks() -> None:
    span = ("--from", "2026-01-01T00:00:00Z", "--to", "2026-01-03T00:00:00Z")
    shown, exit_code = on_terminal("schedule", "backfill", "news", *span, answered=b"y\n")
    assert "2 runs of news: create them?" in shown
    assert "2 runs of news: created" in shown
    assert (exit_code, len(answer("run", "ls")["items"])) == (0, 2)
    told, _ = on_terminal("schedule", "occurrences", "news", *span)
    assert "2026-01-01 02:30 CET" in told
    run_id = answer("run", "ls")["items"][0]["id"]
    assert on_terminal("explain", run_id)[0].startswith("queued")


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        ("2026-11-17T00:42:00Z", "in 48m"),
        ("2026-11-17T00:29:00Z", "02:30 CET"),  # it is the 17th in Berlin already
        ("2026-11-16T22:59:00Z", "Tue 02:30 CET"),
        ("2026-11-10T23:00:00Z", "Tue 02:30 CET"),
        ("2026-11-10T22:59:00Z", "2026-11-17"),
    ],
)
def test_the_next_time_is_told_as_shortly_as_can_be(now: str, shown: str) -> None:
    rule = define(JobDefinition(name="crawl"), cron("30 2 * * *", "Europe/Berlin"), {}, name="news", now=None)
    schedule = SimpleNamespace(definition=rule, next_plan=datetime(2026, 11, 17, 1, 30, tzinfo=UTC))
    cell = soon_cell(schedule, datetime.fromisoformat(now))  # type: ignore[arg-type]
    assert (cell.plain, cell.shown) == ("2026-11-17T01:30:00Z", shown)


def test_every_state_of_a_schedule_has_a_symbol() -> None:
    class _Of:
        def __init__(self, state: str) -> None:
            self.state = state

    states = ("active", "disabled", "paused", "job paused", "job cancelled", "ended")
    assert all(schedule_state_cell(_Of(state)).shown for state in states)  # type: ignore[arg-type]
    assert isinstance(Schedule.state, property)


@pytest.mark.usefixtures("known_url")
def test_a_plan_time_without_a_zone_is_in_the_schedules_own() -> None:
    answer("schedule", "create", "nightly", "crawl", "--cron", "0 2 * * *", "--tz", "Asia/Tokyo")
    at = datetime.fromisoformat(answer("explain", "nightly", "--at", "02:00")["facts"]["at"])
    assert at.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%H:%M") == "02:00"
    assert timedelta(0) <= datetime.now(UTC) - at < timedelta(days=1)
    at = datetime.fromisoformat(answer("explain", "nightly", "--at", "2026-01-31T02:00")["facts"]["at"])
    assert at == datetime(2026, 1, 30, 17, tzinfo=UTC)
    assert "is not a time" in refused(2, "explain", "nightly", "--at", "26:00")
