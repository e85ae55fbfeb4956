"""Clients that others generate from `/openapi.json` compile, and enqueue, list, cancel and wait."""

from __future__ import annotations

import asyncio
import importlib
import json
import pkgutil
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.openapi.conftest import HERE, Server
from tests.support.processes.node import node
from tests.support.processes.npm import installed, run
from tests.support.wait import until


async def used(folder: Path, *command: str, **environment: str) -> str:
    done = await asyncio.to_thread(run, command, folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def test_typescript(server: Server, tmp_path: Path) -> None:
    for name in ("client.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    with installed(HERE) as modules:
        (tmp_path / "node_modules").symlink_to(modules)
    generator, compiler = "node_modules/openapi-typescript/bin/cli.js", "node_modules/typescript/bin/tsc"
    await used(tmp_path, node(), generator, server.document.name, "-o", "schema.d.ts")
    await used(tmp_path, node(), compiler, "--project", "tsconfig.json")
    output = await used(tmp_path, node(), "client.js", URL=server.url, TOKEN=server.token)
    assert json.loads(output) == {
        "result": "hello, Ada",
        "cancelled": "cancelled",
        "listed": ["greet", "greet"],
        "batch": 2,
        "refusal": "unknown-job",
    }


async def test_python(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = ["-m", "openapi_python_client", "generate", "--path", server.document.name, "--fail-on-warning"]
    options = ["--meta", "none", "--output-path", "generated_client", "--config", str(HERE / "python.yaml")]
    await used(tmp_path, sys.executable, *generate, *options)
    monkeypatch.syspath_prepend(str(tmp_path))
    generated = importlib.import_module("generated_client")
    for module in pkgutil.walk_packages(generated.__path__, "generated_client."):
        importlib.import_module(module.name)
    async with generated.AuthenticatedClient(base_url=server.url, token=server.token) as client:
        await use(client, server.parsed["paths"], sys.modules["generated_client.models"])


async def use(client: Any, paths: Any, models: Any) -> None:
    """What a program of a user does."""

    async def call(method: str, path: str, *arguments: str, **options: Any) -> Any:
        operation = paths[path][method]
        name = f"generated_client.api.{operation['tags'][0]}.{operation['operationId']}"
        return await sys.modules[name].asyncio(*arguments, client=client, **options)

    async def enqueue(**fields: Any) -> Any:
        return await call("post", "/api/v1/runs", body=models.RunBody(job="greet", tags=["python"], **fields))

    async def is_finished() -> bool:
        return (await call("get", "/api/v1/runs/{id}", greeting.id)).finished_at is not None

    greeting = await enqueue(payload=models.RunBodyPayload.from_dict({"name": "Ada"}))
    await until(is_finished)
    finished = await call("get", "/api/v1/runs/{id}", greeting.id)
    assert finished.result == "hello, Ada"
    assert finished.created_at <= finished.finished_at <= datetime.now(UTC)
    later = await enqueue(delay="1h")
    assert (await call("post", "/api/v1/runs/{id}/cancel", later.id)).state == "cancelled"
    page = await call("get", "/api/v1/runs", tag="python", limit=10)
    assert [item.id for item in page.items] == [later.id, greeting.id]
    several = models.ManyRunsBody(runs=[models.RunBody(job="greet"), models.RunBody(job="greet")])
    assert len((await call("post", "/api/v1/runs", body=several)).items) == 2
    refusal = await call("post", "/api/v1/runs", body=models.RunBody(job="gret"))
    assert refusal.code == "unknown-job"
