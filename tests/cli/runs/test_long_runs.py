"""Long runs from the command line: watched, their logs and steps, and retried from a step; as real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from rota import Client, Context, Fail, Order, Rota, Run, RunState
from rota.cli.runs import logs
from rota.cli.terminal import poll
from rota.cli.terminal.poll import Patience
from rota.cli.terminal.progress import bar, percent
from rota.core.progress.notes import LogLine
from rota.errors import SchemaOutdated, Unavailable
from rota.store import Store, open_database
from tests.cli.runs.test_runs import process
from tests.support.wait import PATIENCE

TITLE = "\x1b]0;a new title\x07"


class Crawling:
    """A worker with a job that waits for the test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.app = Rota(url)
        self.go_on = asyncio.Event()
        self.done: list[str] = []
        self.client: Client
        self.app.job(steps=["fetch", {"id": "parse", "name": "Parse it"}, "store"], max_attempts=1)(self.crawl)
        self.app.job(self.many)

    async def crawl(self, ctx: Context, broken: bool = False) -> list[str]:
        """Fetch, parse, store."""
        ctx.log.info("fetching")
        await ctx.step("fetch", self._note, "fetch")
        ctx.log.warning("a\ttab, %s and\nanother line", TITLE)
        await ctx.step("parse", self._parse, ctx)
        if broken:
            raise Fail(f"the disk is full {TITLE}")
        ctx.log.info("the last word")
        return await ctx.step("store", self._note, "store")

    async def many(self, ctx: Context) -> None:
        for number in range(300):
            ctx.skip_step(f"page-{number}")
        await ctx.step("宽字符" * 20, self.go_on.wait)

    async def _parse(self, ctx: Context) -> None:
        ctx.progress(50, f"half of it {TITLE}", step="parse")
        await self.go_on.wait()
        self.done.append("parse")

    async def _note(self, name: str) -> list[str]:
        self.done.append(name)
        return self.done

    async def enqueue(self, *, broken: bool = False) -> str:
        return (await self.client.enqueue(Order("crawl", {"broken": broken} if broken else {}))).id

    async def has_ended(self, *, broken: bool = False) -> str:
        self.go_on.set()
        id = await self.enqueue(broken=broken)
        await self.client.wait(id, "60s")
        return id

    async def rota(self, *arguments: str, shell: str | None = None) -> Any:
        return await process(*arguments, url=self.url, shell=shell)


@asynccontextmanager
async def at_work(url: str) -> AsyncIterator[Crawling]:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()
    crawling = Crawling(url)
    async with crawling.app.running() as client:
        crawling.client = client
        try:
            yield crawling
        finally:
            crawling.go_on.set()


async def started(*arguments: str, url: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "ROTA_DATABASE_URL": url}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rota", *arguments, env=environment, stdout=pipe, stderr=pipe
    )


async def line_with(child: asyncio.subprocess.Process, words: str) -> str:
    assert child.stdout
    async with asyncio.timeout(PATIENCE):
        while words not in (line := (await child.stdout.readline()).decode()):
            assert line, f"it ended before it said {words!r}"
    return line


async def test_watch_tells_every_change_once_until_the_end(database_url: str) -> None:
    async with at_work(database_url) as crawling:
        id = await crawling.enqueue()
        child = await started("run", "watch", id, url=database_url)
        line = await line_with(child, "Parse it")
        crawling.go_on.set()
        rest, complaints = await child.communicate()
        lines = [line, *rest.decode().splitlines()]
        fields = [line.rstrip("\n").split("\t")[1:] for line in lines]
        assert fields[0] == ["running", "1/1", "50", "Parse it: half of it \\x1b]0;a new title\\x07"]
        assert fields[-1] == ["succeeded", "1/1", "100", '["fetch", "parse", "store"]']
        assert len({tuple(line) for line in fields}) == len(fields)
        assert (child.returncode, complaints) == (0, b"")


