"""Routes are found by the beginnings of their paths, with their parameters and methods."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Router

from rota.api.operations.operation import Operation, operation
from rota.api.operations.routing import FastRouter, declared


def named(name: str) -> Operation:
    async def respond(request: Request) -> Response:
        """Say which route this is."""
        return Response(f"{name} {request.path_params}")

    return operation(None)(respond)


ROUTES = [
    declared("/runs", GET=named("list")),
    declared("/runs", POST=named("enqueue"), scoped=True),
    declared("/runs/{id}", GET=named("get"), scoped=True),
    declared("/runs/{id}", DELETE=named("delete")),
    declared("/runs/{id}/{part}", GET=named("part")),
]


async def asked(method: str, path: str, root: str = "") -> tuple[int, str]:
    router = FastRouter([Mount("/api/v1", Router(ROUTES)), declared("/{page:path}", GET=named("page"))])
    sent: list[Any] = []

    async def receive() -> Any: ...

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": root + path,
        "root_path": root,
        "query_string": b"",
        "headers": [],
    }
    await router(scope, receive, send)
    return sent[0]["status"], sent[1]["body"].decode()


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", "/api/v1/runs", "list {}"),
        ("POST", "/api/v1/runs", "enqueue {}"),
        ("GET", "/api/v1/runs/7", "get {'id': '7'}"),
        ("DELETE", "/api/v1/runs/7", "delete {'id': '7'}"),
        ("GET", "/api/v1/runs/7/logs", "part {'id': '7', 'part': 'logs'}"),
        ("GET", "/some/page", "page {'page': 'some/page'}"),
    ],
)
async def test_a_path_has_its_route(method: str, path: str, answer: str) -> None:
    assert await asked(method, path) == (200, answer)
    assert await asked(method, path, root="/mounted") == (200, answer)


async def test_other_methods_are_refused() -> None:
    assert (await asked("PUT", "/api/v1/runs"))[0] == 405
    assert (await asked("PUT", "/api/v1/runs/7"))[0] == 405
    assert (await asked("HEAD", "/api/v1/runs/7"))[0] == 200
