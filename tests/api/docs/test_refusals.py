"""Problems in the OpenAPI document: each operation names those that follow from what it takes, and real codes only."""

from typing import Any

import pytest

from rota.api.docs.openapi import described
from rota.api.operations.operation import Operation
from rota.api.operations.routing import walk
from rota.app import Rota
from rota.errors import RotaError
from rota.server import asgi

ROUTES = asgi(Rota("sqlite:///unused.db")).routes
DOCUMENT = described(ROUTES)
OPERATIONS = [
    (path, method, operation)
    for path, route in walk(ROUTES)
    if not route.page
    for method, operation in route.operations.items()
]
WITHOUT_404 = {"queues"}  # a queue is whatever runs name


def codes(path: str, method: str) -> dict[str, list[str]]:
    responses: dict[str, Any] = DOCUMENT["paths"][path][method.lower()]["responses"]
    shared = DOCUMENT["components"]["responses"]
    whole = {status: shared.get(one.get("$ref", "").rpartition("/")[2], one) for status, one in responses.items()}
    return {status: one["x-codes"] for status, one in whole.items() if "x-codes" in one}


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=lambda part: getattr(part, "name", None))
def test_what_it_takes_says_how_it_may_be_refused(path: str, method: str, operation: Operation) -> None:
    found = codes(path, method)
    if operation.role is not None:
        assert "not-signed-in" in found["401"]
        assert "forbidden" in found["403"]
        assert "unavailable" in found["503"]
    if operation.body is not None:
        assert [found["400"], found["413"], found["415"]] == [
            ["unreadable-body"],
            ["body-too-large"],
            ["json-required"],
        ]
        assert "bad-body" in found["422"]
    if operation.keyed:
        assert "idempotency-key-reused" in found["422"]
    if operation.conditional:
        assert "changed-meanwhile" in found["412"]
    if "{" in path and path.split("/")[3] not in WITHOUT_404:
        assert found["404"]


def test_every_code_is_one_of_an_error() -> None:
    known = {(str(error.status), error.code) for error in below(RotaError)} | {("503", "bad-configuration")}
    found = {
        (status, code)
        for path, method, _ in OPERATIONS
        for status, each in codes(path, method).items()
        for code in each
    }
    assert found <= known


def below(kind: type[RotaError]) -> list[type[RotaError]]:
    return [error for child in kind.__subclasses__() for error in (child, *below(child))]


def test_a_cancel_may_come_too_late() -> None:
    found = codes("/api/v1/runs/{id}/cancel", "POST")
    assert found["404"] == ["unknown-run"]
    assert {"ambiguous-run", "not-cancellable", "run-is-final"} <= set(found["409"])
