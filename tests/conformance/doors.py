"""Doors: the ways to reach a verb. Each takes the same call and gives an `Outcome`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec
from click.testing import CliRunner
from starlette.types import ASGIApp

from rota.cli import root
from rota.errors import RotaError
from rota.remote import RemoteClient
from rota.server import asgi
from rota.values.durations import format_duration
from rota.values.scope import Scope
from rota.verbs.answers import is_silent
from rota.verbs.pages import cursor_at
from rota.verbs.parameters import Parameter, Place, has_place, request_of
from rota.verbs.revisions import written_condition
from rota.verbs.spread import dotted
from rota.verbs.verb import Declared, Verb
from rota.verbs.wire import Body, wired_in
from tests.conformance.case import BLOCKING, CLIENT, COMMAND, REMOTE, REST, arguments_of, names_of, route_for, routes_of
from tests.conformance.forms import Outcome, Problem, plain_answer, problem_of, types_of
from tests.conformance.world import World, declared_app
from tests.support.commands import argv_of, command_of
from tests.support.databases.transactions import counted
from tests.support.servers.http_server import serving

ACTOR = "somebody"
_HOST = "http://127.0.0.1:7682"
_PAGE = 2


class Call(msgspec.Struct, frozen=True):
    """A verb with its arguments. `scope` limits the caller; `token` is the caller's, if there is a scope."""

    verb: str
    args: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}
    scope: tuple[str, str] | None = None
    token: str | None = None
    sent: tuple[str, str, Any, str | None] | None = None
    typed: tuple[str, ...] | None = None

    def with_actor(self) -> dict[str, Any]:
        """Return the named arguments and the caller, if the verb wants to know."""
        routes = routes_of(self.verb)
        is_told = has_place(request_of(routes[0]), Place.ACTOR) if routes else "actor" in names_of(self.verb)
        return {**self.named, "actor": ACTOR} if is_told else dict(self.named)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments by name."""
        return arguments_of(self.verb, self.args, self.named)


def method_of(client: Any, verb: str) -> Any:
    """Return the method of a client that a verb is: `method_of(client, "quotas.update")`."""
    part, _, name = verb.rpartition(".")
    return getattr(getattr(client, part) if part else client, name)


async def _outcome(call: Call, method: Callable[..., Awaitable[Any]], named: Mapping[str, Any]) -> Outcome:
    try:
        result = await method(*call.args, **named)
        return Outcome(plain_answer(routes_of(call.verb), result), types=types_of(result))
    except RotaError as error:
        return Outcome(problem=problem_of(error), types=type(error).__name__)


async def by_client(world: World, call: Call) -> Outcome:
    """Call the asynchronous client."""
    client = world.client if call.scope is None else world.client.within(call.scope)
    return await _outcome(call, method_of(client, call.verb), call.with_actor())


async def by_blocking(world: World, call: Call) -> Outcome:
    """Call the synchronous client, from another thread, as it would block this one."""

    async def method(*args: Any, **named: Any) -> Any:
        return await asyncio.to_thread(method_of(world.app.blocking, call.verb), *args, **named)

    try:
        return await _outcome(call, method, call.with_actor())
    finally:
        await asyncio.to_thread(world.app.close)


async def by_remote(world: World, call: Call) -> Outcome:
    """Call the remote client, whose connection leads to the ASGI application without a socket."""
    async with RemoteClient(_HOST, call.token) as client:
        client._transport._session = _Session(asgi(world.app), client._transport._headers)  # type: ignore[assignment]
        return await _outcome(call, method_of(client, call.verb), call.with_actor())


class _Session:
    """What `Transport` uses of an `aiohttp.ClientSession`."""

    def __init__(self, application: ASGIApp, headers: Mapping[str, str]) -> None:
        self._http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=application), headers=headers)

    @asynccontextmanager
    async def request(
        self, method: str, url: Any, *, data: bytes | None, headers: Mapping[str, str], **_: Any
    ) -> AsyncIterator[_Response]:
        yield _Response(await self._http.request(method, str(url), content=data, headers=headers))

    async def close(self) -> None:
        await self._http.aclose()


class _Response:
    """What `Transport` uses of an `aiohttp.ClientResponse`."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.content = self
        self._body = response.content

    async def read(self) -> bytes:
        return self._body

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._body


async def by_rest(world: World, call: Call) -> Outcome:
    """Send a request, and count what it takes."""
    headers = {"authorization": f"Bearer {call.token}"} if call.token else {}
    transport = _Counting(world)
    async with httpx2.AsyncClient(transport=transport, base_url=_HOST, headers=headers) as http:
        outcome = await _requested(http, call)
    return msgspec.structs.replace(outcome, transactions=transport.most)


