"""Trusted proxies: callers read from the right of `X-Forwarded-For`, and the path below which they show the server."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from rota.api.auth.identity import Authenticator, Caller
from rota.api.http.proxies import THROUGH, ProxyHeaders
from rota.app import Rota
from rota.client.client import Order
from rota.config import Config
from rota.errors import BadConfig, NotSignedIn, TooManyTries
from rota.remote import RemoteClient
from rota.server import Web, asgi
from tests.support.processes.command_line import refused
from tests.support.servers.reverse_proxy import Manner, certified, in_front_of

Headers = list[tuple[str, str]]
CALLER = "203.0.113.9"


def seen(headers: Headers, client: tuple[str, int] | None = ("127.0.0.1", 5), path: str = "/", **config: Any) -> Any:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "scheme": "http", "client": client, "path": path, "root_path": "", "headers": raw}
    own = config.pop("own", ())
    return ProxyHeaders(Config(**config), own).seen(scope, dict(raw))


def caller(headers: Headers, client: tuple[str, int] | None = ("127.0.0.1", 5), **config: Any) -> str | None:
    scope, _ = seen(headers, client, **config)
    return scope["client"][0] if scope["client"] else None


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ([CALLER], CALLER),
        (["198.51.100.1, " + CALLER], CALLER),
        (["127.0.0.1, " + CALLER], CALLER),
        (["198.51.100.1", CALLER], CALLER),
        ([CALLER + ", 127.0.0.1"], CALLER),
        ([CALLER + ",10.1.2.3 , 127.0.0.1"], CALLER),
        ([CALLER + ":8080"], CALLER),
        (["[2001:db8::7]:443"], "2001:db8::7"),
        (["2001:db8::7"], "2001:db8::7"),
        (["::ffff:203.0.113.9"], CALLER),
        (["10.9.9.9, 10.1.2.3"], "10.9.9.9"),
        (["unknown"], "127.0.0.1"),
        (["198.51.100.1, unknown"], "127.0.0.1"),
        (["198.51.100.1, unknown, 10.1.2.3"], "10.1.2.3"),
        ([""], "127.0.0.1"),
        ([", ,"], "127.0.0.1"),
        (["1" * 5_000], "127.0.0.1"),
        (["203.0.113.9 198.51.100.1"], "127.0.0.1"),
        (["\xff\xfe"], "127.0.0.1"),
        (["_hidden, 999.1.1.1"], "127.0.0.1"),
    ],
)
def test_the_caller_is_the_right_most_address_that_is_not_trusted(told: list[str], found: str) -> None:
    headers = [("X-Forwarded-For", text) for text in told]
    assert caller(headers, trusted_proxies="loopback,10.0.0.0/8") == found


@pytest.mark.parametrize(
    ("client", "trusted", "believed"),
    [
        (("127.0.0.1", 5), "loopback", True),
        (("127.8.9.1", 5), "loopback", True),
        (("::1", 5), "loopback", True),
        (("::ffff:127.0.0.1", 5), "loopback", True),
        (None, "loopback", True),
        (("", 0), "loopback", True),
        (None, "10.0.0.0/8", False),
        (("10.0.0.7", 5), "loopback", False),
        (("10.0.0.7", 5), "10.0.0.0/8", True),
        (("10.0.0.7", 5), "10.0.0.7", True),
        (("10.0.0.8", 5), "10.0.0.7", False),
        (("127.0.0.1", 5), "10.0.0.0/8", False),
        (("2001:db8::1", 5), "2001:db8::/32", True),
        (("127.0.0.1", 5), "none", False),
        (None, "none", False),
        (("127.0.0.1", 5), "", False),
        (("testclient", 5), "loopback", False),
        (("192.0.2.1", 5), "0.0.0.0/0,::/0", True),
    ],
)
def test_only_trusted_proxies_are_believed(client: tuple[str, int] | None, trusted: str, believed: bool) -> None:
    headers = [
        ("X-Forwarded-For", CALLER),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "rota.example"),
    ]
    headers += [("X-Forwarded-Prefix", "/rota")]
    scope, host = seen(headers, client, trusted_proxies=trusted)
    found = (scope["client"], scope["scheme"], scope["root_path"], host)
    assert found == (((CALLER, 0), "https", "/rota", "rota.example") if believed else (client, "http", "", None))
    assert (THROUGH in scope) is believed


@pytest.mark.parametrize(
    ("told", "named", "scheme"),
    [
        (["https"], [CALLER], "https"),
        (["HTTPS"], [CALLER], "https"),
        (["http"], [CALLER], "http"),
        (["https, http"], [CALLER], "http"),
        (["https, http"], [f"{CALLER}, 10.1.2.3"], "https"),
        (["https"], [f"{CALLER}, 10.1.2.3"], "https"),
        (["http, https, http"], [f"{CALLER}, 10.1.2.3"], "https"),
        (["https"], [], "https"),
        (["ftp"], [CALLER], "http"),
        (["javascript:"], [CALLER], "http"),
        ([""], [CALLER], "http"),
    ],
)
def test_the_scheme_is_what_the_outermost_trusted_proxy_saw(told: list[str], named: list[str], scheme: str) -> None:
    headers = [("X-Forwarded-Proto", text) for text in told] + [("X-Forwarded-For", text) for text in named]
    found, _ = seen(headers, trusted_proxies="loopback,10.0.0.0/8")
    assert found["scheme"] == scheme


@pytest.mark.parametrize(
    ("path", "below", "inner"),
    [
        ("/", "/rota", "/rota/"),
        ("/rota", "/rota", "/rota/"),
        ("/rota/", "/rota", "/rota/"),
        ("/rota/runs/1", "/rota", "/rota/runs/1"),
        ("/runs/1", "/rota", "/rota/runs/1"),
        ("/rotary", "/rota", "/rota/rotary"),
        ("/runs/rota/1", "/rota", "/rota/runs/rota/1"),
        ("/tools/rota/runs", "/tools/rota", "/tools/rota/runs"),
    ],
)
def test_below_a_path_that_is_passed_on_or_taken_away(path: str, below: str, inner: str) -> None:
    for scope, _ in (
        seen([], path=path, base_path=below),
        seen([], path=path, base_path=f"{below}/"),
        seen([("X-Forwarded-Prefix", "/another")], path=path, base_path=below),
    ):
        assert (scope["root_path"], scope["path"]) == (below, inner)


def test_a_prefix_that_a_header_says_was_taken_away() -> None:
    for told in ("/rota", "/rota/"):
        for path in ("/", "/runs/1", "/rotary", "/rota/runs"):
            scope, _ = seen([("X-Forwarded-Prefix", told)], path=path)
            assert (scope["root_path"], scope["path"]) == ("/rota", f"/rota{path}")


async def test_no_header_leads_to_an_address_by_another_path(sqlite_url: str) -> None:
    """A proxy that blocks a path and passes on any header still blocks it."""
    app, _ = await with_job(sqlite_url)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url="http://127.0.0.1") as http:
        for path in ("/x/healthz", "/x/api/v1/time"):
            assert (await http.get(path, headers={"X-Forwarded-Prefix": "/x"})).status_code == 404
    await app.aclose()


@pytest.mark.parametrize(
    "prefix", ["//evil.example", "rota", "/a b", "/..", "/a/../b", "/.", '/"><x>', "/%2e", "\\", "/" + "a" * 200]
)
def test_a_prefix_that_is_no_path_is_ignored(prefix: str) -> None:
    scope, _ = seen([("X-Forwarded-Prefix", prefix)], path="/runs")
    assert (scope["root_path"], scope["path"]) == ("", "/runs")


def test_a_prefix_that_our_own_addresses_begin_with_was_taken_away() -> None:
    scope, _ = seen([("X-Forwarded-Prefix", "/jobs")], path="/jobs/hello", own=("jobs",))
    assert (scope["root_path"], scope["path"]) == ("/jobs", "/jobs/jobs/hello")
    with pytest.raises(BadConfig, match="collides with paths of the server itself"):
        asgi(Rota("sqlite:///unused.db", base_path="/jobs"))


@pytest.mark.parametrize(
    "settings", [{"base_path": "rota"}, {"base_path": "/a/../b"}, {"trusted_proxies": "proxy.example"}]
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(BadConfig):
        Config(**settings)  # type: ignore[arg-type]


def test_a_server_that_could_not_be_found_does_not_start(sqlite_url: str) -> None:
    words = refused(78, "server", "--base-path", "/jobs/x", "--port", "0", "--database", sqlite_url)
    assert "base_path '/jobs/x' collides with paths of the server itself" in words


async def test_it_says_where_it_is(sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        web = Web(asgi(Rota(sqlite_url, base_path="/rota/")), listener, "/rota/")
        assert web.url == f"http://127.0.0.1:{listener.getsockname()[1]}/rota"


@asynccontextmanager
async def served(app: Rota) -> AsyncIterator[int]:
    """Serve with the server's own class; yield its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    web = Web(asgi(app), listener)
    web.start()
    await web.ready.wait()
    try:
        yield listener.getsockname()[1]
    finally:
        await web.stop()
        listener.close()


