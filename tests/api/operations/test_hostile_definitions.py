"""Hostile documents of schedules, jobs, policies and workers: never a 5xx, limits enforced, nothing written."""

import itertools
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest

from rota.app import Rota
from rota.client.alerts.expectations import ExpectationsClient
from rota.client.alerts.notifications import NotificationsClient
from rota.client.external.external import ExternalClient
from rota.client.jobs.job_body import NewJobBody
from rota.client.limits.quotas import QuotasClient
from rota.core.schedules.documents import KEYS
from rota.server import asgi
from tests.api.operations.test_hostile_values import JSON, WEIRD
from tests.support.verbs import fields_of

API = "/api/v1"
NOBODY = "01a1e113-637e-7384-aa02-a556abf37a46"
JOB = {"name": '"ping"', "url": '"https://example.com"'}
FENCE = {"fence": "1"}
PLACES: list[tuple[str, str, dict[str, str], tuple[str, ...]]] = [
    ("POST", "/jobs", JOB, NewJobBody.__struct_fields__),
    ("POST", "/jobs", {"name": '"run"', "argv": '["ls"]'}, ("argv", "env", "cwd", "stdin", "retry_exit_codes")),
    ("POST", "/schedules", {"name": '"s"', "job": '"greet"', "every": '"1h"'}, KEYS),
    ("PUT", "/schedules/s", {"job": '"greet"', "cron": '"0 3 * * *"'}, KEYS),
    ("PUT", "/quotas/tenant", {}, fields_of(QuotasClient, "update")),
    ("PUT", "/expectations/job/greet", {}, fields_of(ExpectationsClient, "update")),
    ("POST", "/notifications", {"name": '"n"', "to": '"mailto:a@b.c"'}, fields_of(NotificationsClient, "create")),
    ("PATCH", "/notifications/n", {}, fields_of(NotificationsClient, "update")),
    ("POST", "/worker/claim", {"worker": '"a"'}, fields_of(ExternalClient, "claim")),
    ("POST", f"/worker/runs/{NOBODY}/fail", FENCE | {"error": '"x"'}, fields_of(ExternalClient, "fail")),
    (
        "POST",
        f"/worker/runs/{NOBODY}/step",
        FENCE | {"id": '"x"', "state": '"failed"'},
        fields_of(ExternalClient, "step"),
    ),
    ("POST", f"/worker/runs/{NOBODY}/logs", FENCE | {"lines": '["x"]'}, fields_of(ExternalClient, "logs")),
    ("POST", f"/worker/runs/{NOBODY}/progress", FENCE, fields_of(ExternalClient, "progress")),
]


@pytest.fixture
async def http(sqlite_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    app = Rota(sqlite_url)

    @app.job
    def greet() -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:7682{API}") as http:
        yield http
    await app.aclose()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]} {place[1]} {sorted(place[2])}")
async def test_values_of_every_field(
    http: httpx2.AsyncClient, place: tuple[str, str, dict[str, str], tuple[str, ...]]
) -> None:
    method, path, known, fields = place
    for field, value in itertools.product(fields, WEIRD):
        if field == "wait":
            continue
        text = "{" + ", ".join(f'"{name}": {given}' for name, given in {**known, field: value}.items()) + "}"
        answer = await http.request(method, path, content=text.encode(), headers=JSON)
        assert answer.status_code < 500, (field, value[:80], answer.text[:500])
    for listed in ("/jobs", "/schedules", "/quotas", "/expectations", "/notifications", "/workers"):
        assert (await http.get(listed)).status_code == 200, listed


@pytest.mark.parametrize(
    "cron",
    ["0 " * 200, "* " * 500_000, "1" * 257 + " * * * *", "0 0 1-100000000 * *", ",".join("0" * 200) + " * * * *"],
)
async def test_cron_expressions_have_an_end(http: httpx2.AsyncClient, cron: str) -> None:
    document = {"name": "s", "job": "greet", "cron": cron}
    for answer in (
        await http.post("/schedules", json=document),
        await http.put("/schedules/s", json=document),
        await http.post("/jobs", json={"name": "p", "url": "https://example.com", "schedule": {"cron": cron}}),
    ):
        assert 400 <= answer.status_code < 500
        assert len(answer.content) < 5_000
    assert (await http.get("/schedules")).json()["items"] == []


@pytest.mark.parametrize("levels", [65, 100, 100_000])
async def test_nothing_is_nested_deeper_than_64(http: httpx2.AsyncClient, levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    for path, body in (
        ("/schedules", b'{"name": "s", "job": "greet", "every": "1h", "payload": %s}'),
        ("/jobs", b'{"name": "p", "url": "https://example.com", "body": %s}'),
        ("/jobs", b'{"name": "p", "url": "https://example.com", "metadata": %s}'),
        (f"/worker/runs/{NOBODY}/complete", b'{"fence": 1, "result": %s}'),
    ):
        answer = await http.post(path, content=body % deep, headers=JSON)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        assert len(answer.content) < 5_000
    jobs = (await http.get("/jobs")).json()["items"]
    assert [job["name"] for job in jobs] == ["greet"]


async def test_lists_have_an_end(http: httpx2.AsyncClient) -> None:
    many = [f"x{number}" for number in range(501)]
    job = {"name": "p", "url": "https://example.com"}
    for path, body in (
        ("/jobs", job | {"tags": many}),
        ("/jobs", job | {"only_workers": many}),
        ("/jobs", {"name": "p", "argv": many}),
        ("/notifications", {"name": "n", "to": "mailto:a@b.c", "jobs": many * 2}),
        ("/worker/claim", {"worker": "a", "queues": many}),
        (f"/worker/runs/{NOBODY}/logs", {"fence": 1, "lines": ["x"] * 1_001}),
        ("/runs", {"runs": [{"job": "greet"}] * 501}),
        ("/schedules:bulk", {"action": "pause", "names": many * 2}),
    ):
        assert (await http.post(path, json=body)).status_code == 422, path
    for path in ("/runs", "/audit"):
        assert (await http.get(f"{path}?limit=501")).status_code == 422
    assert (await http.get("/schedules?limit=1001")).status_code == 422
    assert (await http.post("/schedules/x/simulate", json={"limit": 1001})).status_code == 422


async def test_large_bodies_are_refused_everywhere(http: httpx2.AsyncClient) -> None:
    for method, path, *_ in PLACES:
        answer = await http.request(method, path, content=b" " * 1_048_577, headers=JSON)
        assert (answer.status_code, msgspec.json.decode(answer.content)["code"]) == (413, "body-too-large"), path