class _Counting(httpx2.ASGITransport):
    """Connection to the application. `most` are the transactions of the request that took the most."""

    def __init__(self, world: World) -> None:
        super().__init__(app=asgi(world.app))
        self._database = world.store.database
        self.most = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        with counted(self._database) as transactions:
            response = await super().handle_async_request(request)
        self.most = max(self.most, len(transactions))
        return response


async def _requested(http: httpx2.AsyncClient, call: Call) -> Outcome:
    """Send a request, written from the declaration alone. A list is read page by page, two items each."""
    if call.sent is not None:
        return await _by_hand(http, *call.sent)
    arguments = call.arguments()
    request = _Written(route_for(call.verb, arguments), arguments)
    if request.is_list and "limit" not in arguments:
        return await _all_pages(http, request)
    return _answered(await request.send(http), request)


async def _by_hand(http: httpx2.AsyncClient, method: str, path: str, body: Any, key: str | None) -> Outcome:
    headers = {} if key is None else {"Idempotency-Key": key}
    response = await http.request(method, f"/api/v1{path}", json=body, headers=headers)
    if response.status_code >= 400:
        return Outcome(problem=_problem_in(response.json(), response.status_code))
    return Outcome(response.json())


async def _all_pages(http: httpx2.AsyncClient, request: _Written) -> Outcome:
    items: list[Any] = []
    cursor = None
    while True:
        page = {"limit": str(_PAGE)} | ({} if cursor is None else {"cursor": cursor})
        response = await request.send(http, **page)
        if response.status_code >= 400:
            return _answered(response, request)
        plain = response.json()
        assert set(plain) == {"items", "next_cursor"}
        assert len(plain["items"]) <= _PAGE
        items += plain["items"]
        cursor = plain["next_cursor"]
        if cursor is None:
            return Outcome(items)


def _answered(response: httpx2.Response, request: _Written) -> Outcome:
    if response.status_code >= 400:
        assert response.headers["content-type"] == "application/problem+json", response.text
        return Outcome(problem=_problem_in(response.json(), response.status_code))
    if response.status_code == 204:
        assert response.content == b""
        return Outcome()
    plain = response.json()
    if request.is_list or request.has_items:
        return Outcome(plain["items"])
    _check_headers(request.declared.verb, response, plain)
    return Outcome(plain)


def _check_headers(verb: Verb, response: httpx2.Response, plain: Mapping[str, Any]) -> None:
    """Check that the headers say where the answer is, which version it has, and whether it is new."""
    if verb.location is not None:
        names = {name: quote(str(plain[name]), safe="") for name in ("id", "name") if name in plain}
        assert response.headers["location"] == "/api/v1" + verb.location.format(**names)
    if verb.etag in plain:
        assert response.headers["etag"] == f'"{plain[verb.etag]}"'
    if verb.created is None or "created" in plain:
        assert response.status_code == (201 if verb.created is not None and plain["created"] else verb.status)


def _problem_in(plain: Mapping[str, Any], status: int | None) -> Problem:
    assert plain["type"] == f"urn:rota:problem:{plain['code']}"
    assert plain.get("status") == status
    place = plain["pointer"].rpartition("/")[2] if "pointer" in plain else None
    return Problem(plain["code"], status, plain["detail"], plain.get("hint"), plain.get("field"), place)


class _Written:
    """A request as a caller without rota's Python would write it."""

    def __init__(self, declared: Declared, arguments: Mapping[str, Any]) -> None:
        self.declared = declared
        self._parts: dict[Place, dict[str, Any]] = {place: {} for place in Place}
        form = declared.verb.body
        own: dict[str, Any] = {}
        for name, value in arguments.items():
            parameter = request_of(declared).parameters.get(name)
            if form is not None and (parameter is None or parameter.place is Place.BODY):
                own[name] = value
            elif parameter is None:  # an unknown one, which must be refused
                self._parts[Place.QUERY if request_of(declared).body is None else Place.BODY][name] = value
            elif parameter.spread is not None:
                self._parts[Place.QUERY] |= dotted(parameter.written(value))
            elif parameter.place is Place.CURSOR:
                self._parts[Place.QUERY]["cursor"] = cursor_at(value)
            elif parameter.place is Place.CONDITION:
                self._parts[parameter.place][name] = value
            else:
                self._parts[parameter.place][parameter.wire_name] = _in_json(value, parameter)
        if form is not None:
            self._parts[Place.BODY] = _whole_body(form, own, self._parts[Place.PATH])

    @cached_property
    def is_list(self) -> bool:
        declared = self.declared
        return declared.verb.page is not None or (plain_list(declared) and "cursor" in request_of(declared).parameters)

    @cached_property
    def has_items(self) -> bool:
        return plain_list(self.declared)

    async def send(self, http: httpx2.AsyncClient, **page: str) -> httpx2.Response:
        verb = self.declared.verb
        path = "/api/v1" + verb.path.format_map(
            {name: quote(str(value), safe="") for name, value in self._parts[Place.PATH].items()}
        )
        has_body = request_of(self.declared).body is not None
        sends_none = verb.optional_body and not self._parts[Place.BODY]
        key = self._parts[Place.KEY].get("idempotency_key")
        revision = self._parts[Place.CONDITION].get("expected_revision")
        conditions = written_condition(revision)
        return await http.request(
            verb.method,
            path,
            params=[*_in_query(self._parts[Place.QUERY]), *page.items()],
            json=self._parts[Place.BODY] if has_body and not sends_none else None,
            headers={**conditions, **({} if key is None else {"Idempotency-Key": key})},
        )


