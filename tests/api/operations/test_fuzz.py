"""The API behaves as its description says, whatever is sent: no 5xx, and answers that fit their schemas.

`ROTA_FUZZ_EXAMPLES=200` tries more than the suite has time for.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import httpx2
import hypothesis.errors
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from schemathesis import Case, GenerationMode, checks
from schemathesis.schemas import APIOperation

from rota import Context
from rota.app import Rota
from rota.client.client import Order
from rota.core.access.roles import Role
from rota.core.calendar.triggers import cron
from rota.engine.engine import Engine
from rota.server import asgi
from rota.store import Store, open_database
from tests.support.runs.runs import LEASE_MICROS, WORKER

BASE = "http://127.0.0.1:7682"
EXAMPLES = int(os.environ.get("ROTA_FUZZ_EXAMPLES", "2"))
ENDLESS = {"stream_changes"}
OF_ALL = ("not-found", "method-not-allowed")  # an empty part of a path leads elsewhere
LENGTH = "content-length"
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class World:
    """A server with one of everything, driven from synchronous code."""

    def __init__(self, url: str, *, auth: bool) -> None:
        self._runner = asyncio.Runner()
        self._app = Rota(url, auth=auth)
        self._declare()
        self.headers: dict[str, str] = {}
        self.known = self._run(self._fill(url))
        self._asgi = asgi(self._app)
        transport = httpx2.ASGITransport(app=self._asgi)
        self._http = httpx2.AsyncClient(transport=transport, base_url=BASE)
        self.document: dict[str, Any] = self._run(self._http.get("/openapi.json")).json()

    def _run(self, work: Any) -> Any:
        return self._runner.run(work)

    def _declare(self) -> None:
        @self._app.job
        async def greet(ctx: Context, name: str = "you") -> dict[str, str]:
            ctx.progress(50, "half of it")
            ctx.log.info("hello %s", name)
            return {"hello": name}

        @self._app.job(max_attempts=1, timeout="30s", tags=["a"])
        def fail(why: str = "so") -> None:
            raise RuntimeError(why)

    async def _fill(self, url: str) -> dict[str, list[str]]:
        store = Store(open_database(url))
        await store.migrate()
        await store.close()
        client = await self._app.connect()
        engine = Engine(client.store, self._app.registry, self._app.config, working=True)
        await engine.start()
        runs = [await client.enqueue(Order(job, {})) for job in ("greet", "fail")]
        for run in runs:
            await client.wait(run.id)
        await engine.stop()
        later = await client.enqueue(Order("greet", {}, {"delay": "1h"}))
        await client.schedules.create("nightly", "greet", cron("0 3 * * *"))
        issued = await client.tokens.create("admin", Role.ADMIN)
        self.headers = {"Authorization": f"Bearer {issued.secret}"} if self._app.config.auth else {}
        await client.store.extend(WORKER, [], LEASE_MICROS)
        return {
            "runs": [*(run.id for run in runs), later.id],
            "executions": [runs[0].id],
            "jobs": ["greet", "fail"],
            "schedules": ["nightly"],
            "workers": [WORKER.id],
            "queues": ["default"],
            "tokens": ["nobody"],
        }

    def ask(self, case: Case[Any]) -> httpx2.Response:
        given = case.as_transport_kwargs(base_url=BASE, headers=self.headers)
        sent = requests.Request(**{k: v for k, v in given.items() if k != "allow_redirects"}).prepare()
        headers: dict[str, Any] = {name: value for name, value in sent.headers.items() if name.lower() != LENGTH}
        body: Any = sent.body
        request = self._http.build_request(str(sent.method), str(sent.url), headers=headers, content=body)
        answer: httpx2.Response = self._run(self._http.send(request))
        return answer

    def close(self) -> None:
        self._run(self._http.aclose())
        self._run(self._app.aclose())
        self._runner.close()


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    world = World(database_url, auth=False)
    yield world
    world.close()


@pytest.fixture
def guarded_world(sqlite_url: str) -> Iterator[World]:
    world = World(sqlite_url, auth=True)
    yield world
    world.close()


def operations(world: World) -> list[APIOperation[Any, Any, Any, Any]]:
    schema = schemathesis.openapi.from_dict(world.document)
    found = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    shown = [one for one in found if one.definition.raw["operationId"] not in ENDLESS]
    return sorted(shown, key=lambda one: one.method == "delete")


def look(
    world: World, operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, fixed: dict[str, str]
) -> None:
    options: dict[str, Any] = {"path_parameters": fixed} if fixed else {}

    @SETTINGS
    @given(case=operation.as_strategy(mode, **options))
    def one(case: Case[Any]) -> None:
        if case.query and "follow" in case.query:
            del case.query["follow"]
        answer = world.ask(case)
        # Refusals, too: an If-Match that does not match; ten thousand items are more than a body may hold.
        if answer.status_code in (412, 413):
            return
        case.validate_response(answer, checks=CHECKS)
        require_named(world, operation.definition.raw, answer)

    one()


def require_named(world: World, operation: Any, answer: httpx2.Response) -> None:
    """A problem is one of those that the document names for this operation, or of the whole server."""
    if answer.status_code < 400 or answer.headers["content-type"] != "application/problem+json":
        return
    code = answer.json()["code"]
    response = operation["responses"].get(str(answer.status_code), {})
    named = world.document["components"]["responses"].get(response.get("$ref", "").rpartition("/")[2], response)
    assert code in [*named.get("x-codes", []), *OF_ALL], f"{code} of {operation['operationId']} is not in the document"


@pytest.mark.timeout(600)
def test_whatever_is_sent(world: World) -> None:
    look_at_all(world, list(GenerationMode))


@pytest.mark.timeout(600)
def test_whatever_is_sent_with_a_token(guarded_world: World) -> None:
    look_at_all(guarded_world, [GenerationMode.POSITIVE])


def look_at_all(world: World, modes: list[GenerationMode]) -> None:
    failures = []
    for operation in operations(world):
        for mode in modes if operation.query or operation.body else [GenerationMode.POSITIVE]:
            for fixed in known(world, operation.path):
                try:
                    look(world, operation, mode, fixed)
                except hypothesis.errors.Unsatisfiable:
                    assert mode is GenerationMode.NEGATIVE  # what takes nothing can be given nothing wrong
                except (Exception, BaseExceptionGroup) as error:
                    failures.append(f"{operation.label} {mode.value} {fixed}: {told(error)}")
    assert not failures, "\n\n".join(failures)


def told(error: BaseException) -> str:
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else [error]
    return " / ".join(str(part)[:1_500] for part in parts)


def known(world: World, path: str) -> list[dict[str, str]]:
    """Return existing values to use beside generated ones; otherwise most answers would be 404."""
    if "{" not in path:
        return [{}]
    kind = path.removeprefix("/api/v1/").partition("/")[0]
    part = "id" if "{id}" in path else "name"
    return [{}, *({part: one} for one in world.known.get(kind, ()))]
