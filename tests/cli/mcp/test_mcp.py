"""`rota mcp`: tools of a role, reads at once, writes after their effect was shown and confirmed."""

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from rota.api import asgi
from rota.app import Rota
from rota.cli.mcp.calls import Calls
from rota.cli.mcp.connection import Connection, InProcess, OverHttp
from rota.cli.mcp.protocol import VERSIONS, Session
from rota.cli.mcp.tools import tools_of
from rota.client.client import Order
from rota.client.parts import all_verbs
from rota.core.access.roles import Identity, Role
from rota.core.calendar.triggers import every
from rota.engine.loops.declare import declare_schedules
from rota.remote.transport import Transport
from rota.store import Store, open_database
from tests.support.processes.command_line import rota
from tests.support.servers.http_server import serving

DOCUMENT: dict[str, Any] = {}


class Agent:
    """An agent, as the protocol sees it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def ask(self, method: str, **params: Any) -> Any:
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = msgspec.json.decode(await self._session.answer(line) or b"null")
        return answer.get("result", answer.get("error"))

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.ask("tools/call", name=tool, arguments=arguments)
        content = json.loads(result["content"][0]["text"])
        return {**content, "is_error": True} if result["isError"] else content

    async def names(self) -> set[str]:
        return {tool["name"] for tool in (await self.ask("tools/list"))["tools"]}


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = Rota(database_url, auth=False)

    @app.job
    async def crawl(url: str, password: str = "") -> None: ...

    app.schedule("news", crawl, every("30m"), payload={"url": "https://example.com"})
    store = Store(open_database(database_url))
    await store.migrate()
    await store.save_jobs(app.registry.definitions())
    await declare_schedules(store, app.registry.schedules, app.registry.schedules.providers)
    await store.close()
    yield app
    await app.aclose()


async def agent(connection: Connection, role: Role, clock: Callable[[], float] = time.monotonic) -> Agent:
    if not DOCUMENT:  # the same for all: it takes most of a second to make
        DOCUMENT.update((await connection.ask("GET", "/openapi.json")).content)
    return Agent(Session(Calls(tools_of(DOCUMENT, Identity("mcp:test", role)), connection, clock)))


async def in_process(app: Rota, role: Role = Role.OPERATOR, clock: Callable[[], float] = time.monotonic) -> Agent:
    return await agent(InProcess(app, Identity("mcp:test", role)), role, clock)


async def test_a_viewer_has_every_reading_verb_and_no_other(app: Rota) -> None:
    viewer = await in_process(app, Role.VIEWER)
    listed = (await viewer.ask("tools/list"))["tools"]
    assert all(tool["annotations"]["readOnlyHint"] and "confirm" not in str(tool["inputSchema"]["properties"])
               for tool in listed)  # fmt: skip
    reading = {one.operation for one in all_verbs() if one.verb.role is Role.VIEWER}
    assert reading <= {tool["name"] for tool in listed}
    refused = await viewer.ask("tools/call", name="cancel_run", arguments={"id": "x"})
    assert (refused["code"], "your role may not" in refused["message"]) == (-32602, True)


async def test_tools_of_other_roles(app: Rota) -> None:
    by_role = {role: await (await in_process(app, role)).names() for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN)}
    assert by_role[Role.VIEWER] < by_role[Role.OPERATOR] < by_role[Role.ADMIN]
    no_tools = {"create_token", "revoke_token", "list_tokens", "claim_runs", "complete_run", "create_session"}
    assert not by_role[Role.ADMIN] & no_tools
    writing = {one.operation for one in all_verbs() if one.part not in ("tokens", "external")}
    assert writing - by_role[Role.ADMIN] <= {"get_time", "get_openapi"}


async def test_every_schema_stands_by_itself(app: Rota) -> None:
    for tool in (await (await in_process(app, Role.ADMIN)).ask("tools/list"))["tools"]:
        schema = tool["inputSchema"]
        text = json.dumps(schema)
        mentioned = {part.split('"')[0] for part in text.split("#/$defs/")[1:]}
        assert mentioned == set(schema.get("$defs", {})), tool["name"]
        assert "#/components" not in text
        assert set(schema["required"]) <= set(schema["properties"])


async def test_reads_are_answered_at_once_and_secrets_masked(app: Rota) -> None:
    run = await (await app.connect()).enqueue(Order("crawl", {"url": "https://example.com", "password": "hunter2"}))
    viewer = await in_process(app, Role.VIEWER)
    assert (await viewer.call("get_run", id=run.id))["payload"] == {"url": "https://example.com", "password": "…"}
    assert [one["id"] for one in (await viewer.call("list_runs", job="crawl", limit=5))["items"]] == [run.id]
    assert "is_error" not in await viewer.call("explain_run", id=run.id)
    missing = await viewer.call("get_run", id="nothing")
    assert (missing["is_error"], missing["code"]) == (True, "unknown-run")


async def test_a_write_is_done_after_it_was_confirmed(app: Rota) -> None:
    run = await (await app.connect()).enqueue(Order("crawl", {"url": "https://example.com"}))
    operator = await in_process(app)
    offer = await operator.call("cancel_run", id=run.id, body={"reason": "wrong page"})
    assert (offer["done"], offer["would"]["now"]["state"]) == (False, "queued")
    assert offer["would"]["request"] == f"POST /api/v1/runs/{run.id}/cancel"
    assert (await (await app.connect()).get(run.id)).state == "queued"
    done = await operator.call("cancel_run", id=run.id, body={"reason": "wrong page"}, confirm=offer["confirm"])
    assert (done["done"], done["result"]["state"]) == (True, "cancelled")
    events = await (await app.connect()).events(run.id)
    assert events[-1].actor == "mcp:test"
    again = await operator.call("cancel_run", id=run.id, body={"reason": "wrong page"}, confirm=offer["confirm"])
    assert again["is_error"]


async def test_a_token_is_for_one_write_as_it_was_shown(app: Rota) -> None:
    passed = [0.0]
    first, second = [
        await (await app.connect()).enqueue(Order("crawl", {"url": "https://example.com"})) for _ in range(2)
    ]
    operator = await in_process(app, clock=lambda: passed[0])
    offer = await operator.call("cancel_run", id=first.id)
    other = await operator.call("cancel_run", id=second.id, confirm=offer["confirm"])
    assert "not those for which" in other["detail"]
    invented = await operator.call("cancel_run", id=first.id, confirm="invented")
    assert "unknown" in invented["detail"]
    offer = await operator.call("pause_schedule", name="news")
    await (await app.connect()).schedules.disable("news")
    changed = await operator.call("pause_schedule", name="news", confirm=offer["confirm"])
    assert "has changed since" in changed["detail"]
    offer = await operator.call("cancel_run", id=first.id)
    passed[0] = 301.0
    assert (
        "older than five minutes"
        in (await operator.call("cancel_run", id=first.id, confirm=offer["confirm"]))["detail"]
    )
    assert {(await (await app.connect()).get(run.id)).state.value for run in (first, second)} == {"queued"}


async def test_a_write_to_many_is_refused_if_there_are_more_by_now(app: Rota) -> None:
    client = await app.connect()
    order = Order("crawl", {"url": "https://example.com"})
    await client.enqueue(order)
    operator = await in_process(app)
    body = {"action": "cancel", "filter": {"job": "crawl"}}
    offer = await operator.call("bulk_runs", body=body)
    assert offer["would"]["dry_run"]["count"] == 1
    late = await client.enqueue(order)
    refused = await operator.call("bulk_runs", body=body, confirm=offer["confirm"])
    assert "has changed since" in refused["detail"]
    assert (await client.get(late.id)).state == "queued"
    offer = await operator.call("bulk_runs", body=body)
    assert (await operator.call("bulk_runs", body=body, confirm=offer["confirm"]))["result"]["done"] == 2


async def test_changes_of_schedules_are_simulated(app: Rota) -> None:
    admin = await in_process(app, Role.ADMIN)
    offer = await admin.call("update_schedule", name="news", body={"every": "12h"})
    assert offer["would"]["simulated"]["schedules"][0]["name"] == "news"
    wrong = await admin.call("update_schedule", name="news", body={"every": "soon"})
    assert (wrong["is_error"], wrong["code"]) == (True, "bad-duration")
    document = {"name": "late", "job": "crawl", "cron": "0 9 * * *", "payload": {"url": "x"}}
    offer = await admin.call("create_schedule", body=document)
    assert "simulated" in offer["would"]
    assert (await admin.call("create_schedule", body=document, confirm=offer["confirm"]))["done"]
    assert (await (await app.connect()).schedules.get("late")).name == "late"
    offer = await admin.call("backfill_schedule", name="news",
                             body={"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"})  # fmt: skip
    assert "dry_run" in offer["would"]
    assert (await (await app.connect()).page()).runs == []


async def test_over_http_the_token_counts_too(app: Rota) -> None:
    other = Rota(app.config.database_url, auth=False)
    with serving(asgi(other), other) as site:
        connection = OverHttp(Transport(site.url, None, "10s"))
        remote = await agent(connection, Role.OPERATOR)
        assert (await remote.call("get_schedule", name="news"))["name"] == "news"
        assert (await remote.call("get_schedule", name="nothing"))["code"] == "unknown-schedule"
        offer = await remote.call("pause_schedule", name="news")
        assert (await remote.call("pause_schedule", name="news", confirm=offer["confirm"]))["done"]
        await connection.close()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}', None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": 5}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": 5}', -32602),
    ],
)
async def test_bad_messages(line: bytes, code: int | None) -> None:
    class Nowhere:
        async def ask(self, *_: Any) -> Any: ...

        async def close(self) -> None: ...

    answer = await Session(Calls({}, Nowhere())).answer(line)
    assert answer is not None
    assert msgspec.json.decode(answer)["error"]["code"] == (code or -32602)


async def test_the_handshake() -> None:
    class Nowhere:
        async def ask(self, *_: Any) -> Any: ...

        async def close(self) -> None: ...

    alone = Agent(Session(Calls({}, Nowhere())))
    assert (await alone.ask("initialize", protocolVersion=VERSIONS[-1]))["protocolVersion"] == VERSIONS[-1]
    assert (await alone.ask("initialize", protocolVersion="1999-01-01"))["protocolVersion"] == VERSIONS[0]
    assert await alone.ask("ping") == {}
    session = Session(Calls({}, Nowhere()))
    assert await session.answer(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}') is None


def test_the_command(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("ROTA_AUTH", "1")  # this is about servers
    assert rota("mcp", "--database", "sqlite:///nowhere.db").exit_code == 69
    assert rota("migrate").exit_code == 0
    ask = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "get_overview"}}\n'
    done = rota("mcp", stdin=f"\n{ask}")
    assert (done.exit_code, json.loads(done.stdout)["result"]["isError"]) == (0, False)
