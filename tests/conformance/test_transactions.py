"""Every request takes at most two transactions: each case counts its own; here are the exceptions, and other routes."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from rota.api.docs.openapi import described
from rota.app import Rota
from rota.server import asgi
from tests.conformance.case import REST, Case, arguments_of, is_declared, route_for
from tests.conformance.cases import CASES
from tests.conformance.transactions import BATCHES, MOST, OVER
from tests.support.databases.transactions import counted

API = "/api/v1"
ASKED = ("/healthz", "/readyz", "/metrics", "/openapi.json", f"{API}/whoami")
"""Routes without a case, which are asked here."""
NOT_ASKED = {
    ("POST", "/schedules:bulk"): "a transaction a schedule",
    ("GET", "/export/runs"): "as many pages as there are",
    ("GET", "/export/attempts"): "the same",
    ("GET", "/export/events"): "the same",
    ("GET", "/stream"): "an endless stream of hints",
    ("POST", "/session"): "needs a token, which only a server with auth has",
    ("DELETE", "/session"): "the same",
    ("GET", "/database/checks"): "tries one thing after another as any process would: connections, hints, ledgers",
}


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = Rota(database_url)
    await app.connect()
    yield app
    await app.aclose()


def route_of(case: Case) -> tuple[str, str] | None:
    """Return method and path of the request of a case that succeeds, if it sends one."""
    if case.refused is not None or REST not in case.only or case.scope is not None:
        return None
    if case.sent is not None:
        return case.sent[:2]
    if not is_declared(case.verb):
        return None
    verb = route_for(case.verb, arguments_of(case.verb, case.args, case.named)).verb
    return verb.method, verb.path


def test_every_route_has_a_case() -> None:
    paths = described(asgi(Rota("sqlite:///unused.db")).routes)["paths"]
    routes = {(method.upper(), path.removeprefix(API)) for path, methods in paths.items() for method in methods}
    without = routes - {route_of(case) for case in CASES}
    assert without == {("GET", path.removeprefix(API)) for path in ASKED} | NOT_ASKED.keys()


@pytest.mark.parametrize("path", ASKED)
async def test_routes_without_a_case(app: Rota, path: str) -> None:
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682") as http:
        with counted((await app.connect()).store.database) as transactions:
            answer = await http.get(path)
    assert (answer.status_code, len(transactions) <= MOST) == (200, True), transactions.opened


def test_exceptions_are_of_cases() -> None:
    assert OVER.keys() <= {str(case) for case in CASES}
    assert BATCHES.keys() <= {case.verb for case in CASES}


async def test_a_request_that_takes_three_is_seen(app: Rota) -> None:
    client = await app.connect()
    with counted(client.store.database) as transactions:
        await client.time()
        await client.quotas.list()
        async with client.store.database.session():
            pass
    assert len(transactions) == 3, transactions.opened
