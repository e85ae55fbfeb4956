"""Effects of writes before they happen: a dry run, a simulation, or what the write is about, as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from rota.cli.mcp.connection import Connection, Reply
from rota.cli.mcp.tools import Tool

_FACTS = ("id", "name", "state", "revision", "attempt", "paused", "enabled", "version", "updated_at")
"""Fields of a subject that must not have changed between the two calls."""
_COUNTS = ("count", "matched", "done")
"""Fields of a dry run that must not have changed, either."""
_SPAN = "1d"


class Effect(msgspec.Struct, frozen=True):
    """Effect of a write: `shown` to the caller; `facts` must be the same when it is done."""

    shown: dict[str, Any]
    facts: Any = None
    etag: str | None = None
    refusal: Reply | None = None


async def effect_of(
    tool: Tool, arguments: Mapping[str, Any], tools: Mapping[str, Tool], connection: Connection
) -> Effect:
    """Return what a call would do, without doing it. A refusal is what the call itself would be refused with."""
    path, query, body = tool.request(arguments)
    request = {"request": f"{tool.method} {path}", **({} if body in (None, {}) else {"body": body})}
    if tool.has_dry_run and isinstance(body, dict):
        reply = await connection.ask(tool.method, path, query, {**body, "dry_run": True})
        if reply.is_good:
            return Effect({**request, "dry_run": reply.content}, _foreseen(reply))
        if "dry_run" not in str(reply.content):
            return Effect(request, refusal=reply)
    subject = await _subject(tool, path, body, tools, connection)
    facts = _facts(subject)
    shown = request if subject is None or not subject.is_good else {**request, "now": subject.content}
    if subject is not None and subject.status == 404 and tool.method != "PUT":
        return Effect(shown, refusal=subject)
    etag = subject.etag if subject is not None and subject.is_good else None
    simulated = _simulation(tool, path, body)
    if simulated is None:
        return Effect(shown, facts, etag)
    reply = await connection.ask("POST", *simulated)
    return Effect({**shown, "simulated": reply.content}, facts, etag, None if reply.is_good else reply)


def _foreseen(reply: Reply) -> Any:
    """Return how many things a dry run has found, under whatever name."""
    found = reply.content if isinstance(reply.content, dict) else {}
    return {key: found[key] for key in _COUNTS if key in found}


def _simulation(tool: Tool, path: str, body: Any) -> tuple[str, None, dict[str, Any]] | None:
    """Return the simulation of a write about schedules: path, query and body."""
    collection, _, name = path.partition("/api/v1/schedules/")
    if path == "/api/v1/schedules:apply":
        known = {key: body[key] for key in ("documents", "owner") if key in body}
        return "/api/v1/schedules:simulate", None, {**known, "span": _SPAN}
    if path == "/api/v1/schedules" or (tool.method == "PUT" and name and "/" not in name):
        return "/api/v1/schedules:simulate", None, {"documents": [{"name": name, **body}], "span": _SPAN}
    if tool.method == "PATCH" and name and not collection:
        return f"{path}/simulate", None, {"changes": body, "span": _SPAN}
    return None


async def _subject(tool: Tool, path: str, body: Any, tools: Mapping[str, Tool], connection: Connection) -> Reply | None:
    """Return what a write is about: the job that its body names, or the nearest thing that its path names."""
    if isinstance(body, dict) and isinstance(body.get("job"), str):
        return await connection.ask("GET", f"/api/v1/jobs/{quote(body['job'], safe='')}")
    readable = {each.path for each in tools.values() if each.method == "GET"}
    template, place = tool.path, path
    while template.count("/") > 3:  # /api/v1/runs is a list, and no subject
        if template in readable:
            return await connection.ask("GET", place)
        template, place = template.rpartition("/")[0], place.rpartition("/")[0]
    return None


def _facts(subject: Reply | None) -> Any:
    if subject is None or not isinstance(subject.content, dict):
        return None
    return {key: subject.content[key] for key in _FACTS if key in subject.content}