async def with_job(url: str, **config: Any) -> tuple[Rota, str]:
    """Declare a job; return the app and the secret of a token."""
    app = Rota(url, auth=True, **config)

    @app.job(name="mail/send")
    def send() -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    return app, (await client.tokens.create("ada", "admin")).secret


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return certified(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("strips", [True, False], ids=["stripped", "passed on"])
@pytest.mark.parametrize("keeps_host", [True, False], ids=["host kept", "host told"])
async def test_everything_works_through_a_proxy_with_tls_below_a_path(
    sqlite_url: str, tls: tuple[ssl.SSLContext, ssl.SSLContext], *, strips: bool, keeps_host: bool
) -> None:
    app, token = await with_job(sqlite_url, base_path="/rota")
    manner = Manner("/rota", strips=strips, keeps_host=keeps_host)
    async with (
        served(app) as port,
        in_front_of(port, manner, tls=tls[0]) as proxy,
        httpx2.AsyncClient(verify=tls[1], base_url=proxy.url) as http,
    ):
        page = await http.get("/runs")
        assert '<base href="/rota/" />' in page.text
        for part in ('src="./', 'href="./'):
            for piece in page.text.split(part)[1:]:
                assert (await http.get("/" + piece.partition('"')[0])).status_code == 200
        same = {"Origin": proxy.url.removesuffix("/rota"), "Sec-Fetch-Site": "same-origin"}
        signed = await http.post("/api/v1/session", json={"token": token}, headers=same)
        assert signed.status_code == 201, signed.text
        cookie = signed.headers["set-cookie"].lower()
        assert "; secure" in cookie
        assert "; path=/rota;" in cookie
        made = await http.post("/api/v1/runs", json={"job": "mail/send"}, headers=same)
        assert made.headers["location"] == f"/rota/api/v1/runs/{made.json()['id']}"
        assert (await http.get("/api/v1/jobs/mail%2Fsend")).json()["name"] == "mail/send"
        assert (await http.get("/openapi.json")).json()["servers"] == [{"url": "/rota/"}]
        assert 'href="/rota/openapi.json"' in (await http.get("/docs")).text
        async with http.stream("GET", "/api/v1/stream?topics=runs") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert await anext(aiter(stream.aiter_raw()))
        insecure = {"Origin": same["Origin"].replace("https", "http")}
        answer = await http.post("/api/v1/runs", json={"job": "mail/send"}, headers=insecure)
        assert answer.json()["code"] == "wrong-origin"
        gone = await http.delete("/api/v1/session", headers=same)
        assert "; path=/rota;" in gone.headers["set-cookie"].lower()
        assert (await http.get("/api/v1/runs")).status_code == 401
    await app.aclose()


async def test_a_client_and_a_browser_without_tls_through_a_proxy(sqlite_url: str) -> None:
    app, token = await with_job(sqlite_url, base_path="/rota")
    async with served(app) as port, in_front_of(port, Manner("/rota")) as proxy:
        async with RemoteClient(proxy.url, token=token) as far:
            run = await far.enqueue(Order("mail/send", {}))
            assert [one.id for one in await far.list()] == [run.id]
        async with httpx2.AsyncClient(base_url=proxy.url) as http:
            signed = await http.post("/api/v1/session", json={"token": token}, headers={"Origin": proxy.url[:-5]})
            assert "secure" not in signed.headers["set-cookie"].lower()
    await app.aclose()


async def test_ten_wrong_tokens_are_counted_by_the_caller_whatever_it_invents(sqlite_url: str) -> None:
    app, token = await with_job(sqlite_url)
    async with served(app) as port, in_front_of(port, Manner(caller=CALLER)) as proxy, httpx2.AsyncClient() as http:

        async def tries(url: str, text: str, invented: str) -> int:
            headers = {"X-Forwarded-For": invented, "Authorization": f"Bearer {text}"}
            return (await http.get(f"{url}/api/v1/runs", headers=headers)).status_code

        assert [await tries(proxy.url, "rota_wrong", f"198.51.100.{n}") for n in range(12)] == [401] * 10 + [429] * 2
        assert await tries(proxy.url, token, "127.0.0.1") == 429
        async with in_front_of(port, Manner(caller="203.0.113.10")) as other:
            assert await tries(other.url, token, "") == 200, "somebody else behind the same proxy is let in"
    await app.aclose()


async def test_a_proxy_that_tells_a_new_caller_each_time_comes_to_an_end(sqlite_url: str) -> None:
    """A local program is trusted like a proxy: it may guess ten times as often, and no more."""
    own = {"Origin": "http://127.0.0.1:7682"}
    app, token = await with_job(sqlite_url)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=asgi(app)), base_url="http://127.0.0.1:7682/api/v1"
    ) as http:
        await http.post("/session", json={"token": token}, headers={"X-Forwarded-For": CALLER, **own})
        found = []
        for n in range(101):
            headers = {"X-Forwarded-For": f"198.51.{n}.1", "Authorization": "Bearer rota_wrong"}
            found.append((await http.get("/runs", headers=headers)).status_code)
        assert found == [401] * 100 + [429]
        signed_in = await http.get("/runs", headers={"X-Forwarded-For": CALLER})
        assert signed_in.status_code == 200, "nobody guesses sessions: who has one keeps it"
    await app.aclose()


