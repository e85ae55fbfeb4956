"""Model Context Protocol: JSON-RPC messages, one a line, of an agent that calls tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.cli.mcp.calls import Calls
from rota.version import __version__

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol, the newest first. What is used here is the same in all."""
_PARSE, _REQUEST, _METHOD, _PARAMS = -32_700, -32_600, -32_601, -32_602
_INSTRUCTIONS = (
    "rota runs jobs on time and records what happened. Begin with get_overview and list_attention; explain_run and "
    "explain_schedule say why something ran, waits, or did not run. Lists have `next_cursor` for their next page."
)


class _Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Session:
    """Session of one agent."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def answer(self, line: bytes) -> bytes | None:
        """Return the answer to a message; None if it wants none."""
        id: Any = None
        try:
            message = _message(line)
            id = message.get("id")
            is_notification = "id" not in message
            result = await self._result(message)
            answer: dict[str, Any] = {"result": result}
        except _Refused as refused:
            is_notification = False
            answer = {"error": {"code": refused.code, "message": str(refused)}}
        return None if is_notification else msgspec.json.encode({"jsonrpc": "2.0", "id": id, **answer})

    async def _result(self, message: Mapping[str, Any]) -> Any:
        params = message.get("params") or {}
        if not isinstance(params, dict):
            raise _Refused(_PARAMS, "params must be an object")
        match message.get("method"):
            case "initialize":
                return _initialized(params)
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [tool.listed() for tool in self._calls.tools.values()]}
            case "tools/call":
                return await self._called(params)
            case method if "id" in message:
                raise _Refused(_METHOD, f"there is no method {method!r:.80}")
            case _:
                return None

    async def _called(self, params: Mapping[str, Any]) -> dict[str, Any]:
        tool = self._calls.tools.get(str(params.get("name")))
        arguments = params.get("arguments") or {}
        if tool is None:
            raise _Refused(_PARAMS, f"there is no tool {params.get('name')!r:.80}, or your role may not use it")
        if not isinstance(arguments, dict):
            raise _Refused(_PARAMS, "arguments must be an object")
        content, is_error = await self._calls.call(tool, arguments)
        return {"content": [{"type": "text", "text": msgspec.json.encode(content).decode()}], "isError": is_error}


def _initialized(params: Mapping[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "rota", "version": __version__},
        "instructions": _INSTRUCTIONS,
    }


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise _Refused(_PARSE, "the line is no JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _Refused(_REQUEST, "a message is an object with jsonrpc 2.0")
    return message
