"""The server on a real socket: large, slow, endless and malformed requests only hurt their sender."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota.api.http import connections
from rota.api.operations import request as requests
from rota.app import Rota
from rota.server import Web, asgi, listen
from tests.support.wait import PATIENCE

HEAD = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
Address = tuple[str, int]


@pytest.fixture
async def server(sqlite_url: str) -> AsyncIterator[Address]:
    app = Rota(sqlite_url, port=0)
    with listen(app.config) as listener:
        web = Web(asgi(app), listener)
        web.start()
        await web.ready.wait()
        host, port = listener.getsockname()[:2]
        yield host, port
        await web.stop()
    await app.aclose()


async def said(server: Address, *parts: bytes, eof: bool = False) -> bytes:
    """Return everything received until the server closes; a reset connection counts as closed."""
    reader, writer = await asyncio.open_connection(*server)
    heard = bytearray()
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if eof:
            writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            while got := await reader.read(65_536):
                heard += got
    except ConnectionError:
        pass
    finally:
        writer.close()
    return bytes(heard)


async def assert_alive(server: Address) -> None:
    answer = await said(server, b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]


async def test_ten_megabytes_are_refused_before_they_are_sent(server: Address) -> None:
    head = b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Content-Length: 10485760\r\nConnection: close\r\n\r\n"
    assert (await said(server, head)).startswith(b"HTTP/1.1 413")
    assert (await said(server, head[:-2] + b"Expect: 100-continue\r\n\r\n")).startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    chunked = b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    heard = await said(server, chunked, *[chunk] * 17)
    assert heard.startswith(b"HTTP/1.1 413")
    await assert_alive(server)


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 300,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"FOO /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nA\x00b: c\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Content-Length: -5\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
        b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}extra\r\n0\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused(server: Address, request_: bytes) -> None:
    answer = await said(server, request_, eof=True)
    assert answer == b"" or answer[:10] == b"HTTP/1.1 4", answer[:200]
    await assert_alive(server)


async def test_bodies_that_end_early(server: Address) -> None:
    for head in (b"Content-Length: 500", b"Transfer-Encoding: chunked"):
        request = b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + head + b'\r\n\r\n2\r\n{"'
        reader, writer = await asyncio.open_connection(*server)
        writer.write(request)
        await writer.drain()
        writer.transport.abort()
        assert reader is not None
    await assert_alive(server)


async def test_a_websocket_is_not_opened(server: Address) -> None:
    ask = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    assert b"101" not in (await said(server, ask, eof=True))[:12]
    await assert_alive(server)


async def test_long_addresses_and_headers(server: Address) -> None:
    long_path = b"GET /api/v1/runs/" + b"x" * 50_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    answer = await said(server, long_path)
    assert answer.startswith(b"HTTP/1.1 404")
    assert len(answer) < 5_000
    many = b"".join(b"X-%d: 1\r\n" % number for number in range(3_000))
    ask = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    assert (await said(server, ask + many + b"\r\n"))[:10] in (b"HTTP/1.1 2", b"HTTP/1.1 4")
    await assert_alive(server)


async def test_a_header_without_an_end_is_not_kept(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_HEAD_WITHIN", 60)
    parts = [b"x" * 65_536] * 40
    answer = await said(server, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", *parts)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431"), answer[:200]
    await assert_alive(server)


async def test_whoever_says_nothing_is_not_waited_for(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_HEAD_WITHIN", 0.05)
    assert await said(server) == b""
    assert await said(server, b"GET / HTTP/1.1\r\nHost: 127") == b""
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert (await said(server, whole + b"GET /he")).startswith(b"HTTP/1.1 200")


async def test_a_slow_body_is_not_waited_for(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Content-Length: 500\r\n\r\n{"
    monkeypatch.setattr(requests, "_PATIENCE", 0.05)
    answer = await said(server, begun)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body-too-slow" in answer
    monkeypatch.setattr(requests, "_PATIENCE", 60)
    monkeypatch.setattr(connections, "_BODY_WITHIN", 0.5)
    assert await said(server, begun) == b""
    await assert_alive(server)


async def test_a_body_that_comes_in_pieces_is_read(server: Address) -> None:
    head = b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n"
    reader, writer = await asyncio.open_connection(*server)
    writer.write(head + b"Content-Length: 15\r\n\r\n")
    for piece in (b'{"job":', b'"none"', b" }"):
        await assert_alive(server)  # and so it has read what came before
        writer.write(piece)
    async with asyncio.timeout(PATIENCE):
        assert b"unknown-job" in await reader.read(-1)
    writer.close()
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n7\r\n" + b'{"job":' + b"\r\n"
    assert b"unknown-job" in await said(server, chunked, b'8\r\n"none"} \r\n0\r\n\r\n')


async def test_an_answer_that_leaves_in_one_piece_is_as_any_other(server: Address) -> None:
    whole = await said(server, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    head, _, body = whole.partition(b"\r\n\r\n")
    lines = [line.partition(b": ")[::2] for line in head.split(b"\r\n")[1:]]
    named = dict(lines)
    assert len(named) == len(lines)
    assert int(named[b"content-length"]) == len(body) > 0
    assert {b"date", b"x-request-id", b"content-security-policy", b"cache-control"} <= named.keys()
    assert named[b"connection"] == b"close"
    unsent = await said(server, b"HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert unsent.endswith(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in unsent
    old = await said(server, b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
    assert b"connection: close" in old
    assert old.endswith(body)


async def test_requests_sent_ahead_are_answered_in_their_order(server: Address) -> None:
    paths = [b"/healthz", b"/api/v1/nothing", b"/api/v1/runs", b"/healthz"]
    ahead = b"".join(b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path for path in paths)
    last = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    found = (await said(server, ahead + last)).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in found] == [b"200", b"404", b"200", b"200", b"200"]


async def test_others_are_served_meanwhile(server: Address) -> None:
    begun = b"POST /api/v1/runs HTTP/1.1\r\n" + HEAD + b"Content-Length: 500\r\n\r\n{"
    slow = [await asyncio.open_connection(*server) for _ in range(100)]
    for _, writer in slow:
        writer.write(begun)
        await writer.drain()
    await assert_alive(server)
    for _, writer in slow:
        writer.close()


async def test_a_stream_is_no_slow_request(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_HEAD_WITHIN", 0.05)
    monkeypatch.setattr(connections, "_BODY_WITHIN", 0.05)
    reader, writer = await asyncio.open_connection(*server)
    writer.write(b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    async with asyncio.timeout(PATIENCE):
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
    ended = asyncio.create_task(until_closed(reader))
    done, _ = await asyncio.wait([ended], timeout=0.3)
    assert not done
    writer.close()
    await ended


async def until_closed(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass
