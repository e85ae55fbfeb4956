"""Linters of OpenAPI documents have nothing to say about ours, not even a warning."""

from __future__ import annotations

import asyncio

from tests.openapi.conftest import HERE, Server
from tests.support.processes.node import node
from tests.support.processes.npm import installed, run

QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}


async def lint(*command: str) -> None:
    with installed(HERE):
        pass
    done = await asyncio.to_thread(run, [node(), *command], HERE, QUIET)
    assert done.returncode == 0, done.stdout + done.stderr


async def test_redocly(server: Server) -> None:
    await lint("node_modules/@redocly/cli/bin/cli.js", "lint", str(server.document), "--config", "redocly.yaml")


async def test_spectral(server: Server) -> None:
    program, severity = "node_modules/@stoplight/spectral-cli/dist/index.js", "--fail-severity=hint"
    await lint(program, "lint", str(server.document), "--ruleset", ".spectral.yaml", severity)
