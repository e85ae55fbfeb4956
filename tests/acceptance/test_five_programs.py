"""The five programs of the pages "coming from": what the other scheduler does with its own equals what rota does.

Each page's program is imported, and its plan times are compared with those of `programs.py`. APScheduler, Celery and
rq-scheduler also run theirs. Not run: crontabs, CronJobs and workflows, whose daemon, cluster and service no package
brings; timers are checked by systemd, where it is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

import pytest

from rota.core.calendar.rules import Rule, Times, compiled
from rota.core.formats.calendar_events import cron_of
from rota.core.schedules.documents import parse
from rota.values.instants import micros_at
from tests.support.documents.pages import ROOT, Part, parts
from tests.support.processes.command_line import answer
from tests.support.servers.redis import server

PAGES = ROOT / "docs" / "coming-from"
PEERS = Path(__file__).parent / "peers"
NAMES = ["sync", "report", "fetch", "rebuild", "launch"]
AT = micros_at(datetime(2026, 3, 27, 13, 31, 7, tzinfo=UTC))  # a Friday before clocks change


def blocks(page: str) -> list[Part]:
    """Return the code of the section with the five programs."""
    all_parts = parts(PAGES / f"{page}.md")
    ours = next(place for place, part in enumerate(all_parts) if part.options.get("file") == "programs.py")
    others = [part for part in all_parts[:ours] if not part.is_comment]
    return [*others, all_parts[ours]]


def some(times: Times) -> list[int | None]:
    return list(accumulate(repeat(AT, 5), lambda at, _: None if at is None else times.next(at)))[1:]


@pytest.fixture(scope="module")
def ours() -> dict[str, list[int | None]]:
    """Plan times of the five schedules in rota, which are the same on every page."""
    space: dict[str, Any] = {}
    exec(blocks("cron")[-1].text, space)
    return {one.name: some(compiled(one.definition.rule, "")) for one in space["app"].registry.schedules}


def planned(document: dict[str, Any]) -> list[int | None]:
    """Return plan times; an interval that counts from when the program was started counts from 1970, as rota's does."""
    parsed = parse({key: value for key, value in document.items() if key not in ("anchor", "start_at")})
    return some(compiled(Rule(parsed.trigger), ""))


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*command: str | Path, **environment: str) -> list[str]:
    """Run a program of the other scheduler in the folder; return the lines that it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command], env={**os.environ, **environment}, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("page", "importer", "file", "names"),
    [
        ("cron", "crontab", "old.cron", ["sync", "report", "fetch", "rebuild"]),
        ("kubernetes", "kubernetes", "cronjobs.yaml", ["sync", "report", "fetch", "rebuild"]),
        ("github-actions", "github", "nightly.yml", ["fetch"]),
    ],
)
def test_programs_of_commands(
    page: str, importer: str, file: str, names: list[str], ours: dict[str, list[int | None]]
) -> None:
    Path(file).write_text(blocks(page)[-2].text)
    found = answer("import", importer, file)
    assert found["unconverted"] == []
    commands = [one["payload"]["command"] for one in found["schedule"]]
    assert all(name in command for name, command in zip(names, commands, strict=True))
    assert [planned(one) for one in found["schedule"]] == [ours[name] for name in names]
    for command in commands:
        subprocess.run(["bash", "-n", "-c", command.replace("\\%", "%")], check=True)


TIMES_IN_COMMENTS = re.compile(r"(\w+): ([^·\n]+?) *(?:·|$)", re.MULTILINE)


def units(ours: dict[str, list[int | None]]) -> Iterator[str]:
    """Write the two units of the page, and yield the times of the others, which are in a comment."""
    for part in blocks("systemd")[:-1]:
        path = Path(part.options["file"])
        path.parent.mkdir(exist_ok=True)
        path.write_text(part.text)
    (line,) = [text for text in Path("units/rebuild.timer").read_text().splitlines() if text.startswith("# sync")]
    for name, event in TIMES_IN_COMMENTS.findall(line):
        expression, zone = cron_of(event)
        document = {"cron": expression, **({"timezone": zone} if zone else {})}
        expected = ours[name]
        assert planned({"name": name, "job": name, **document})[: len(expected)] == expected, event
        yield event


def test_units_of_systemd(ours: dict[str, list[int | None]]) -> None:
    events = list(units(ours))
    assert len(events) == 4
    (rebuild,) = answer("import", "systemd", "units")["schedule"]
    assert planned(rebuild) == ours["rebuild"]
    assert (rebuild["timeout"], rebuild.get("overlap")) == ("10m", None)
    if analyze := shutil.which("systemd-analyze"):
        subprocess.run([analyze, "calendar", *events], check=True, stdout=subprocess.DEVNULL)
        Path("units/rebuild.service").write_text(
            Path("units/rebuild.service").read_text().replace("/usr/local/bin/rebuild", "/bin/true")
        )
        subprocess.run([analyze, "verify", *sorted(map(str, Path("units").resolve().iterdir()))], check=True)


def test_the_program_of_apscheduler(ours: dict[str, list[int | None]]) -> None:
    Path("there.py").write_text(blocks("apscheduler")[-2].text)
    ran = run(PEERS / "apscheduler_program.py")
    found = answer("import", "apscheduler", "sqlite:///kept.sqlite")
    assert {one["name"]: planned(one) for one in found["schedule"]} == ours
    assert (sorted(ran), found["unconverted"]) == (sorted(NAMES), [])


def test_the_program_of_celery(ours: dict[str, list[int | None]]) -> None:
    with server() as redis:
        url = f"redis://127.0.0.1:{redis.port}"
        code = blocks("celery-beat")[-2].text
        Path("shop.py").write_text(code.replace('broker="redis://localhost"', f'broker="{url}", backend="{url}"'))
        assert sorted(run(PEERS / "celery_program.py")) == sorted(NAMES)
        there = run("-m", "rota", "import", "celery", "shop:app", "--json", PYTHONPATH=".")
    found = json.loads(" ".join(there))
    assert {one["name"]: planned(one) for one in found["schedule"]} == {name: ours[name] for name in NAMES[:-1]}
    (fetch,) = [one for one in found["schedule"] if one["name"] == "fetch"]
    assert fetch["payload"] == {"url": "https://example.com"}  # given by position there


def test_the_program_of_rq_scheduler(ours: dict[str, list[int | None]]) -> None:
    with server() as redis:
        url = f"redis://127.0.0.1:{redis.port}/0"
        Path("shop.py").write_text("\n".join(f"def {name}(**_): ..." for name in NAMES))
        Path("there.py").write_text(blocks("rq-scheduler")[-2].text.replace("Redis()", f'Redis.from_url("{url}")'))
        run("there.py", TZ="Europe/Berlin")
        found = answer("import", "rq", url, "--tz", "Europe/Berlin")
        assert {one["job"]: planned(one) for one in found["schedule"]} == ours
        assert (found["unconverted"], found["remarks"]) == ([], [])
        assert sorted(run(PEERS / "rq_program.py", url)) == sorted(NAMES)
