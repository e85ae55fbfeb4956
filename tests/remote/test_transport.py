"""The transport against servers that are down, slow, foreign or strict."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from rota.api import asgi
from rota.api.http.problems import problem
from rota.app import Rota
from rota.client.client import Order
from rota.core.access.roles import Role
from rota.core.runs.run import RunFilter
from rota.errors import (
    BadConfig,
    BadTrigger,
    Conflict,
    DeadlineExceeded,
    Denied,
    Forbidden,
    Invalid,
    NotFound,
    NotSignedIn,
    RotaError,
    SchemaOutdated,
    TooManyTries,
    Unavailable,
    UnknownRun,
)
from rota.remote import RemoteClient
from rota.remote.changes import events_of
from rota.remote.problems import Problem, error_of, raised, retry_after
from rota.remote.transport import Transport, checked_url
from tests.support.servers.http_server import Site, serving
from tests.support.wait import forever, until

SECRET = "rota_5be1c0ffee00_verysecretindeed"
NOW = b'{"now": "2026-01-31T08:00:00Z"}'

Reaction = Callable[[Request], Response | Awaitable[Response]]


class Script:
    """A server that does one thing after another, and records its requests."""

    def __init__(self, *reactions: Reaction) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        self.authorizations: list[str | None] = []
        self._reactions = list(reactions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        self.asked.append((request.method, request.url.path, request.headers.get("idempotency-key")))
        self.authorizations.append(request.headers.get("authorization"))
        reaction = self._reactions.pop(0) if len(self._reactions) > 1 else self._reactions[0]
        answer = reaction(request)
        response = answer if isinstance(answer, Response) else await answer
        await response(scope, receive, send)


def ok(_: Request) -> Response:
    return Response(NOW, media_type="application/json")


def away(_: Request) -> Response:
    response = problem(Unavailable("the database cannot be reached"))
    response.headers["retry-after"] = "0"
    return response


def outdated(_: Request) -> Response:
    return problem(SchemaOutdated(1, 2))


async def never(_: Request) -> Response:
    await forever()
    return PlainTextResponse("too late")


def scripted(*reactions: Reaction) -> tuple[Script, Any]:
    script = Script(*reactions)
    return script, serving(script)


async def asking(site: Site, question: Callable[[RemoteClient], Awaitable[Any]], **how: Any) -> Any:
    async with RemoteClient(site.url, SECRET, **how) as client:
        return await question(client)


async def test_a_question_is_asked_again_when_the_database_is_away_for_a_moment() -> None:
    script, serving_it = scripted(away, away, ok)
    with serving_it as site:
        assert (await asking(site, lambda client: client.time())).year == 2026
    assert len(script.asked) == 3


async def test_but_not_for_ever() -> None:
    script, serving_it = scripted(away)
    with serving_it as site, pytest.raises(Unavailable, match="the database cannot be reached"):
        await asking(site, lambda client: client.time())
    assert len(script.asked) == 3


async def test_what_will_not_pass_is_not_asked_again() -> None:
    script, serving_it = scripted(outdated)
    with serving_it as site, pytest.raises(SchemaOutdated):
        await asking(site, lambda client: client.time())
    assert len(script.asked) == 1


async def test_a_rest_longer_than_the_deadline_is_not_waited_for() -> None:
    def patient(request: Request) -> Response:
        response = away(request)
        response.headers["retry-after"] = "3600"
        return response

    script, serving_it = scripted(patient)
    with serving_it as site, pytest.raises(Unavailable):
        await asking(site, lambda client: client.time())
    assert len(script.asked) == 1


async def test_the_server_says_how_long_to_rest() -> None:
    rests: list[float] = []

    async def pause(seconds: float) -> None:
        rests.append(seconds)

    def soon(request: Request) -> Response:
        response = away(request)
        response.headers["retry-after"] = "2"
        return response

    script, serving_it = scripted(soon, soon, ok)
    with serving_it as site:
        transport = Transport(site.url, None, "15s", pause=pause)
        await transport.ask("GET", "/x")
        await transport.close()
    assert rests == [2.0, 2.0]
    assert len(script.asked) == 3


async def test_an_enqueue_is_repeated_under_its_key_and_other_commands_are_not() -> None:
    script, serving_it = scripted(away)
    with serving_it as site:
        for command in (
            lambda client: client.enqueue(Order("hello", {})),
            lambda client: client.enqueue_many([Order("hello", {})]),
        ):
            script.asked.clear()
            with pytest.raises(Unavailable):
                await asking(site, command)
            keys = {key for _, _, key in script.asked}
            assert (len(script.asked), len(keys), None in keys) == (3, 1, False)
        script.asked.clear()
        with pytest.raises(Unavailable):
            await asking(site, lambda client: client.cancel("1234"))
        assert [path for _, path, _ in script.asked] == ["/api/v1/runs/1234/cancel"]


async def test_a_lost_answer_makes_one_run(sqlite_url: str) -> None:
    """The server executes the request, and the connection breaks before it can respond."""
    app = app_on(sqlite_url)
    inner = asgi(app)
    lost: list[Any] = []

    async def losing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST" and not lost:

            async def nowhere(message: Any) -> None:
                lost.append(message)

            await inner(scope, receive, nowhere)
            raise ConnectionError("cut")
        await inner(scope, receive, send)

    with serving(losing, app) as site:
        run = await asking(site, lambda client: client.enqueue(Order("hello", {})))
        found = await asking(site, lambda client: client.list())
    assert lost
    assert [one.id for one in found] == [run.id]


async def test_a_server_that_is_not_there() -> None:
    with serving(Script(ok)) as site:
        pass
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:\d+ cannot be reached") as gone:
        await asking(site, lambda client: client.time())
    assert SECRET not in str(gone.value)
    assert gone.value.exit_code == 69


async def test_a_server_that_goes_away_in_the_middle(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = app_on(sqlite_url)
    with serving(asgi(app), app) as site:
        async with RemoteClient(site.url) as client:
            run = await client.enqueue(Order("hello", {}))
            async with client.subscribe([f"run:{run.id}"]) as hints:
                assert (await anext(hints)).id == run.id
                waiting = asyncio.create_task(client.wait(run.id))
                await asyncio.to_thread(site.go_away)
                with pytest.raises(Unavailable):
                    await waiting
                with caplog.at_level(logging.WARNING, "rota.remote"):
                    await until(lambda: "cannot receive change hints, retrying" in caplog.text)


async def test_a_bulk_command_that_breaks_off() -> None:
    def half(_: Request) -> Response:
        return Response(b'{"progress": {"matched": 2, "done": 1, "refused": []}}\n')

    seen: list[Any] = []
    _, serving_it = scripted(half)
    with serving_it as site, pytest.raises(Unavailable, match="connection to the server was lost"):
        await asking(site, lambda client: client.cancel_many(RunFilter(job="x"), progress=seen.append))
    assert [one.done for one in seen] == [1]


async def test_every_call_has_a_deadline() -> None:
    _, serving_it = scripted(never)
    with serving_it as site, pytest.raises(DeadlineExceeded, match=r"GET /api/v1/time at .* within 0\.2s"):
        await asking(site, lambda client: client.time(), timeout="200ms")


async def test_the_token_goes_to_its_server_only() -> None:
    script, serving_it = scripted(ok)
    with serving_it as site:
        hop = Script(lambda _: RedirectResponse(f"{site.url}/api/v1/time", 307))
        with serving(hop) as first, pytest.raises(Unavailable, match="answered 307") as refused:
            await asking(first, lambda client: client.time())
    assert script.asked == []
    assert hop.authorizations == [f"Bearer {SECRET}"] * len(hop.authorizations)
    assert f"{site.url}/api/v1/time" in str(refused.value.hint)


def page_of_another(status: int) -> Reaction:
    return lambda _: PlainTextResponse("<html>", status)


async def test_other_programs_are_recognized() -> None:
    for status, kind in ((404, Unavailable), (502, Unavailable), (403, Denied)):
        _, serving_it = scripted(page_of_another(status))
        with serving_it as site, pytest.raises(kind, match=str(status)):
            await asking(site, lambda client: client.time())
    _, serving_it = scripted(lambda _: PlainTextResponse("<html>"))
    with serving_it as site, pytest.raises(Unavailable, match="cannot be decoded"):
        await asking(site, lambda client: client.time())


def app_on(url: str, **settings: Any) -> Rota:
    app = Rota(url, **settings)

    @app.job
    def hello(name: str = "you") -> str:
        return name

    return app


@pytest.fixture
async def guarded(sqlite_url: str) -> AsyncIterator[Rota]:
    app = app_on(sqlite_url, auth=True)
    await (await app.connect()).store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


@pytest.fixture
def guarded_site(guarded: Rota) -> Iterator[Site]:
    with serving(asgi(guarded), guarded) as site:
        yield site


async def test_a_wrong_token_is_told_without_telling_it(guarded_site: Site) -> None:
    for token in (None, SECRET):
        async with RemoteClient(guarded_site.url, token) as client:
            with pytest.raises(NotSignedIn) as refused:
                await client.list()
            assert refused.value.exit_code == 5
            assert "verysecret" not in f"{refused.value} {client!r} {vars(refused.value)}"
            with pytest.raises(NotSignedIn):
                async with client.subscribe(["runs"]) as hints:
                    await anext(hints)


async def test_a_role_that_may_not(guarded: Rota, guarded_site: Site) -> None:
    issued = await (await guarded.connect()).tokens.create("reader", Role.VIEWER)
    async with RemoteClient(guarded_site.url, issued.secret) as client:
        assert await client.list() == []
        with pytest.raises(Forbidden, match="token:reader has the role viewer"):
            await client.pause_job("hello")


def test_addresses_and_tokens_that_cannot_be() -> None:
    for url in ("", "rota.example.com", "ftp://x", "http://", "http://x:y", "http://x:0"):
        with pytest.raises(Invalid, match="is not a server's address"):
            checked_url(url)
    for url in ("http://me:secretword@x", "https://x/?a=b", "https://x/#a"):
        with pytest.raises(Invalid) as refused:
            checked_url(url)
        assert "secretword" not in str(refused.value)
    assert checked_url("https://x/rota/") == "https://x/rota"
    for token in ("a\nb", "a b", "ä"):
        with pytest.raises(Invalid) as refused:
            RemoteClient("http://x", token)
        assert token not in str(refused.value)
    with pytest.raises(Invalid):
        RemoteClient("http://x", timeout="0s")


def test_problems_become_what_they_were() -> None:
    def of(code: str, status: int, **more: Any) -> RotaError:
        return raised(Problem(code, status, "because", **more), {"retry-after": "7"})

    assert type(of("unknown-run", 404, hint="h")) is UnknownRun
    assert (str(of("unknown-run", 404, hint="h")), of("unknown-run", 404).hint) == ("because (h)", None)
    assert type(of("something-new", 409)) is Conflict
    assert of("something-new", 409).code == "something-new"
    assert [type(of("new", status)) for status in (401, 403, 404, 421, 429, 500, 504)] == [
        Denied, Denied, NotFound, Invalid, Invalid, RotaError, Unavailable
    ]  # fmt: skip
    assert type(of("bad-configuration", 503)) is Unavailable
    assert type(of("bad-configuration", 422)) is BadConfig
    tries = of("too-many-tries", 429)
    assert isinstance(tries, TooManyTries)
    assert tries.seconds == 7
    path: Any = of("bad-payload", 422, pointer="#/payload/user/age")
    assert (path.path, path.within("job 'x'").message) == ("$.user.age", "job 'x': because")
    other: Any = of("bad-payload", 422, pointer="#/documents/3/payload/user/age")
    assert other.path == "$.user.age"
    rule: Any = of("bad-trigger", 422, field="minute")
    assert (type(rule), rule.field) == (BadTrigger, "minute")
    assert retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}) is None
    assert type(error_of(503, b"\xff", {}, "x")).__mro__[1] is Unavailable


async def test_server_sent_events_are_read_as_they_are_written() -> None:
    async def lines() -> AsyncIterator[bytes]:
        for line in b": still here\n\nid: 1\nevent: hint\ndata: {}\n\nevent: reset\ndata: {}\n\nevent: hint".split(
            b"\n"
        ):
            yield line

    found = [one async for one in events_of(lines())]
    assert [one.event for one in found] == ["hint", "reset"]
    assert msgspec.json.decode(found[0].data) == {}
