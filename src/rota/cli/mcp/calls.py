"""Calls of tools: reads are answered at once, writes first with their effect and a token to confirm it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rota.cli.mcp.connection import Connection, Reply
from rota.cli.mcp.effects import effect_of
from rota.cli.mcp.tools import CONFIRM, Tool

_VALID = 300.0
_MOST_OPEN = 100
_DIFFERENT = "the arguments are not those for which this token was given: call without `confirm`, and look again"
_CHANGED = "what this is about has changed since: call without `confirm`, and look again"
_UNKNOWN = "this token is unknown, was used, or is older than five minutes: call without `confirm` first"


class _Open(msgspec.Struct, frozen=True):
    """A write that waits for its confirmation."""

    tool: str
    arguments: bytes
    facts: Any
    until: float


class Calls:
    """Calls of one session; `clock` returns seconds."""

    def __init__(
        self, tools: Mapping[str, Tool], connection: Connection, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tools = tools
        self._connection = connection
        self._clock = clock
        self._open: dict[str, _Open] = {}

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Any, bool]:
        """Return what a call answers, and whether that is an error."""
        given = {name: value for name, value in arguments.items() if name != CONFIRM}
        missing = [name for name in tool.schema["required"] if name not in given]
        unknown = [name for name in given if name not in tool.schema["properties"]]
        if missing or unknown:
            return _problem(f"{missing[0]} is missing" if missing else f"there is no argument {unknown[0]!r:.80}")
        if tool.reads:
            path, query, body = tool.request(given)
            return _answer(await self._connection.ask(tool.method, path, query, body))
        token = arguments.get(CONFIRM)
        return await (self._offer(tool, given) if token is None else self._confirmed(tool, given, token))

    async def _offer(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Any, bool]:
        effect = await effect_of(tool, arguments, self.tools, self._connection)
        if effect.refusal is not None:
            return _answer(effect.refusal)
        now = self._clock()
        waiting = {token: each for token, each in self._open.items() if each.until > now}
        self._open = dict(list(waiting.items())[1 - _MOST_OPEN :])
        token = secrets.token_urlsafe(9)
        self._open[token] = _Open(tool.name, _encoded(arguments), effect.facts, now + _VALID)
        return {"done": False, "would": effect.shown, CONFIRM: token, "expires_in": "5m"}, False

    async def _confirmed(self, tool: Tool, arguments: Mapping[str, Any], token: object) -> tuple[Any, bool]:
        waiting = self._open.pop(token, None) if isinstance(token, str) else None
        if waiting is None or waiting.until <= self._clock():
            return _problem(_UNKNOWN)
        if (waiting.tool, waiting.arguments) != (tool.name, _encoded(arguments)):
            return _problem(_DIFFERENT)
        effect = await effect_of(tool, arguments, self.tools, self._connection)
        if effect.refusal is not None:
            return _answer(effect.refusal)
        if effect.facts != waiting.facts:
            return _problem(_CHANGED)
        headers = {"If-Match": effect.etag} if tool.conditional and effect.etag is not None else {}
        headers |= {"Idempotency-Key": f"mcp-{token}"} if tool.keyed else {}
        path, query, body = tool.request(arguments)
        reply = await self._connection.ask(tool.method, path, query, body, headers)
        if not reply.is_good:
            return _answer(reply)
        return {"done": True, **({} if reply.content is None else {"result": reply.content})}, False


def _encoded(arguments: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(arguments, order="deterministic")


def _answer(reply: Reply) -> tuple[Any, bool]:
    return ({"done": True} if reply.content is None else reply.content), not reply.is_good


def _problem(detail: str) -> tuple[Any, bool]:
    return {"code": "invalid", "detail": detail}, True
