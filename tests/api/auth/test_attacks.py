"""Attacks on the server: cookies, origins, hosts, redirects and caches."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from rota.api.auth.identity import COOKIE
from rota.app import Rota
from rota.core.access.roles import Role
from rota.server import asgi

BASE = "http://127.0.0.1:7682"
OWN = {"Origin": BASE}


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url, auth=True)

    @app.job
    def hello() -> None: ...

    await (await app.connect()).store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


async def secret(app: Rota, role: Role = Role.ADMIN) -> str:
    return (await (await app.connect()).tokens.create(role.value, role)).secret


def bearing(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


async def signed_in(app: Rota, http: httpx2.AsyncClient, role: Role = Role.ADMIN) -> str:
    answer = await http.post("/api/v1/session", json={"token": await secret(app, role)}, headers=OWN)
    assert answer.status_code == 201
    return http.cookies[COOKIE]


async def test_a_session_is_never_one_that_the_browser_brought(app: Rota, http: httpx2.AsyncClient) -> None:
    fixed = "a" * 43
    http.cookies.set(COOKIE, fixed, domain="127.0.0.1")
    http.cookies.clear()
    headers = {**OWN, "Cookie": f"{COOKIE}={fixed}"}
    answer = await http.post("/api/v1/session", json={"token": await secret(app)}, headers=headers)
    assert fixed not in answer.headers["set-cookie"]
    http.cookies.clear()
    assert (await http.get("/api/v1/runs", headers={"Cookie": f"{COOKIE}={fixed}"})).status_code == 401


async def test_two_sessions_differ_and_end_apart(app: Rota, http: httpx2.AsyncClient) -> None:
    text = await secret(app)
    first, second = [
        (await http.post("/api/v1/session", json={"token": text}, headers=OWN)).cookies[COOKIE] for _ in range(2)
    ]
    assert first != second
    http.cookies.clear()
    await http.delete("/api/v1/session", headers={**OWN, "Cookie": f"{COOKIE}={first}"})
    http.cookies.clear()
    assert (await http.get("/api/v1/runs", headers={"Cookie": f"{COOKIE}={first}"})).status_code == 401
    assert (await http.get("/api/v1/runs", headers={"Cookie": f"{COOKIE}={second}"})).status_code == 200


async def test_a_session_ends_with_its_token(app: Rota, http: httpx2.AsyncClient) -> None:
    await signed_in(app, http, Role.VIEWER)
    await (await app.connect()).tokens.revoke("viewer")
    keeper = http._transport.app.state.authenticator  # type: ignore[attr-defined]
    keeper._known.clear()  # as after two seconds
    assert (await http.get("/api/v1/runs")).status_code == 401


async def test_a_session_is_no_token_and_a_token_no_session(app: Rota, http: httpx2.AsyncClient) -> None:
    session, text = await signed_in(app, http), await secret(app, Role.VIEWER)
    http.cookies.clear()
    assert (await http.get("/api/v1/runs", headers=bearing(session))).status_code == 401
    assert (await http.get("/api/v1/runs", headers={"Cookie": f"{COOKIE}={text}"})).status_code == 401
    assert (await http.get(f"/api/v1/runs?token={text}")).status_code == 401
    assert (await http.get("/api/v1/runs", headers={"X-Api-Key": text})).status_code == 401


async def test_a_wrong_header_is_not_forgiven_for_a_good_cookie(app: Rota, http: httpx2.AsyncClient) -> None:
    await signed_in(app, http)
    assert (await http.get("/api/v1/runs", headers=bearing("rota_x_y"))).status_code == 401


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
async def test_nobody_is_signed_in_by_another_site(
    app: Rota, http: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    """Login CSRF: otherwise victims would work in the attacker's account without noticing."""
    text = await secret(app)
    for answer in (
        await http.post("/api/v1/session", json={"token": text}, headers=headers),
        await http.delete("/api/v1/session", headers=headers),
    ):
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_methods_are_what_they_are(app: Rota, http: httpx2.AsyncClient) -> None:
    await signed_in(app, http)
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        await http.get("/api/v1/runs", headers={header: "POST"})
        assert (await http.post("/api/v1/schedules/x", headers={header: "DELETE", **OWN})).status_code == 405
    assert (await http.head("/api/v1/runs")).status_code == 200
    assert (await http.head("/api/v1/tokens")).content == b""
    http.cookies.clear()
    assert (await http.head("/api/v1/runs")).status_code == 401
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = await http.options("/api/v1/runs", headers=preflight)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Client-IP", "CF-Connecting-IP"])
async def test_an_address_is_not_what_the_caller_says(app: Rota, name: str) -> None:
    """Callers that are no trusted proxies; test_proxies.py covers those that are."""
    transport = httpx2.ASGITransport(app=asgi(app), client=("192.0.2.7", 5))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE) as http:
        for number in range(10):
            headers = {**bearing(f"rota_{number}_x"), name: f"10.0.0.{number}"}
            assert (await http.get("/api/v1/runs", headers=headers)).status_code == 401
        headers = {**bearing("rota_y_x"), name: "10.1.1.1"}
        assert (await http.get("/api/v1/runs", headers=headers)).status_code == 429


async def test_signing_in_is_guarded_against_guessing_too(http: httpx2.AsyncClient) -> None:
    for number in range(10):
        answer = await http.post("/api/v1/session", json={"token": f"rota_{number}_x"}, headers=OWN)
        assert answer.status_code == 401
    assert (await http.post("/api/v1/session", json={"token": "rota_a_b"}, headers=OWN)).status_code == 429


@pytest.mark.parametrize(
    "host",
    ["localhost.", "127.0.0.1.", "localhost:", "localhost:7682:7682", "localhost:x", "127.0.0.1:7682@evil.example",
     "user@localhost", "[::1%25lo]", "[::1%lo]:7682", "[::1]evil.example", "localhost]evil", "[localhost]", "0.0.0.0",
     "localhost#", "localhost/..", "localhost, evil.example", "localhost evil", "2130706433", "127.1", "0x7f.0.0.1",
     '127.0.0.1:1"><script>', "[::]", "localhost:999999"],
)  # fmt: skip
async def test_hosts_that_only_look_like_ours(http: httpx2.AsyncClient, host: str) -> None:
    assert (await http.get("/healthz", headers={"Host": host})).status_code == 421
    named = {"Host": "127.0.0.1", "X-Forwarded-Host": host}  # by a proxy on this machine, which is believed
    assert (await http.get("/healthz", headers=named)).status_code == 421


async def test_two_hosts_are_none(http: httpx2.AsyncClient) -> None:
    headers = [("Host", "127.0.0.1"), ("Host", "evil.example")]
    assert (await http.get("/healthz", headers=headers)).status_code == 421


@pytest.mark.parametrize("path", ["/", "/runs/x", "/api/v1/runs", "/api/v1/whoami", "/metrics", "/api/v1/export/runs"])
async def test_nothing_is_kept_by_caches(app: Rota, http: httpx2.AsyncClient, path: str) -> None:
    for _ in range(2):
        answer = await http.get(path)
        assert answer.headers["cache-control"] == "no-store"
        if COOKIE not in http.cookies:
            await signed_in(app, http, Role.VIEWER)


async def test_an_answer_says_nothing_about_its_server(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/api/v1/runs")
    assert not {"server", "x-powered-by"} & set(answer.headers)
    assert "Traceback" not in answer.text
