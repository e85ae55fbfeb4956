"""Access control: every route with every role, tokens, sessions, and error responses to strangers."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from rota import api, ui
from rota.api.auth.identity import COOKIE, Authenticator, Caller, FailedTries
from rota.api.operations.operation import operation
from rota.api.operations.routing import Declared, declared, require_declared
from rota.app import Rota
from rota.core.access.roles import Role
from rota.errors import BadConfig, NotSignedIn, TooManyTries
from rota.server import asgi, listen
from rota.ui import ADDRESSES
from tests.support.clock import ManualClock

BASE = "http://127.0.0.1:7682"
OPEN = {
    ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/api/v1/time"), ("GET", "/assets/{name}"), ("GET", "/rota.svg"),
    ("POST", "/api/v1/session"), ("DELETE", "/api/v1/session"), ("GET", "/openapi.json"), ("GET", "/docs"),
    *(("GET", address) for address in ADDRESSES),
}  # fmt: skip
RANKS = {Role.VIEWER: 1, Role.OPERATOR: 2, Role.ADMIN: 3}


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url, auth=True)

    @app.job
    def hello(name: str = "you") -> str:
        return name

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


async def token(app: Rota, role: Role, **options: object) -> str:
    issued = await (await app.connect()).tokens.create(f"{role.value}-{len(options)}", role, **options)  # type: ignore[arg-type]
    return issued.secret


def bearing(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def all_routes(routes: list[BaseRoute], below: str = "") -> Iterator[tuple[str, str, Declared]]:
    for route in routes:
        if isinstance(route, Mount):
            yield from all_routes(list(route.routes), below + route.path)
        else:
            assert isinstance(route, Declared)
            for method in route.operations:
                yield method, below + route.path, route


def served() -> list[tuple[str, str, Declared]]:
    return list(all_routes(list(asgi(Rota("sqlite:///unused.db")).routes)))


def test_only_these_are_open_to_everybody() -> None:
    found = {(method, path) for method, path, route in served() if route.operations[method].role is None}
    assert found == OPEN


@pytest.mark.parametrize("role", [None, *Role], ids=lambda role: role.value if role else "nobody")
async def test_every_route_knows_every_role(app: Rota, http: httpx2.AsyncClient, role: Role | None) -> None:
    """A role that is too low gets 401 or 403; a sufficient one gets something else, even if it is 404 or 422."""
    headers = bearing(await token(app, role)) if role else {}
    for method, path, route in served():
        needed = route.operations[method].role
        address = path.replace("{id}", "nothing").replace("{name}", "rota.svg")
        if path.endswith("/stream"):  # one that is let in would be told of hints for ever
            address += "?topics=nothing"
        answer = await http.request(method, address, headers=headers)
        where = (method, path, role, answer.status_code)
        if needed is None:
            assert answer.status_code not in (401, 403), where
        elif role is None:
            assert answer.status_code == 401, where
        elif allowed(role, needed):
            assert answer.status_code not in (401, 403), where
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), where


def allowed(role: Role, needed: Role) -> bool:
    """Independent statement of which role may use what; the program's own is not consulted."""
    if role is Role.ADMIN or role is needed:
        return True
    if role is Role.OPERATOR and needed is Role.ENQUEUE:
        return True
    return role in RANKS and needed in RANKS and RANKS[role] >= RANKS[needed]


async def nothing(request: Request) -> Response:
    return Response()


def test_a_route_that_does_not_say_who_may_use_it_is_not_served(sqlite_url: str) -> None:
    app = Rota(sqlite_url)
    with pytest.raises(TypeError, match="does not declare"):
        api.asgi(app, [*ui.routes(), Route("/forgotten", nothing)])
    with pytest.raises(TypeError, match="does not declare"):
        require_declared([Mount("/below", routes=[declared("/a", GET=operation(None)(nothing)), Route("/b", nothing)])])


@pytest.mark.parametrize("path", ["/healthz/", "/api/v1/healthz", "/x/healthz", "/api/v1/runs/healthz", "/HEALTHZ"])
async def test_what_only_looks_like_an_open_route_is_not(http: httpx2.AsyncClient, path: str) -> None:
    assert (await http.get(path)).status_code in (401, 404)


