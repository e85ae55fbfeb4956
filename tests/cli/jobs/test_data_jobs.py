"""`rota job create|update|delete`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rota.store import Store, open_database
from tests.support.processes.command_line import rota


async def _migrate(url: str) -> None:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()


@pytest.fixture(autouse=True)
def _known(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(_migrate(sqlite_url))


def answer(*arguments: str) -> Any:
    done = rota(*arguments[:2], "--json", *arguments[2:])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def refused(*arguments: str) -> str:
    done = rota(*arguments)
    assert done.exit_code in (2, 4, 6), done.stdout
    return done.stderr


def test_a_request() -> None:
    options = ["--method", "post", "--header", "X-Token: hidden", "--header", "Accept: a/b", "--secret", "hidden"]
    more = [
        "--body",
        '{"n": "{payload.n}"}',
        "--expect-status",
        "200",
        "--expect-status",
        "4xx",
        "--retry-on",
        "503",
        "--queue",
        "web",
    ]
    made = answer(
        "job", "create", "ping", "--url", "https://example.com/{payload.id}", *options, *more, "--no-redirects"
    )
    assert made["http"] == {
        "url": "https://example.com/{payload.id}",
        "method": "POST",
        "headers": {"X-Token": "…", "Accept": "a/b"},
        "body": {"n": "{payload.n}"},
        "expect_status": ["200", "4xx"],
        "retry_on": ["503"],
        "redirects": False,
        "max_response": 65_536,
        "secret": "…",
    }
    assert (made["kind"], made["queue"], made["timeout"]) == ("http", "web", "10s")
    assert made["payload_schema"]["required"] == ["id", "n"]
    assert "request\tPOST https://example.com/{payload.id}" in rota("job", "get", "ping").stdout
    assert "hidden" not in rota("job", "get", "ping", "--json").stdout + rota("job", "ls", "--json").stdout
    assert "at $.n: is missing" in refused("run", "enqueue", "ping", '{"id": 1}')
    assert answer("run", "enqueue", "ping", '{"id": 1, "n": 2}')["job"] == "ping"


def test_a_program(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "object", "required": ["x"]}')
    options = ["--env", "A=b=c", "--cwd", "/", "--stdin", "payload", "--retry-exit-code", "3", "--timeout", "1h"]
    made = answer(
        "job",
        "create",
        "tool",
        "--command",
        *options,
        "--payload-schema",
        "@schema.json",
        "--",
        "ls",
        "-l",
        "{payload.x}",
    )
    assert made["command"] == {
        "argv": ["ls", "-l", "{payload.x}"],
        "env": {"A": "b=c"},
        "cwd": "/",
        "stdin": "payload",
        "retry_exit_codes": [3],
    }
    assert (made["timeout"], made["payload_schema"]) == ("1h", {"type": "object", "required": ["x"]})
    assert "command\tls -l {payload.x}" in rota("job", "get", "tool").stdout


def test_a_change_is_a_new_version() -> None:
    assert (
        rota("job", "create", "ping", "--url", "https://example.com/").stdout
        == "ping\thttp\t1\tGET https://example.com/\n"
    )
    changed = answer("job", "update", "ping", "--method", "HEAD", "--set", "priority=5", "--set", "max-attempts=9")
    assert (changed["version"], changed["http"]["method"], changed["priority"]) == (2, "HEAD", 5)
    assert changed["retry"]["max_attempts"] == 9
    back = answer("job", "update", "ping", "--set", "priority=null", "--set", "method=null")
    assert (back["version"], back["http"]["method"], back["priority"]) == (3, "GET", 0)
    assert answer("job", "update", "ping")["version"] == 3


def test_dropping() -> None:
    assert answer("job", "create", "review", "--external")["kind"] == "external"
    rota("run", "enqueue", "review")
    assert "is used by 1 live run\n" in refused("job", "rm", "review")
    assert "`rota job delete review … --yes` does not ask" in refused("job", "rm", "review", "--force")
    assert answer("job", "rm", "review", "--force", "--yes") == {"name": "review", "deleted": True}
    assert "no job is called 'review'" in refused("job", "get", "review")
    assert [run["state"] for run in answer("run", "ls")["items"]] == ["cancelled"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give one of --url, --command, --external and --pipeline"),
        (["--url", "https://example.com", "--external"], "give one of"),
        (["--url", "file:///etc/passwd"], "not an absolute http or https url"),
        (["--url", "https://example.com", "--header", "X"], "'X' has no :"),
        (["--url", "https://example.com", "--header", "Host: x"], "is set by rota itself"),
        (["--url", "https://example.com", "--env", "A=b"], "has no option 'env'"),
        (["--url", "https://example.com", "--set", "steps=[]"], "has no option 'steps'"),
        (["--url", "https://example.com", "--set", "priority"], "has no ="),
        (["--url", "https://example.com", "--body", "@missing"], "cannot read missing"),
        (["--url", "https://example.com", "--payload-schema", "{"], "is not JSON"),
        (["--url", "https://example.com", "--payload-schema", '{"type": 5}'], "not a JSON Schema"),
        (["--command"], "a command is a list"),
    ],
)
def test_what_is_refused(arguments: list[str], problem: str) -> None:
    assert problem in refused("job", "create", "it", *arguments)
    assert answer("job", "ls")["items"] == []
