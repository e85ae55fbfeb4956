"""Quotas, expectations, notifications, data jobs and external work: the remote client behaves like the local one."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from rota.api import asgi
from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.external.external import Assignment
from rota.core.jobs.retry import Delays, Exponential
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.core.progress.steps import StepState
from rota.core.runs.error_fingerprint import fingerprint_of
from rota.core.runs.run import RunError
from rota.core.states import RunState
from rota.errors import (
    AlreadyReported,
    ChangedMeanwhile,
    Conflict,
    Invalid,
    LeaseLost,
    NotExpected,
    RotaError,
    UnknownJob,
    UnknownNotification,
    UnknownOption,
    UnknownQuota,
    UnknownRun,
)
from rota.remote import RemoteClient
from rota.store import Store, open_database
from tests.support.servers.http_server import Site, serving
from tests.support.servers.notification_receivers import hook

MISSING = "00000000-0000-7000-8000-000000000000"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

NO_TIMEOUT: dict[str, Any] = {"timeout": None}

Verb = Callable[[Client], Awaitable[Any]]


async def introduced(url: str) -> Rota:
    app = Rota(url, http_allow="127.0.0.0/8")

    @app.job
    def rest() -> None: ...

    app.external("label", max_attempts=3, backoff=["1h"])
    store = Store(open_database(url))
    await store.migrate()
    await store.save_jobs(app.registry.definitions())
    await store.close()
    return app


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = await introduced(database_url)
    yield app
    await app.aclose()


@pytest.fixture
def site(app: Rota) -> Iterator[Site]:
    with serving(asgi(app), app) as site:
        yield site


@pytest.fixture
async def far(site: Site) -> AsyncIterator[RemoteClient]:
    async with RemoteClient(site.url) as client:
        yield client


async def done(command: Awaitable[None]) -> bool:
    await command
    return True


async def commands(client: Client) -> list[Any]:
    """One of every command, in a sensible order."""
    quotas, expected, told, jobs = client.quotas, client.expectations, client.notifications, client.data_jobs
    options: dict[str, Any] = {
        "backoff": Exponential(timedelta(seconds=2)),
        "timeout": timedelta(minutes=3),
        "unique": Unique(("id",), timedelta(minutes=1)),
        "limit": [Limit(max=2, by=("scope",)), Limit(max=9, per=timedelta(minutes=1))],
        "expect": {"success_every": timedelta(hours=25)},
        "headers": {"Authorization": "Bearer hunter2"},
        "expect_status": ["2xx", 404],
    }
    hook = "https://example.com/hook?token=hunter2"
    return [
        await quotas.update("tenant", max_concurrency=5, actor="api"),
        await quotas.update("tenant", "a/42", max_queued=7, rate=(10, timedelta(minutes=1)), actor="api"),
        await quotas.update("tenant", "a/42", rate="20/1h", actor="api"),
        await quotas.get("tenant", "a/42"),
        await quotas.get("tenant"),
        await quotas.list(),
        await done(quotas.delete("tenant", "a/42", actor="api")),
        await quotas.list(),
        await expected.update("job", "rest", start_within=timedelta(minutes=5), min_success_rate="95%", actor="api"),
        await expected.update("job", "rest", start_within=None, success_every="25h", actor="api"),
        await expected.get("job", "rest"),
        await expected.find("job", "label"),
        await expected.list(),
        await expected.list(breached=True),
        await expected.replace("job", "rest", max_duration="1h", actor="api"),
        await done(expected.delete("job", "rest", actor="api")),
        await told.create(
            "ops", to=hook, on=("failure", "missed"), jobs=["rest"], secret="s3cret", owner="cli", actor="api"
        ),
        await told.create("mail", to="mailto:ops@example.com", actor="api"),
        await told.update("ops", enabled=False, actor="api"),
        await told.update("ops", jobs=None, at_most=3, actor="api"),
        await told.get("ops"),
        await done(told.delete("mail", actor="api")),
        await told.list(),
        await jobs.create("ping", "http", url=hook, owner="cli", actor="api", **options),
        await jobs.create("ping", "http", url=hook, owner="cli", actor="api", **options),
        await jobs.update(
            "ping", backoff=Delays((timedelta(seconds=5),)), **NO_TIMEOUT, expected_revision=1, actor="api"
        ),
        await jobs.create("backup", "command", argv=["pg_dump"], env={"PGPASSWORD": "hunter2"}, actor="api"),
        await jobs.create("review", "external", payload_schema={"type": "object"}, actor="api"),
        await client.enqueue(Order("review", {})),
        await done(jobs.delete("review", force=True, actor="api")),
        await client.jobs(),
        [(event.type, event.subject, event.actor) for event in await client.audit(limit=100)],
    ]


def timeless(value: Any) -> Any:
    text = TIME.sub("…", msgspec.json.encode(value).decode())
    text = re.sub(r'"(created|run)_micros":\d+', '"…":0', text)
    return msgspec.json.decode(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "…", text))


async def test_every_command_does_the_same(sqlite_url: str, tmp_path: Any) -> None:
    """The commands run on two databases, which must then have the same content."""
    twin, app = await introduced(f"sqlite:///{tmp_path / 'twin.db'}"), await introduced(sqlite_url)
    near = await commands(await twin.connect())
    with serving(asgi(app), app) as site:
        async with RemoteClient(site.url) as client:
            other = await commands(cast("Client", client))
    await app.aclose()
    await twin.aclose()
    for place, (one, same) in enumerate(zip(other, near, strict=True)):
        assert (place, timeless(one)) == (place, timeless(same))
        assert type(one) is type(same) or isinstance(one, list)
    assert b"hunter2" not in msgspec.json.encode(other)


REFUSALS: list[tuple[type[RotaError], Verb]] = [
    (UnknownQuota, lambda client: client.quotas.get("tenant", "7")),
    (UnknownQuota, lambda client: client.quotas.delete("tenant")),
    (Invalid, lambda client: client.quotas.update("tenant")),
    (Invalid, lambda client: client.quotas.update("tenant", rate="often")),
    (Invalid, lambda client: client.quotas.update("global", max_queued=1)),
    (NotExpected, lambda client: client.expectations.get("job", "rest")),
    (NotExpected, lambda client: client.expectations.delete("job", "rest")),
    (UnknownJob, lambda client: client.expectations.delete("job", "rset")),
    (UnknownJob, lambda client: client.expectations.update("job", "rset", start_within="5m")),
    (Invalid, lambda client: client.expectations.update("queue", "rest", start_within="5m")),
    (Invalid, lambda client: client.expectations.update("job", "rest", min_success_rate=7.0)),
    (UnknownNotification, lambda client: client.notifications.get("ops")),
    (UnknownNotification, lambda client: client.notifications.update("ops", enabled=False)),
    (UnknownNotification, lambda client: client.notifications.delete("ops")),
    (UnknownNotification, lambda client: client.notifications.test("ops")),
    (Invalid, lambda client: client.notifications.create("ops", to="nowhere")),
    (UnknownJob, lambda client: client.data_jobs.update("ping", priority=1)),
    (UnknownJob, lambda client: client.data_jobs.delete("ping")),
    (Conflict, lambda client: client.data_jobs.create("rest", "external")),
    (Conflict, lambda client: client.data_jobs.update("rest", priority=1)),
    (Invalid, lambda client: client.data_jobs.create("ping", "htpt", url="https://example.com")),
    (UnknownOption, lambda client: client.data_jobs.create("ping", "http", url="https://example.com", argv=["x"])),
    (Invalid, lambda client: client.external.claim("w", max=0)),
    (Invalid, lambda client: client.external.claim("w", wait="1h")),
    (Invalid, lambda client: client.external.claim("w", jobs=["rest"])),
    (UnknownJob, lambda client: client.external.claim("w", jobs=["lable"])),
    (UnknownRun, lambda client: client.external.heartbeat("a3", 1)),
    (UnknownRun, lambda client: client.external.complete(MISSING, 1)),
    (Invalid, lambda client: client.external.complete(MISSING, 0)),
    (Invalid, lambda client: client.external.fail(MISSING, 1, "")),
    (Invalid, lambda client: client.external.fail(MISSING, 1, "x", after="soon")),
]


async def test_refusals_are_the_same(app: Rota, far: RemoteClient) -> None:
    local = await app.connect()
    for place, (kind, verb) in enumerate(REFUSALS):
        with pytest.raises(kind) as near:
            await verb(local)
        with pytest.raises(kind) as other:
            await verb(cast("Client", far))
        assert (place, type(other.value), other.value.message) == (place, type(near.value), near.value.message)


async def test_options_that_do_not_exist_are_refused(app: Rota, far: RemoteClient) -> None:
    options: dict[str, Any] = {"to": "https://example.com", "atmost": 1}
    for client in (await app.connect(), far):
        with pytest.raises(UnknownOption, match="no option 'atmost'") as refused:
            await client.notifications.create("ops", **options)
        assert refused.value.hint == "did you mean 'at_most'?"


async def test_a_job_that_somebody_else_changed_is_left_alone(far: RemoteClient) -> None:
    await far.data_jobs.create("ping", "http", url="https://example.com")
    assert (await far.data_jobs.update("ping", priority=1, expected_revision=1)).version == 2
    with pytest.raises(ChangedMeanwhile):
        await far.data_jobs.update("ping", priority=2, expected_revision=1)


async def test_a_notification_is_tried_out_from_the_server(far: RemoteClient) -> None:
    async with hook() as receiver:
        await far.notifications.create("hook", to=receiver.url)
        assert (await far.notifications.test("hook"))["status"] == 200
        ((_, body),) = receiver.came
        assert msgspec.json.decode(body)["type"] == "test"


async def until_promoted(app: Rota, look: Callable[[], Awaitable[list[Assignment]]]) -> list[Assignment]:
    store = (await app.connect()).store
    while not (found := await look()):
        await store.promote(100)
    return found


async def test_work_outside_is_claimed_told_of_and_ended(app: Rota, far: RemoteClient) -> None:
    made = await far.enqueue(Order("label", {"image": "cat.png"}))
    external = far.external
    assert await external.claim("w", queues=["other"]) == []
    (run,) = await external.claim("w", jobs=["label"], lease="90s", held=[], labels=["gpu"], version="1.2")
    assert (run.run_id, run.payload, run.attempt) == (made.id, {"image": "cat.png"}, 1)
    assert not (await external.heartbeat(run.run_id, run.fence)).cancelling
    await external.progress(run.run_id, run.fence, 40, "looking")
    assert await external.step(run.run_id, run.fence, "look", "succeeded", result={"n": 1}) is StepState.SUCCEEDED
    for _ in range(2):
        await external.logs(run.run_id, run.fence, ["one", {"text": "two", "level": "error"}], no=1)
    assert [line.text for line in await far.logs(run.run_id)] == ["one", "two"]
    error = RunError("Blurred", "too dark", code="E7")
    assert await external.step(run.run_id, run.fence, "see", "failed", error=error) is StepState.FAILED
    assert await external.fail(run.run_id, run.fence, error, after=timedelta(milliseconds=1)) is RunState.SCHEDULED
    (again,) = await until_promoted(app, lambda: external.claim("w", jobs="label"))
    assert (again.attempt, again.steps) == (2, {"look": {"n": 1}})
    for call in (
        external.heartbeat(run.run_id, run.fence),
        external.progress(run.run_id, run.fence, 50),
        external.step(run.run_id, run.fence, "look", "failed", error="x"),
        external.logs(run.run_id, run.fence, "late"),
        external.complete(run.run_id, run.fence, 7),
        external.cancelled(run.run_id, run.fence),
    ):
        with pytest.raises((LeaseLost, AlreadyReported)):
            await call
    assert await external.complete(again.run_id, again.fence, {"label": "cat"}) is RunState.SUCCEEDED
    assert await external.complete(again.run_id, again.fence, {"label": "cat"}) is RunState.SUCCEEDED
    done = await far.get(run.run_id)
    assert (done.result, done.attempt) == ({"label": "cat"}, 2)
    (attempt, _) = await far.attempts(run.run_id)
    assert attempt.error == msgspec.structs.replace(error, fingerprint=fingerprint_of(error))
    (see,) = [step for step in await far.steps(run.run_id) if step.id == "see"]
    assert see.error == msgspec.to_builtins(attempt.error)


async def test_a_claim_waits_longer_than_a_call_may_take(app: Rota, site: Site) -> None:
    async with RemoteClient(site.url, timeout="700ms") as client:
        assert await client.external.claim("w", wait="1200ms") == []
        waiting = asyncio.create_task(client.external.claim("w", wait="20s"))
        made = await client.enqueue(Order("label", {}))
        assert [run.run_id for run in await waiting] == [made.id]


async def test_what_a_lost_answer_claimed_is_given_back(far: RemoteClient) -> None:
    await far.enqueue(Order("label", {}))
    (lost,) = await far.external.claim("w")
    assert await far.external.claim("other") == []
    (found,) = await far.external.claim("w", held=[])
    assert (found.run_id, found.attempt) == (lost.run_id, 1)
