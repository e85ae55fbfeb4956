"""Every change over HTTP records its actor: a walk over all routes of operators and admins."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import pytest

from rota.api.operations.routing import walk
from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.access.roles import Role
from rota.core.calendar.triggers import every
from rota.server import asgi
from rota.testing import adrain
from tests.support.runs.runs import WORKER

API = "/api/v1"
HOUR = timedelta(hours=1)

NOT_AUDITED = {
    ("POST", "/schedules/{name}/simulate"): "it changes nothing",
    ("POST", "/schedules:simulate"): "it changes nothing",
    ("POST", "/notifications/{name}/test"): "it changes nothing; the receiver knows of it",
    ("POST", "/runs"): "an enqueue is in the run's own trail",
    ("POST", "/database/accept"): "nothing changes unless it is a copy; tests/store/databases/test_copies.py has one",
    ("POST", "/session"): "whoever signs in has done nothing yet",
    ("DELETE", "/session"): "whoever signs out has done it",
}


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = Rota(database_url, auth=True)

    @app.job(max_attempts=1)
    def boom() -> None:
        raise RuntimeError("no")

    app.external("look")
    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


async def furnish(app: Rota, client: Client) -> list[tuple[str, str, Any]]:
    """Create something to change with each route, in a sensible order."""
    failed = [(await client.enqueue(Order("boom", {}))).id for _ in range(3)]
    await adrain(app)
    now = datetime.now(UTC)
    await client.schedules.create("news", "boom", every("1h"), start_at=now - 24 * HOUR)
    await client.store.workers.beat(msgspec.structs.replace(WORKER, id="web@aa11", name="web"))
    live = [(await client.enqueue(Order("look", {}))).id for _ in range(2)]
    ping = {"name": "ping", "url": "https://example.com"}
    stretch = {"from": (now - 5 * HOUR).isoformat(), "to": (now - 2 * HOUR).isoformat()}
    return [
        ("POST", f"/runs/{live[0]}/restrict", {"only_workers": ["w"]}),
        ("POST", f"/runs/{live[0]}/cancel", {}),
        ("POST", f"/runs/{failed[0]}/retry", {}),
        ("POST", "/runs:bulk", {"action": "retry", "filter": {"job": "boom"}}),
        ("POST", "/runs:bulk", {"action": "cancel", "filter": {"job": "boom"}}),
        ("POST", "/runs:purge", {"filter": {"job": "look"}}),
        ("POST", "/jobs", ping),
        ("PUT", "/jobs/ping", {"url": "https://example.org"}),
        ("PATCH", "/jobs/ping", {"priority": 3}),
        ("DELETE", "/jobs/ping", None),
        ("POST", "/jobs/ping/restore", None),
        ("PUT", "/jobs/boom/limit", {"rate": "5/s"}),
        ("DELETE", "/jobs/boom/limit", None),
        ("POST", "/jobs/boom/pause", {}),
        ("POST", "/jobs/boom/resume", {}),
        ("POST", "/jobs/boom/retry", None),
        ("POST", "/jobs/look/cancel", {}),
        ("POST", "/schedules", {"name": "two", "job": "boom", "every": "2h"}),
        ("PUT", "/schedules/two", {"job": "boom", "every": "3h"}),
        ("PATCH", "/schedules/two", {"every": "4h"}),
        ("DELETE", "/schedules/two", None),
        ("POST", "/schedules/two/restore", None),
        ("POST", "/schedules:apply", {"owner": "me", "documents": [{"name": "three", "job": "boom", "every": "1h"}]}),
        ("POST", "/schedules/news/pause", {}),
        ("POST", "/schedules/news/resume", {}),
        ("POST", "/schedules/news/disable", None),
        ("POST", "/schedules/news/enable", None),
        ("POST", "/schedules/news/trigger", {"force": True}),
        ("POST", "/schedules/news/backfill", stretch),
        ("POST", "/schedules:bulk", {"action": "pause", "names": ["news"]}),
        ("PATCH", "/workers/web", {"slots": 4}),
        ("POST", "/workers/web/drain", None),
        ("POST", "/workers/web/resume", None),
        ("POST", "/workers/web/stop", None),
        ("PUT", "/queues/default/limit", {"max_concurrency": 3}),
        ("DELETE", "/queues/default/limit", None),
        ("POST", "/queues/default/pause", {}),
        ("POST", "/attention:snooze", {"kind": "queue_paused", "subject": "default", "reason": "a move"}),
        ("POST", "/attention:unsnooze", {"kind": "queue_paused", "subject": "default"}),
        ("POST", "/queues/default/resume", None),
        ("PUT", "/quotas/tenant", {"max_concurrency": 5}),
        ("DELETE", "/quotas/tenant", None),
        ("PUT", "/quotas/tenant/7", {"max_concurrency": 5}),
        ("DELETE", "/quotas/tenant/7", None),
        ("POST", "/scopes/tenant/7/pause", {"reason": "moved"}),
        ("POST", "/scopes/tenant/7/resume", None),
        ("PUT", "/expectations/job/boom", {"start_within": "5m"}),
        ("PATCH", "/expectations/job/boom", {"start_within": "6m"}),
        ("DELETE", "/expectations/job/boom", None),
        ("POST", "/notifications", {"name": "ops", "to": "https://example.com"}),
        ("PATCH", "/notifications/ops", {"enabled": False}),
        ("DELETE", "/notifications/ops", None),
        ("POST", "/tokens", {"name": "ci", "role": "viewer"}),
        ("POST", "/tokens/ci/revoke", None),
        ("POST", "/jobs:bulk", {"action": "pause", "filter": {"name": "boom"}}),
    ]


def changing(application: Any) -> set[tuple[str, str]]:
    """Return the routes by which people, not workers, change something."""
    return {
        (method, path.removeprefix(API))
        for path, route in walk(application.routes)
        for method, operation in route.operations.items()
        if method != "GET" and operation.role not in (None, Role.WORKER) and path.startswith(API)
    }


async def test_every_change_is_signed(app: Rota) -> None:
    client = await app.connect()
    calls = await furnish(app, client)
    secret = (await client.tokens.create("boss", Role.ADMIN)).secret
    application = asgi(app)
    left = changing(application) - set(NOT_AUDITED)
    transport, headers = httpx2.ASGITransport(app=application), {"Authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1{API}", headers=headers) as http:
        for method, path, body in calls:
            before = (await client.audit(limit=1))[0].seq
            answer = await http.request(method, path, json=body)
            assert answer.is_success, (method, path, answer.text)
            new = [event for event in await client.audit(limit=100) if event.seq > before]
            assert new, (method, path, "left nothing")
            assert {event.actor for event in new} == {"token:boss"}, (method, path, new)
            left -= {one for one in left if one[0] == method and matches(one[1], path)}
    assert left == set()


def matches(pattern: str, path: str) -> bool:
    wanted, found = pattern.split("/"), path.split("/")
    alike = (one in (part, "") or one.startswith("{") for one, part in zip(wanted, found, strict=False))
    return len(wanted) == len(found) and all(alike)