async def test_a_stranger_is_told_how_to_sign_in(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/api/v1/runs")
    assert (answer.status_code, answer.json()["code"]) == (401, "not-signed-in")
    assert "rota token create" in answer.json()["hint"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "header", ["Bearer ", "Basic dXNlcjpwYXNz", "Bearer nonsense", "Bearer rota_x", "Bearer rota__", "rota"]
)
async def test_nonsense_is_no_token(http: httpx2.AsyncClient, header: str) -> None:
    assert (await http.get("/api/v1/runs", headers={"Authorization": header})).status_code == 401


async def test_a_token_with_another_secret_is_none(app: Rota, http: httpx2.AsyncClient) -> None:
    secret = await token(app, Role.ADMIN)
    assert (await http.get("/api/v1/runs", headers=bearing(secret))).status_code == 200
    assert (await http.get("/api/v1/runs", headers=bearing(secret[:-1] + "A_"))).status_code == 401


async def test_ten_wrong_tokens_and_an_address_has_to_wait(app: Rota, http: httpx2.AsyncClient) -> None:
    good = await token(app, Role.VIEWER)
    for number in range(10):
        assert (await http.get("/api/v1/runs", headers=bearing(f"rota_{number}_x"))).status_code == 401
    blocked = await http.get("/api/v1/runs", headers=bearing("rota_0_x"))
    assert (blocked.status_code, blocked.json()["code"]) == (429, "too-many-tries")
    assert 0 < int(blocked.headers["retry-after"]) <= 60
    assert (await http.get("/api/v1/runs", headers=bearing(good))).status_code == 429
    assert (await http.get("/healthz")).status_code == 200


def test_the_wait_is_over_after_a_minute() -> None:
    clock = ManualClock()
    tries = FailedTries(clock.monotonic)
    for _ in range(10):
        tries.failed("1.2.3.4")
    with pytest.raises(TooManyTries):
        tries.require_patience("1.2.3.4")
    tries.require_patience("1.2.3.5")
    clock.advance(timedelta(seconds=61))
    tries.require_patience("1.2.3.4")


async def test_refused_tokens_are_noted_and_nobody_fills_the_table(app: Rota) -> None:
    """One line per address and minute, and a bounded number of all addresses."""
    clock, client = ManualClock(), await app.connect()
    keeper = Authenticator(clock.monotonic)

    async def refused(address: str, through: str | None = None) -> list[str]:
        with pytest.raises(NotSignedIn):
            await keeper.identify(("bearer", "rota_wrong_x"), Caller(address, through), client)
        return [event.subject for event in await client.audit(kind="token", limit=500) if event.type == "refused"]

    assert await refused("1.2.3.4") == ["1.2.3.4"]
    assert await refused("1.2.3.4") == ["1.2.3.4"]
    assert await refused("1.2.3.5", "10.0.0.1") == ["1.2.3.5", "1.2.3.4"]
    (event, _) = await client.audit(kind="token")
    assert (event.actor, event.details) == (None, {"through": "10.0.0.1"})
    clock.advance(timedelta(seconds=61))
    assert await refused("1.2.3.4") == ["1.2.3.4", "1.2.3.5", "1.2.3.4"]
    for number in range(100):
        await refused(f"::{number:x}")
    assert len(await refused("::ffff")) == 2 + 60


async def test_a_revoked_token_is_good_for_two_seconds_at_most(app: Rota) -> None:
    clock = ManualClock()
    keeper, client = Authenticator(clock.monotonic), await app.connect()
    secret = await token(app, Role.ADMIN)
    assert await keeper.identify(("bearer", secret), Caller("here"), client)
    await client.tokens.revoke("admin-0")
    assert await keeper.identify(("bearer", secret), Caller("here"), client)
    clock.advance(timedelta(seconds=2))
    with pytest.raises(Exception, match="revoked"):
        await keeper.identify(("bearer", secret), Caller("here"), client)


async def test_an_operator_signs_what_they_do(app: Rota, http: httpx2.AsyncClient) -> None:
    headers = bearing(await token(app, Role.OPERATOR))
    run = (await http.post("/api/v1/runs", json={"job": "hello", "delay": "1h"}, headers=headers)).json()
    cancelled = await http.post(f"/api/v1/runs/{run['id']}/cancel", headers=headers)
    assert cancelled.json()["cancelled_by"] == "token:operator-0"


async def test_a_token_for_one_scope_sees_nothing_else(app: Rota, http: httpx2.AsyncClient) -> None:
    own = bearing(await token(app, Role.OPERATOR, scope=("tenant", "42")))
    admin = bearing(await token(app, Role.ADMIN))
    other = (await http.post("/api/v1/runs", json={"job": "hello", "delay": "1h"}, headers=admin)).json()
    mine = (await http.post("/api/v1/runs", json={"job": "hello", "delay": "1h"}, headers=own)).json()
    assert mine["scope"] == {"kind": "tenant", "id": "42"}
    assert [run["id"] for run in (await http.get("/api/v1/runs", headers=own)).json()["items"]] == [mine["id"]]
    for path in ("", "/attempts"):
        assert (await http.get(f"/api/v1/runs/{other['id']}{path}", headers=own)).status_code == 404
    for act in ("cancel", "retry"):
        assert (await http.post(f"/api/v1/runs/{other['id']}/{act}", headers=own)).status_code == 404
    elsewhere = {"job": "hello", "scope": {"kind": "tenant", "id": "7"}}
    assert (await http.post("/api/v1/runs", json=elsewhere, headers=own)).status_code == 403
    many = {"runs": [{"job": "hello"}, elsewhere]}
    assert (await http.post("/api/v1/runs", json=many, headers=own)).status_code == 403
    assert (await http.get("/api/v1/runs?scope=tenant/7", headers=own)).status_code == 403
    assert (await http.get("/api/v1/jobs", headers=own)).status_code == 403
    assert (await http.post(f"/api/v1/runs/{mine['id']}/cancel", headers=own)).json()["state"] == "cancelled"


async def test_tokens_are_made_and_revoked_over_http(app: Rota, http: httpx2.AsyncClient) -> None:
    admin = bearing(await token(app, Role.ADMIN))
    made = (await http.post("/api/v1/tokens", json={"name": "ci", "role": "enqueue"}, headers=admin)).json()
    assert made["secret"].startswith("rota_")
    assert (await http.post("/api/v1/runs", json={"job": "hello"}, headers=bearing(made["secret"]))).status_code == 201
    listed = (await http.get("/api/v1/tokens", headers=admin)).text
    assert made["secret"] not in listed
    assert '"ci"' in listed
    revoked = await http.post("/api/v1/tokens/ci/revoke", headers=admin)
    assert revoked.json()["revoked_by"] == "token:admin-0"
    assert (await http.post("/api/v1/tokens/nobody/revoke", headers=admin)).status_code == 404
    twice = await http.post("/api/v1/tokens", json={"name": "admin-0", "role": "viewer"}, headers=admin)
    assert twice.status_code == 409


async def test_a_browser_signs_in_and_out(app: Rota, http: httpx2.AsyncClient) -> None:
    assert (await http.get("/")).status_code == 200  # the page is nobody's secret, and holds none
    assert (await http.get("/api/v1/runs")).status_code == 401
    text, same_origin = await token(app, Role.OPERATOR), {"Origin": BASE}
    signed = await http.post("/api/v1/session", json={"token": text}, headers=same_origin)
    cookie = signed.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert text not in cookie
    assert (await http.get("/api/v1/runs")).status_code == 200
    assert (await http.post("/api/v1/runs", json={"job": "hello"}, headers=same_origin)).status_code == 201
    assert (await http.delete("/api/v1/session", headers=same_origin)).status_code == 204
    http.cookies.clear()
    assert (await http.get("/api/v1/runs")).status_code == 401


async def test_a_session_that_was_ended_is_none(app: Rota, http: httpx2.AsyncClient) -> None:
    answer = await http.post("/api/v1/session", json={"token": await token(app, Role.VIEWER)}, headers={"Origin": BASE})
    assert answer.json()["role"] == "viewer"
    kept = http.cookies[COOKIE]
    assert (await http.get("/api/v1/runs")).status_code == 200
    assert (await http.delete("/api/v1/session", headers={"Origin": BASE})).status_code == 204
    assert (await http.get("/api/v1/runs", headers={"Cookie": f"{COOKIE}={kept}"})).status_code == 401


async def test_a_cookie_alone_changes_nothing(app: Rota, http: httpx2.AsyncClient) -> None:
    await http.post("/api/v1/session", json={"token": await token(app, Role.ADMIN)}, headers={"Origin": BASE})
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await http.post("/api/v1/runs", json={"job": "hello"}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong-origin")
    assert (
        await http.post("/api/v1/runs", json={"job": "hello"}, headers={"Sec-Fetch-Site": "same-origin"})
    ).status_code == 201


def test_nobody_listens_to_other_machines_without_asking_who_they_are(app: Rota, sqlite_url: str) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(BadConfig, match="everybody could do everything"):
            listen(Rota(sqlite_url, host=host).config)
    with listen(Rota(sqlite_url, host="0.0.0.0", port=0, auth=True).config) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


async def test_other_names_may_be_allowed(sqlite_url: str) -> None:
    app = Rota(sqlite_url, auth=True, allowed_hosts="jobs.example.com, other.example")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url=BASE) as http:
        assert (await http.get("/healthz", headers={"Host": "jobs.example.com:443"})).status_code == 200
        assert (await http.get("/healthz", headers={"Host": "evil.example"})).status_code == 421
    await app.aclose()