def _whole_body(form: Body, arguments: Mapping[str, Any], path: Mapping[str, Any]) -> Any:
    """Return a body of a form of its own. A wrong argument stands in it as it is."""
    try:
        return msgspec.to_builtins(form.encode(arguments, path))
    except RotaError:
        for name, value in arguments.items():
            rest = {other: item for other, item in arguments.items() if other != name}
            with suppress(RotaError, KeyError):
                plain = value.isoformat() if isinstance(value, datetime) else value
                body = form.encode(rest, path)
                within = "changes" if "changes" in body and name not in body else None
                added = {name: plain} if within is None else {within: {**body[within], name: plain}}
                return msgspec.to_builtins({**body, **added})
        raise


def plain_list(declared: Declared) -> bool:
    """Return whether the verb returns a list."""
    return request_of(declared).lists


def _in_query(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        pairs += [(name, item if isinstance(item, str) else json.dumps(item)) for item in items if item is not None]
    return pairs


def _in_json(value: Any, parameter: Parameter) -> Any:
    """Return a value as JSON, as the documentation of the API says: durations, scopes and times are texts."""
    wired = wired_in(parameter.annotation)
    if value is None:
        return None if wired is None else wired.absent
    if parameter.wire_name == "cursor" and wired is not None and wired.encode is not None:
        return wired.encode(value)
    match value:
        case timedelta():
            return format_duration(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case Scope():
            return f"{value.kind}/{value.id}"
        case (str() as kind, str() as id) if "scope" in parameter.name:
            return f"{kind}/{id}"
        case Enum():
            return value.value
        case _ if wired is not None and wired.encode is not None and not isinstance(value, str | int | dict | list):
            return msgspec.to_builtins(wired.encode(value))
        case _:
            return msgspec.to_builtins(value)


async def by_command(world: World, call: Call) -> Outcome:
    """Run the command with `--json`: on the database, or on a server, which alone knows the scope of a caller."""
    if call.token is not None:
        app = declared_app(world.url, auth=True)
        with serving(asgi(app), app) as site:
            return await _by_command(call, {"ROTA_SERVER": site.url, "ROTA_TOKEN": call.token})
    return await _by_command(call, {"ROTA_DATABASE_URL": world.url, "ROTA_HTTP_ALLOW": world.app.config.http_allow})


async def _by_command(call: Call, environment: Mapping[str, str]) -> Outcome:
    if call.typed is not None:
        outcome, routes = await _typed(environment, [*call.typed, "--json"]), routes_of(call.verb)
        return Outcome(outcome.answer["items"]) if outcome.answer and routes and plain_list(routes[0]) else outcome
    arguments = call.arguments()
    declared = route_for(call.verb, arguments)
    argv, place = argv_of(declared, arguments), command_of(declared)
    assert argv is not None
    assert place is not None
    if any(param.name == "yes" for param in place[1].params):
        argv.insert(len(place[0]), "--yes")
    outcome = await _typed(environment, argv)
    if outcome.problem is not None:
        return outcome
    plain = outcome.answer
    return Outcome(None if is_silent(declared) else plain["items"] if plain_list(declared) else plain)


async def _typed(environment: Mapping[str, str], argv: list[str]) -> Outcome:
    done = await asyncio.to_thread(CliRunner().invoke, root, argv, env=environment)
    if done.stdout:  # an answer may have an exit code of its own: 1 for breaches
        assert done.exit_code in (0, 1), done.stderr
        return Outcome(json.loads(done.stdout))
    assert done.stderr, done.exception
    plain = json.loads(done.stderr.splitlines()[-1])
    assert plain["exit_code"] == done.exit_code
    return Outcome(problem=_problem_in(plain, plain.get("status")))


def actor_at(door: str, token: str | None) -> str:
    """Return who calls through a door, as the audit names it."""
    if token is not None and door in (REMOTE, REST, COMMAND):
        return "token:conformance"
    if door in (REMOTE, REST):
        return "api"
    if door == COMMAND:
        from rota.cli.connect import actor

        return actor()
    return ACTOR


DOOR: dict[str, Callable[[World, Call], Awaitable[Outcome]]] = {
    CLIENT: by_client,
    BLOCKING: by_blocking,
    REMOTE: by_remote,
    REST: by_rest,
    COMMAND: by_command,
}
