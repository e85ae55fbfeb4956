"""Every request takes at most two transactions, whatever it asks for.

Each operation of the API's document is requested once, with an example that succeeds, on both databases.
"""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from rota.api.docs.openapi import described
from rota.app import Rota
from rota.server import asgi
from tests.support.databases.transactions import counted
from tests.support.runs.runs import LEASE_MICROS, WORKER

API = "/api/v1"
MOST = 2
OVER: dict[str, int] = {}
"""Operations that take more than two transactions, and how many. A number may only fall; nothing may be added."""
NOT_ASKED = {
    "stream_changes": "an endless stream of hints",
    "create_session": "needs a token, which only a server with auth has",
    "delete_session": "the same",
    "test_notification": "sends something",
}
STREAMED = {"bulk_runs", "purge_runs", "bulk_schedules", "bulk_jobs", "export_runs", "export_attempts", "export_events"}
"""Operations that work through as many rows as there are, a batch at a time."""
EXAMINING = {"examine_database"}
"""Operations that try one thing after another as any process would: connections, hints, the ledger of each schedule."""


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = Rota(database_url, enable_command=True)

    @app.job
    def crawl(url: str = "") -> str:
        return url

    store = (await app.connect()).store
    await store.save_jobs(app.registry.definitions())
    await store.extend(WORKER, [], LEASE_MICROS)
    yield app
    await app.aclose()


class Arrangement:
    """What an operation needs before it is requested: paths and fields that name something that exists."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._number = 0

    async def post(self, path: str, body: object = None, method: str = "POST") -> dict[str, Any]:
        answer = await self._http.request(method, path, json=body)
        assert answer.status_code < 300, (path, answer.text)
        return dict(answer.json()) if answer.content else {}

    def _new_name(self) -> str:
        self._number += 1
        return f"thing-{self._number}"

    async def run(self) -> dict[str, str]:
        return {"id": (await self.post("/runs", {"job": "crawl", "delay": "1h"}))["id"]}

    async def ended_run(self) -> dict[str, str]:
        await self.post("/jobs/crawl/resume")  # it may have been cancelled before
        run = await self.run()
        await self.post(f"/runs/{run['id']}/cancel")
        return {**run, "name": "crawl"}

    async def external_run(self) -> dict[str, str]:
        job = await self.external_job()
        await self.post("/runs", {"job": job["name"]})
        claimed = await self.post("/worker/claim", {"worker": "w@1", "jobs": [job["name"]], "max": 1})
        (run,) = claimed["runs"]
        return {"id": run["id"]}

    async def waiting_external_run(self) -> dict[str, str]:
        await self.post("/jobs", {"name": "label-images", "kind": "external"})
        await self.post("/runs", {"job": "label-images"})
        return {}

    async def cancelling_run(self) -> dict[str, str]:
        run = await self.external_run()
        await self.post(f"/runs/{run['id']}/cancel")
        return run

    async def external_job(self) -> dict[str, str]:
        name = self._new_name()
        await self.post("/jobs", {"name": name, "kind": "external"})
        return {"name": name}

    async def http_job(self) -> dict[str, str]:
        name = self._new_name()
        await self.post("/jobs", {"name": name, "url": "https://example.com/health"})
        return {"name": name}

    async def job(self) -> dict[str, str]:
        return {"name": "crawl"}

    async def live_job(self) -> dict[str, str]:
        job = await self.http_job()
        await self.post("/runs", {"job": job["name"], "delay": "1h"})
        return job

    async def paused_job(self) -> dict[str, str]:
        job = await self.http_job()
        await self.post(f"/jobs/{job['name']}/pause")
        return job

    async def deleted_job(self) -> dict[str, str]:
        job = await self.http_job()
        await self.post(f"/jobs/{job['name']}", None, "DELETE")
        return job

    async def schedule(self) -> dict[str, str]:
        name = self._new_name()
        await self.post("/schedules", {"name": name, "job": "crawl", "every": "1h", "anchor": "epoch"})
        return {"name": name}

    async def paused_schedule(self) -> dict[str, str]:
        schedule = await self.schedule()
        await self.post(f"/schedules/{schedule['name']}/pause")
        return schedule

    async def deleted_schedule(self) -> dict[str, str]:
        schedule = await self.schedule()
        await self.post(f"/schedules/{schedule['name']}", None, "DELETE")
        return schedule

    async def worker(self) -> dict[str, str]:
        return {"id": WORKER.id}

    async def queue(self) -> dict[str, str]:
        return {"name": "default"}

    async def paused_queue(self) -> dict[str, str]:
        await self.post("/queues/default/pause")
        return {"name": "default"}

    async def other_paused_queue(self) -> dict[str, str]:
        await self.post("/runs", {"job": "crawl", "queue": "mail"})
        await self.post("/queues/mail/pause")
        return {"name": "mail"}

    async def scope(self) -> dict[str, str]:
        return {"kind": "tenant", "id": "42"}

    async def paused_scope(self) -> dict[str, str]:
        await self.post("/scopes/tenant/42/pause")
        return await self.scope()

    async def quota(self) -> dict[str, str]:
        name = self._new_name()
        await self.post(f"/quotas/{name}", {"max_concurrency": 5}, "PUT")
        await self.post(f"/quotas/{name}/42", {"max_concurrency": 5}, "PUT")
        return {"kind": name, "id": "42"}

    async def expectation(self) -> dict[str, str]:
        schedule = await self.schedule()
        await self.post(
            f"/expectations/schedule/{schedule['name']}", {"start_within": "1h", "success_every": "25h"}, "PUT"
        )
        return {"kind": "schedule", **schedule}

    async def notification(self) -> dict[str, str]:
        name = self._new_name()
        await self.post("/notifications", {"name": name, "on": ["failure"], "to": "https://example.com/hook"})
        return {"name": name}

    async def token(self) -> dict[str, str]:
        return {"id": (await self.post("/tokens", {"name": self._new_name(), "role": "enqueue"}))["id"]}

    async def nothing(self) -> dict[str, str]:
        return {}


WITH_STATE = {
    "retry_run": "ended_run",
    "retry_job": "ended_run",
    "cancel_job": "live_job",
    "resume_scope": "paused_scope",
    "resume_job": "paused_job",
    "resume_schedule": "paused_schedule",
    "resume_queue": "paused_queue",
    "replace_job": "http_job",
    "update_job": "http_job",
    "delete_job": "http_job",
    "restore_job": "deleted_job",
    "restore_schedule": "deleted_schedule",
    "report_cancelled": "cancelling_run",
    "get_execution": "external_run",
    "claim_runs": "waiting_external_run",
    "snooze_attention": "other_paused_queue",
}
"""Operations that need something in a certain state; the others, anything of the kind that their path names."""
KINDS = {
    "/scopes/": "scope",
    "/runs/": "run", "/worker/runs/": "external_run", "/jobs/": "job", "/schedules/": "schedule", "/workers/": "worker",
    "/queues/": "queue", "/quotas/": "quota", "/expectations/": "expectation", "/notifications/": "notification",
    "/tokens/": "token", "/executions/": "run",
}  # fmt: skip
BODIES: dict[str, dict[str, Any]] = {
    "enqueue_run": {"job": "crawl", "payload": {"url": "https://example.com"}},
    "trigger_schedule": {},
    "claim_runs": {"worker": "w@1", "jobs": ["label-images"], "max": 1},
    "retry_run": {},
    "apply_documents": {
        "owner": "team-a",
        "documents": [{"name": f"applied-{number}", "job": "crawl", "every": "30m"} for number in range(3)],
    },
    "snooze_attention": {"kind": "queue_paused", "subject": "mail"},
    "bulk_jobs": {"action": "pause", "filter": {"name": "nothing-like-this"}},
}
"""Bodies where the document's example names something that does not exist here."""