async def test_guesses_of_others_behind_a_proxy_keep_out_nobody_who_was_let_in(sqlite_url: str) -> None:
    now = 0.0
    app, token = await with_job(sqlite_url)
    client, keeper = await app.connect(), Authenticator(lambda: now)
    good = ("bearer", token)
    assert await keeper.identify(good, Caller(CALLER, "127.0.0.1"), client)
    for n in range(100):
        with pytest.raises(NotSignedIn):
            await keeper.identify(("bearer", "rota_wrong"), Caller(f"198.51.{n}.1", "127.0.0.1"), client)
    now = 30.0  # long enough to be looked up again
    assert await keeper.identify(good, Caller(CALLER, "127.0.0.1"), client)
    other = (await client.tokens.create("eve", "viewer")).secret
    with pytest.raises(TooManyTries):
        await keeper.identify(("bearer", other), Caller("203.0.113.10", "127.0.0.1"), client)
    await client.tokens.revoke("ada")
    now = 40.0
    with pytest.raises(NotSignedIn):
        await keeper.identify(good, Caller(CALLER, "127.0.0.1"), client)
    with pytest.raises(TooManyTries):
        await keeper.identify(good, Caller(CALLER, "127.0.0.1"), client)
    await app.aclose()


async def test_two_below_one_another_keep_their_sessions_apart(tmp_path: Path) -> None:
    """A browser sends both cookies, the one with the longer path first."""
    apps = {path: await with_job(f"sqlite:///{tmp_path / name}.db", base_path=path) for path, name in PLACES.items()}
    cookies: list[str] = []
    for app, token in reversed(apps.values()):
        async with direct(app) as http:
            signed = await http.post("/api/v1/session", json={"token": token}, headers=OWN)
            cookies.append(signed.headers["set-cookie"].partition(";")[0])
    async with direct(apps["/rota"][0]) as http:
        both = {"Cookie": "; ".join(cookies), **OWN}
        assert (await http.get("/api/v1/runs", headers=both)).status_code == 200
        assert (await http.delete("/api/v1/session", headers=both)).status_code == 204
        assert (await http.get("/api/v1/runs", headers=both)).status_code == 401, "it is its own that has ended"
    for app, _ in apps.values():
        await app.aclose()


