"""`rota mcp`: serve rota's verbs to an agent over stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from rota.cli.connect import actor, require_existing, root_option, server_of
from rota.cli.options import examples, streaming
from rota.config import load_config
from rota.core.access.roles import Identity, Role
from rota.errors import Unavailable

if TYPE_CHECKING:
    from rota.cli.mcp.connection import Connection

_ROLES = [Role.VIEWER.value, Role.OPERATOR.value, Role.ADMIN.value, Role.ENQUEUE.value]
_LONGEST_LINE = 4_000_000


@click.command(
    epilog=examples(
        "rota mcp",
        "rota mcp --role operator --database postgresql://rota@db/rota",
        "rota --server https://rota.example.com mcp",
    )
)
@click.option(
    "--role", type=click.Choice(_ROLES), default=Role.VIEWER.value, show_default=True, help="What the agent may do."
)
@streaming
def mcp(role: str, database: str | None, as_json: bool) -> None:
    """Serve rota's verbs to an agent, by the Model Context Protocol on stdin and stdout.

    Each verb of the REST API that the role may call is a tool; by default the agent can only read. A tool that changes
    something first answers with what it would do and a token, and does it when it is called again with both. With
    --server, the role of the token counts, too.
    """
    asyncio.run(_serve(Identity(f"mcp:{actor().removeprefix('cli:')}", Role(role)), database))


async def _serve(identity: Identity, database: str | None) -> None:
    from rota.cli.mcp.calls import Calls
    from rota.cli.mcp.protocol import Session
    from rota.cli.mcp.tools import tools_of

    connection = _connection(identity, database)
    try:
        described = await connection.ask("GET", "/openapi.json")
        whoami = await connection.ask("GET", "/api/v1/whoami")
        for reply in (described, whoami):
            if not reply.is_good:
                raise Unavailable(str(reply.content.get("detail") if isinstance(reply.content, dict) else reply.status))
        own = Identity(identity.actor, Role(whoami.content["role"]))
        tools = tools_of(described.content, identity)
        allowed = tools_of(described.content, own)
        session = Session(Calls({name: tool for name, tool in tools.items() if name in allowed}, connection))
        while line := await asyncio.to_thread(sys.stdin.buffer.readline, _LONGEST_LINE):
            if line.strip() and (answer := await session.answer(line)) is not None:
                sys.stdout.buffer.write(answer + b"\n")
                sys.stdout.buffer.flush()
    finally:
        await connection.close()


def _connection(identity: Identity, database: str | None) -> Connection:
    from rota.app import Rota
    from rota.cli.mcp.connection import InProcess, OverHttp

    server = server_of(database)
    config = load_config({"database_url": database})
    if server is not None:
        from rota.remote.transport import Transport

        return OverHttp(Transport(server, root_option("token") or config.token or None, config.deadline))
    require_existing(config.database_url)
    return InProcess(Rota(config.database_url, auth=False), identity)
