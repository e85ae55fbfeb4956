"""Pipelines as data: none is a part of another, by whichever request, and a body with a pipeline describes a job."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from rota import Rota
from rota.client.client import Client
from rota.errors import Conflict, Invalid
from rota.store import Store, open_database

Act = Callable[[Client, str, list[dict[str, Any]]], Awaitable[object]]
WRITES: dict[str, Act] = {
    "create": lambda client, name, parts: client.data_jobs.create(f"{name}-new", pipeline=parts),
    "replace": lambda client, name, parts: client.data_jobs.replace(name, pipeline=parts),
    "replace a missing one": lambda client, name, parts: client.data_jobs.replace(f"{name}-new", pipeline=parts),
    "update": lambda client, name, parts: client.data_jobs.update(name, pipeline=parts),
}


def part(job: str) -> list[dict[str, Any]]:
    return [{"step": "one", "job": job}]


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[Client]:
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    app = Rota(database_url)
    app.external("coded-part")
    app.pipeline("coded", [{"step": "one", "job": "coded-part"}, {"step": "two", "job": "to-come"}])
    client = await app.connect()
    await client.data_jobs.create("work", "external")
    await client.data_jobs.create("inner", pipeline=part("work"))
    await client.data_jobs.create("outer", pipeline=part("work"))
    yield client
    await app.aclose()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("inner", ["inner", "coded"])
async def test_a_pipeline_is_no_part(client: Client, write: str, inner: str) -> None:
    with pytest.raises(Invalid, match=f"job '{inner}' is a pipeline, and cannot be a part"):
        await WRITES[write](client, "outer", part(inner))
    assert [one.job for one in (await client.store.data_jobs.get("outer")).pipeline] == ["work"]
    assert await client.store.job("outer-new") is None
    await WRITES[write](client, "outer", part("nobody-knows-it-yet"))


@pytest.mark.parametrize("write", ["create", "replace a missing one"])
async def test_a_part_does_not_become_a_pipeline(client: Client, write: str) -> None:
    await client.data_jobs.update("outer", pipeline=part("late-new"))
    with pytest.raises(Invalid, match="job 'late-new' is a part of 'outer', and cannot be a pipeline"):
        await WRITES[write](client, "late", part("work"))
    with pytest.raises(Invalid, match="job 'to-come' is a part of 'coded', and cannot be a pipeline"):
        await client.data_jobs.create("to-come", pipeline=part("work"))
    await client.data_jobs.create("late-new", "external")
    # An older version, and a pipeline that was deleted, stand in nobody's way.
    await client.data_jobs.update("outer", pipeline=part("other"))
    await client.data_jobs.create("gone", pipeline=part("free"))
    await client.data_jobs.delete("gone")
    await client.data_jobs.create("free", pipeline=part("work"))


async def test_a_body_with_a_pipeline_replaces_the_job(client: Client) -> None:
    await client.data_jobs.update("outer", description="old", max_attempts=1)
    replaced = await client.data_jobs.replace("outer", pipeline=part("other"))
    assert (replaced.description, replaced.retry.max_attempts) == ("", 4)
    with pytest.raises(Conflict, match="is of kind external"):
        await client.data_jobs.replace("work", pipeline=part("other"))