PLACES = {"": "root", "/rota": "below"}
OWN = {"Origin": "http://127.0.0.1"}


def direct(app: Rota) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url="http://127.0.0.1")


@pytest.mark.parametrize("trusted", ["loopback", "none"])
@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": CALLER},
        {"X-Forwarded-For": f"127.0.0.1, {CALLER}"},
        {"X-Forwarded-For": f"{CALLER}, 127.0.0.1"},
        {"X-Forwarded-For": "unknown"},
        {"X-Real-IP": CALLER},
        {"Forwarded": f"for={CALLER};proto=https"},
        {"Forwarded": 'for="[2001:db8::1]:47"'},
    ],
)
async def test_without_auth_whoever_a_proxy_names_is_from_elsewhere(
    sqlite_url: str, headers: dict[str, str], trusted: str
) -> None:
    app = Rota(sqlite_url, trusted_proxies=trusted)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url="http://127.0.0.1") as http:
        answer = await http.get("/api/v1/runs", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "not-local")
        near = await http.get(
            "/api/v1/time", headers={"X-Forwarded-For": "127.0.0.1, ::1", "Forwarded": 'for="[::1]:9"'}
        )
        assert near.status_code == 200
    await app.aclose()


async def test_nobody_comes_to_this_machine_by_a_header(sqlite_url: str) -> None:
    app = Rota(sqlite_url, trusted_proxies="192.0.2.0/24")
    transport = httpx2.ASGITransport(app=asgi(app), client=("192.0.2.7", 5))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        answer = await http.get("/api/v1/time", headers={"X-Forwarded-For": "127.0.0.1"})
        assert answer.json()["code"] == "not-local"
    await app.aclose()