async def test_watch_in_json_is_a_document_for_each_change(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.enqueue(broken=True)
        child = await started("run", "watch", id[-8:], "--json", url=sqlite_url)
        early = json.loads(await line_with(child, "half of it"))
        crawling.go_on.set()
        rest, _ = await child.communicate()
        last = json.loads(rest.splitlines()[-1])
        assert (early["id"], early["state"], early["progress"]["percentage"]) == (id, "running", 50.0)
        assert [step["state"] for step in early["progress"]["steps"]] == ["succeeded", "running", "pending"]
        assert (last["state"], last["error"]["type"], child.returncode) == ("failed", "Fail", 1)
        assert last == json.loads((await crawling.rota("run", "get", id, "--json")).stdout)


async def test_watch_ends_when_told_and_tells_how(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.enqueue()
        late = await crawling.rota("run", "watch", id, "--timeout", "100ms")
        assert (late.code, late.stderr) == (75, f"error: run {id} is still running\n")
        child = await started("run", "watch", id, url=sqlite_url)
        await line_with(child, "Parse it")
        child.send_signal(signal.SIGINT)
        _, complaints = await child.communicate()
        assert (child.returncode, complaints.strip()) == (130, b"error: interrupted; the run continues")
        watching = asyncio.create_task(crawling.rota("run", "watch", id))
        assert (await crawling.rota("run", "cancel", id, "--reason", "enough")).code == 0
        done = await watching
        assert (done.code, done.stdout.splitlines()[-1].split("\t")[1:]) == (3, ["cancelled", "1/1", "50", "enough"])
        assert (await crawling.rota("run", "watch", "ffffffff")).code == 4


@pytest.mark.parametrize("command", [["watch"], ["logs", "-f"]], ids=" ".join)
async def test_a_reader_that_goes_away_ends_it_quietly(sqlite_url: str, command: list[str]) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.enqueue()
        child = await started("run", *command, id, url=sqlite_url)
        await line_with(child, "Parse it" if command == ["watch"] else "warning")
        assert child.stdout
        transport = child._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
        transport.close()
        async with asyncio.timeout(PATIENCE):
            assert await child.wait() == (141 if command == ["watch"] else 0)
        assert child.stderr
        assert await child.stderr.read() == b""


async def test_logs_have_time_level_attempt_logger_and_text(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.has_ended()
        done = await crawling.rota("run", "logs", id)
        fields = [line.split("\t") for line in done.stdout.splitlines()]
        own = ["1", "rota.job.crawl"]
        assert [line[1:] for line in fields] == [
            ["info", *own, "fetching"],
            ["warning", *own, "a\\ttab, \\x1b]0;a new title\\x07 and\\nanother line"],
            ["info", *own, "the last word"],
        ]
        assert fields[0][0].endswith("Z")
        loud = await crawling.rota("run", "logs", id, "--level", "warning", "--json")
        assert json.loads(loud.stdout)["text"] == f"a\ttab, {TITLE} and\nanother line"
        last = await crawling.rota("run", "logs", id, "-n", "2", "--attempt", "1")
        assert last.stdout.splitlines() == done.stdout.splitlines()[1:]
        assert (await crawling.rota("run", "logs", id, "--attempt", "2")).stdout == ""
        first, second = [
            json.loads(line)
            for line in (await crawling.rota("run", "logs", id, "--json", "--limit", "2")).stdout.splitlines()
        ]
        assert [first["text"], second["text"]] == ["fetching", f"a\ttab, {TITLE} and\nanother line"]
        rest = await crawling.rota("run", "logs", id, "--cursor", first["cursor"])
        assert rest.stdout.splitlines() == done.stdout.splitlines()[1:]
        assert (await crawling.rota("run", "logs", id, "--level", "loud")).code == 2


async def test_following_a_log_misses_nothing_that_was_said_before_the_end(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.enqueue()
        child = await started("run", "logs", id, "--follow", "--tail", "1", url=sqlite_url)
        first = await line_with(child, "")
        assert "warning" in first or "fetching" in first
        crawling.go_on.set()
        rest, complaints = await child.communicate()
        assert rest.decode().endswith("\tthe last word\n")
        assert (child.returncode, complaints) == (0, b"")


async def test_the_state_is_looked_at_before_the_log_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is written between reading the log and the run's state must not be missed."""
    monkeypatch.setattr(logs, "_EVERY", 0.0)
    said: list[LogLine] = []
    states = [RunState.RUNNING, RunState.RUNNING, RunState.SUCCEEDED]

    class Racing:
        """Write a line, and advance the run, after each read of the log."""

        state = RunState.QUEUED

        async def get(self, id: str) -> Run:
            facts: dict[str, Any] = {**dict.fromkeys(Run.__struct_fields__), "id": id, "state": self.state}
            return Run(**facts)

        async def logs(self, id: str, *, cursor: str | None) -> list[LogLine]:
            page = [line for line in said if cursor is None or line.cursor > cursor]
            if not page and states:
                self.state = states.pop(0)
                said.append(_line(f"1.{len(said) + 1}"))
            return page

    wanted = logs.LogOptions(None, "debug", None, True)
    found = [line.cursor async for line in logs._lines(cast("Client", Racing()), "1", wanted)]
    assert found == ["1.1", "1.2", "1.3"]


def _line(cursor: str) -> LogLine:
    at = datetime.now(UTC)
    return LogLine(at=at, level="info", logger="x", text="", attempt=1, fence=1, cursor=cursor)


async def test_ctrl_c_ends_following_and_not_the_run(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        child = await started("run", "logs", await crawling.enqueue(), "-f", url=sqlite_url)
        await line_with(child, "fetching")
        child.send_signal(signal.SIGINT)
        _, complaints = await child.communicate()
        assert (child.returncode, complaints) == (130, b"error: interrupted; the run continues\n")


async def test_steps_are_listed_and_shown_with_their_run(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.has_ended(broken=True)
        listed = await crawling.rota("run", "steps", id)
        rows = [line.split("\t") for line in listed.stdout.splitlines()]
        assert [(row[0], row[1], row[4]) for row in rows] == [
            ("fetch", "succeeded", "100"),
            ("parse", "succeeded", "100"),
            ("store", "skipped", ""),
        ]
        items = json.loads((await crawling.rota("run", "steps", id, "--json")).stdout)["items"]
        assert [item["result"] for item in items] == [["fetch"], None, None]
        shown = (await crawling.rota("run", "get", id)).stdout.splitlines()
        assert "progress\t66.67" in shown
        assert "steps\tfetch succeeded, parse succeeded, store skipped" in shown


async def test_a_retry_may_keep_steps(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.has_ended(broken=True)
        crawling.done.clear()
        anew = await crawling.rota("run", "retry", id, "--from-step", "parse", "--wait", "--json")
        assert json.loads(anew.stdout)["retry_of"] == id
        assert crawling.done == ["parse"]
        kept = json.loads((await crawling.rota("run", "retry", id, "--keep-steps", "--wait", "--json")).stdout)
        assert crawling.done == ["parse"]
        steps = (await crawling.rota("run", "steps", kept["id"], "--json")).stdout
        assert [step["kept_from"] for step in json.loads(steps)["items"]] == [id, id, None]
        unreached = await crawling.rota("run", "retry", id, "--from-step", "store")
        assert unreached.code == 0
        for wrong, says in ((["--from-step", "prase"], "did you mean 'parse'"), (["--from-step", "parse"], "not both")):
            refused = await crawling.rota("run", "retry", id, *wrong, *(["--keep-steps"] if says == "not both" else []))
            assert refused.code == 2
            assert says in refused.stderr


async def test_a_run_without_steps_has_none(sqlite_url: str) -> None:
    store = Store(open_database(sqlite_url))
    await store.migrate()
    await store.close()
    app = Rota(sqlite_url)

    async def quiet() -> None: ...

    run = await app.job(quiet).aenqueue()
    for arguments in (["steps"], ["logs"], ["logs", "--json"]):
        done = await process("run", *arguments, run.id, url=sqlite_url)
        assert done == (0, "", "")
    refused = await process("run", "logs", run.id, "--tail", "0", url=sqlite_url)
    assert refused.code == 2
    await app.aclose()


async def test_a_database_that_is_away_for_a_moment_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(poll, "_REST", 0.0)
    answers: list[int | Exception] = [1, Unavailable("no connection"), Unavailable("no connection"), 2]

    async def question() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    patient = Patience()
    assert [await patient.ask(question), await patient.ask(question)] == [1, 2]
    assert capsys.readouterr().err == "note: no connection; retrying\n"
    answers.append(SchemaOutdated(1, 2))
    with pytest.raises(SchemaOutdated):
        await patient.ask(question)
    for late in (Patience(), patient):
        late._longest = -1.0
        answers.append(Unavailable("gone"))
        with pytest.raises(Unavailable):
            await late.ask(question)


@pytest.mark.parametrize(
    ("percentage", "drawn", "words"), [(None, 0, ""), (0, 0, "0 %"), (99.99, 9, "99 %"), (100, 10, "100 %")]
)
def test_only_what_is_done_looks_done(percentage: float | None, drawn: int, words: str) -> None:
    assert bar(percentage, 10) == "█" * drawn + "░" * (10 - drawn)
    assert percent(percentage) == words
