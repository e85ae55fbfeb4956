"""Test the ceilings of a server: sessions, enqueues of tokens that may do nothing else, streams of all callers."""

from __future__ import annotations

import httpx2
import pytest

from rota.api.auth.enqueue_rate import EnqueueRate
from rota.api.http.rejection import EnqueuesTooFast, ServerFull
from rota.api.operations.event_stream import Streams
from rota.app import Rota
from rota.config import Config
from rota.core.access.roles import Identity, Role
from rota.errors import BadConfig
from rota.testing import ManualClock

BASE = "http://127.0.0.1:7682"


@pytest.fixture
def app(app: Rota) -> Rota:
    app.configure(auth=True, enqueue_rate="3/1m")

    @app.job
    def hello() -> None: ...

    return app


async def _bearer(app: Rota, role: Role) -> dict[str, str]:
    issued = await (await app.connect()).tokens.create(role.value, role)
    return {"authorization": f"Bearer {issued.secret}"}


async def test_a_token_that_may_only_enqueue_does_so_at_a_rate(app: Rota, http: httpx2.AsyncClient) -> None:
    limited, free = await _bearer(app, Role.ENQUEUE), await _bearer(app, Role.OPERATOR)
    two = {"runs": [{"job": "hello"}] * 2}
    assert (await http.post("/api/v1/runs", json=two, headers=limited)).status_code == 201
    refused = await http.post("/api/v1/runs", json=two, headers=limited)
    assert (refused.status_code, refused.json()["code"]) == (429, "enqueues-too-fast")
    assert "3 per 1m" in refused.json()["detail"]
    assert "ROTA_ENQUEUE_RATE" in refused.json()["hint"]
    assert int(refused.headers["retry-after"]) in range(1, 61)
    assert (await http.post("/api/v1/runs", json={"job": "hello"}, headers=limited)).status_code == 201
    for _ in range(3):
        assert (await http.post("/api/v1/runs", json=two, headers=free)).status_code == 201
    client = await app.connect()
    assert len(await client.list()) == 9, "nothing of what was refused"


def test_a_bucket_fills_again() -> None:
    clock = ManualClock()
    rate = EnqueueRate("60/1m", clock.monotonic)
    caller, other = Identity("token:a", Role.ENQUEUE), Identity("token:b", Role.ENQUEUE)
    rate.take(caller, 60)
    with pytest.raises(EnqueuesTooFast) as refused:
        rate.take(caller, 10)
    assert refused.value.seconds == pytest.approx(10)
    rate.take(other, 60)
    clock.advance("10s")
    rate.take(caller, 10)
    clock.advance("60s")
    rate.take(caller, 600)  # larger than the rate: it pays afterwards
    with pytest.raises(EnqueuesTooFast):
        rate.take(caller, 1)
    EnqueueRate("none", clock.monotonic).take(caller, 10**9)


def test_a_rate_that_nobody_understands_is_refused() -> None:
    with pytest.raises(BadConfig, match="enqueue_rate"):
        Config(enqueue_rate="often")


async def test_viewers_see_neither_paths_of_webhooks_nor_headers(app: Rota, http: httpx2.AsyncClient) -> None:
    """Whoever has them can send the same. Operators, who may change jobs, see what they change."""
    client = await app.connect()
    hook = "https://hooks.example.com/services/T0/B0/very-secret"
    await client.notifications.create("ops", to=hook)
    await client.data_jobs.create("ping", url="https://example.com/ping", headers={"X-Custom": "very-secret"})
    viewer, operator = await _bearer(app, Role.VIEWER), await _bearer(app, Role.OPERATOR)
    for path in ("notifications", "notifications/ops", "jobs", "jobs/ping", "audit"):
        assert "very-secret" not in (await http.get(f"/api/v1/{path}", headers=viewer)).text, path
    shown = (await http.get("/api/v1/notifications/ops", headers=viewer)).json()
    assert shown["to"] == "https://hooks.example.com/…"
    assert "X-Custom" in (await http.get("/api/v1/jobs/ping", headers=viewer)).text
    assert "very-secret" in (await http.get("/api/v1/notifications/ops", headers=operator)).text
    assert "very-secret" in (await http.get("/api/v1/jobs/ping", headers=operator)).text


async def test_a_token_has_so_many_sessions(
    app: Rota, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.client.access.tokens._MOST_SESSIONS", 2)
    token = {"token": (await _bearer(app, Role.VIEWER))["authorization"].removeprefix("Bearer ")}

    async def sign_in() -> httpx2.Response:
        return await http.post("/api/v1/session", json=token, headers={"origin": BASE})

    for _ in range(2):
        assert (await sign_in()).status_code == 201
    refused = await sign_in()
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-sessions")
    assert "sign out" in refused.json()["hint"]
    assert (await http.delete("/api/v1/session", headers={"origin": BASE})).status_code == 204
    assert (await sign_in()).status_code == 201


def test_all_callers_together_have_so_many_streams() -> None:
    streams = Streams(most=2, in_all=3)
    ann, bob = streams.counted("ann"), streams.counted("bob")
    with ann, streams.counted("ann"), bob, pytest.raises(ServerFull, match="3 open"):
        streams.require_room("cem")
    streams.require_room("cem")