@pytest.mark.parametrize(
    ("host", "told", "status"),
    [
        ("127.0.0.1:7682", "rota.example", 200),
        ("rota.example", "rota.example:8443", 200),
        ("evil.example", "rota.example", 421),
        ("evil.example", "localhost", 421),
        ("127.0.0.1:7682", "evil.example", 421),
        ("127.0.0.1:7682", "", 200),
        ("127.0.0.1:7682", "rota.example, evil.example", 421),
    ],
)
async def test_a_host_that_a_proxy_tells_must_be_ours_and_so_must_the_one_that_it_calls(
    sqlite_url: str, host: str, told: str, status: int
) -> None:
    """A page that rebinds its own name to this machine can send any header."""
    app = Rota(sqlite_url, allowed_hosts="rota.example", auth=True)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url="http://127.0.0.1") as http:
        answer = await http.get("/healthz", headers={"Host": host, "X-Forwarded-Host": told})
        assert answer.status_code == status
    await app.aclose()


async def test_a_mount_keeps_its_path_below_that_of_the_proxy(sqlite_url: str) -> None:
    app, token = await with_job(sqlite_url)
    web = Starlette(routes=[Mount("/jobs", asgi(app))])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=web), base_url="http://127.0.0.1") as http:
        headers = {"X-Forwarded-Prefix": "/shop", "Authorization": f"Bearer {token}"}
        made = await http.post("/jobs/api/v1/runs", json={"job": "mail/send"}, headers=headers)
        assert made.headers["location"] == f"/shop/jobs/api/v1/runs/{made.json()['id']}"
        assert '<base href="/shop/jobs/" />' in (await http.get("/jobs/runs", headers=headers)).text
    await app.aclose()