QUERIES = {"explain_schedule": {"at": "2026-01-01T00:00:00Z"}, "list_recent_runs": {"name": "news"}}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    document = described(asgi(Rota("sqlite:///unused.db")).routes)
    return [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation["operationId"] not in NOT_ASKED
    ]


def kind_of(path: str, name: str) -> str:
    if name in WITH_STATE:
        return WITH_STATE[name]
    below = path.removeprefix(API)
    return next((kind for start, kind in KINDS.items() if below.startswith(start)), "nothing")


def body_of(operation: dict[str, Any]) -> Any:
    if "requestBody" not in operation:
        return None
    example = operation["requestBody"]["content"]["application/json"].get("example")
    return BODIES.get(operation["operationId"], example)


async def test_no_request_takes_more_than_two_transactions(app: Rota, http: httpx2.AsyncClient) -> None:
    database = (await app.connect()).store.database
    arrangement = Arrangement(http)
    taken: dict[str, list[str]] = {}
    for path, method, operation in operations():
        name = operation["operationId"]
        names = await getattr(arrangement, kind_of(path, name))()
        with counted(database) as transactions:
            address = f"http://127.0.0.1:7682{path}".format(**names)
            query = QUERIES.get(name)
            answer = await http.request(method.upper(), address, params=query, json=body_of(operation))
        assert answer.status_code < 400, (name, address, answer.text)
        taken[name] = transactions.opened
    may = STREAMED | EXAMINING
    over = {name: len(opened) for name, opened in taken.items() if len(opened) > MOST and name not in may}
    assert over == OVER, {name: taken[name] for name in over}


async def test_a_request_that_takes_three_is_seen(app: Rota) -> None:
    client = await app.connect()
    with counted(client.store.database) as transactions:
        await client.time()
        await client.quotas.list()
        async with client.store.database.session():
            pass
    assert len(transactions) == 3, transactions.opened
