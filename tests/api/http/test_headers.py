"""Sending responses: in one piece where the server supports it, otherwise in parts; always with our headers."""

import pytest
from starlette.types import Message

from rota.api.http.headers import WHOLE, Answer

BODY = {"type": "http.response.body", "body": b"{}"}
LENGTH = (b"content-length", b"2")


class Server:
    """Server that accepts whole responses, unless it is not the `moment`."""

    def __init__(self, *, moment: bool = True) -> None:
        self.moment = moment
        self.whole: list[tuple[int, bytes, bytes]] = []
        self.pieces: list[Message] = []

    def take(self, status: int, head: bytes, body: bytes) -> bool:
        if self.moment:
            self.whole.append((status, head, body))
        return self.moment

    async def send(self, message: Message) -> None:
        self.pieces.append(message)

    def answer(self, method: str = "GET") -> Answer:
        return Answer({"method": method, "extensions": {WHOLE: self.take}}, self.send, "me")


def start(*headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": 201, "headers": [*headers]}


async def test_an_answer_with_a_length_leaves_whole() -> None:
    server = Server()
    answer = server.answer()
    await answer.send(start(LENGTH, (b"cache-control", b"max-age=5")))
    assert answer.status == 201
    await answer.send(BODY)
    ((status, head, body),) = server.whole
    assert (status, body, server.pieces) == (201, b"{}", [])
    assert head.startswith(b"content-length: 2\r\ncache-control: max-age=5\r\n")
    assert head.endswith(b"x-request-id: me\r\n")
    assert head.count(b"cache-control") == 1
    assert b"content-security-policy: " in head


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [LENGTH, (b"connection", b"close")],
        [(b"content-length", b"3")],
        [LENGTH, (b"location", b"/a\r\nx: y")],
        [LENGTH, (b"location", b"/a\rb")],
        [LENGTH, (b"location", b"/a\x00b")],
    ],
)
async def test_others_are_left_to_the_server(headers: list[tuple[bytes, bytes]]) -> None:
    server = Server()
    answer = server.answer()
    await answer.send(start(*headers))
    await answer.send(BODY)
    first, last = server.pieces
    assert (last, server.whole) == (BODY, [])
    assert dict(first["headers"])[b"x-request-id"] == b"me"


async def test_nothing_is_lost_if_it_cannot_leave_whole() -> None:
    for server, method, more in (
        (Server(moment=False), "GET", False),
        (Server(), "HEAD", False),
        (Server(), "GET", True),
    ):
        answer = server.answer(method)
        await answer.send(start(LENGTH))
        await answer.send({**BODY, "more_body": more})
        assert [message["type"] for message in server.pieces] == ["http.response.start", "http.response.body"]
        assert dict(server.pieces[0]["headers"])[b"cache-control"] == b"no-store"
