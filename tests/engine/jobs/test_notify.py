"""Test the delivery of notifications: signatures, allowed addresses, retries, and no secrets in errors."""

import base64
import hashlib
import hmac
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import msgspec
import pytest

from rota.client.client import Order
from rota.config import Config
from rota.core.alerts.notifications import notification_of
from rota.core.alerts.webhook_signature import verify
from rota.core.progress.control_flow import Fail
from rota.core.states import RunState
from rota.engine.jobs.http_client import NotSent
from rota.engine.jobs.mail import Server, server_of
from rota.engine.jobs.notify import Deliveries
from rota.engine.jobs.plugins import plugin
from rota.errors import BadConfig, Invalid, Unavailable
from rota.testing import Harness
from tests.support.runs.real_worker import Working
from tests.support.servers.hostile_server import HostileServer
from tests.support.servers.notification_receivers import hook, mailbox

EVENT = {"id": "some-id", "type": "run.failed", "at": "now", "job": "crawl", "run": {"id": "r", "error": None}}
LOOPBACK = Config(http_allow="127.0.0.0/8")


async def test_a_webhook_is_signed(harness: Harness) -> None:
    async with hook() as receiver:
        to = notification_of({"to": receiver.url, "secret": "hunter2"})
        assert await Deliveries(harness.store, LOOPBACK).deliver(to, EVENT) == {"status": 200}
    ((headers, body),) = receiver.came
    assert msgspec.json.decode(body) == EVENT
    content = f"some-id.{headers['webhook-timestamp']}.".encode() + body
    digest = base64.b64encode(hmac.digest(b"hunter2", content, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert headers["webhook-id"] == "some-id"
    assert headers["content-type"] == "application/json"
    assert int(headers["webhook-timestamp"]) == harness.clock.micros() // 1_000_000


async def test_a_message_links_to_the_page_that_it_is_about(harness: Harness) -> None:
    config = msgspec.structs.replace(LOOPBACK, dashboard_url="https://rota.example.com/jobs/")
    async with hook() as receiver:
        deliver = Deliveries(harness.store, config).deliver
        await deliver(notification_of({"to": receiver.url}), EVENT)
        many = {f"fact {number}": number for number in range(50)}
        for service in ("slack", "teams", "discord", "pagerduty"):
            secret = {"secret": "key"} if service == "pagerduty" else {}
            await deliver(notification_of({"to": f"{service}:{receiver.url}", **secret}), {**EVENT, "details": many})
    plain, *services = (body for _, body in receiver.came)
    assert msgspec.json.decode(plain) == {**EVENT, "url": "https://rota.example.com/jobs/runs/r"}
    assert [b"https://rota.example.com/jobs/runs/r" in body for body in services] == [True] * 4


async def test_a_service_gets_its_own_format(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGERDUTY_KEY", "hunter2")
    async with hook() as receiver:
        to = notification_of({"to": f"pagerduty:{receiver.url}", "secret": "env:PAGERDUTY_KEY"})
        assert await Deliveries(harness.store, LOOPBACK).deliver(to, EVENT) == {"status": 200}
        ((headers, body),) = receiver.came
        assert (msgspec.json.decode(body)["routing_key"], "webhook-signature" in headers) == ("hunter2", False)
        with pytest.raises(NotSent, match="not allowed"):
            await Deliveries(harness.store, Config()).deliver(notification_of({"to": f"slack:{receiver.url}"}), EVENT)


async def test_a_secret_of_the_environment(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hook() as receiver:
        to = notification_of({"to": receiver.url, "secret": "env:HOOK_SECRET"})
        with pytest.raises(NotSent, match="no HOOK_SECRET"):
            await Deliveries(harness.store, LOOPBACK).deliver(to, EVENT)
        monkeypatch.setenv("HOOK_SECRET", "hunter2")
        await Deliveries(harness.store, LOOPBACK).deliver(to, EVENT)
    assert "webhook-signature" in receiver.came[0][0]


@pytest.mark.parametrize("status", [302, 400, 500])
async def test_any_other_answer_is_a_failure_and_no_redirect_is_followed(harness: Harness, status: int) -> None:
    async with hook() as receiver:
        receiver.statuses = [status]
        with pytest.raises(NotSent, match=f"answered {status}"):
            await Deliveries(harness.store, LOOPBACK).deliver(notification_of({"to": receiver.url}), EVENT)
        assert len(receiver.came) == 1
        receiver.statuses = [410]
        with pytest.raises(Fail):
            await Deliveries(harness.store, LOOPBACK).deliver(notification_of({"to": receiver.url}), EVENT)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433"])
async def test_private_addresses_are_refused(harness: Harness, host: str) -> None:
    async with hook() as receiver:
        port = receiver.url.rpartition(":")[2]
        to = notification_of({"to": f"http://{host}:{port}/hunter2"})
        with pytest.raises(NotSent, match=r"not allowed|cannot be used") as caught:
            await Deliveries(harness.store, Config()).deliver(to, EVENT)
        assert "hunter2" not in str(caught.value)
        assert receiver.came == []


async def test_what_went_wrong_is_told_without_the_url(harness: Harness) -> None:
    to = notification_of({"to": "http://127.0.0.1:1/hunter2?token=hunter2"})
    with pytest.raises(NotSent, match=r"^127\.0\.0\.1: ") as caught:
        await Deliveries(harness.store, LOOPBACK).deliver(to, EVENT)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_receiver_that_does_not_answer(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.jobs.notify._TIMEOUT", 0.05)
    async with HostileServer() as server:
        with pytest.raises(NotSent, match="did not answer within"):
            await Deliveries(harness.store, LOOPBACK).deliver(notification_of({"to": f"{server.url}/loris"}), EVENT)


async def test_a_standard_secret_signs_as_the_standard_says(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hook() as receiver:
        to = notification_of({"to": receiver.url, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
        await Deliveries(harness.store, LOOPBACK).deliver(to, EVENT)
        ((headers, body),) = receiver.came
        assert verify(str(to.secret), headers, body, now=float(headers["webhook-timestamp"]))
        monkeypatch.setenv("HOOK_SECRET", "whsec_not base64")
        to = notification_of({"to": receiver.url, "secret": "env:HOOK_SECRET"})
        with pytest.raises(NotSent, match="base64"):
            await Deliveries(harness.store, LOOPBACK).deliver(to, EVENT)
    with pytest.raises(Invalid, match="base64"):
        notification_of({"to": receiver.url, "secret": "whsec_not base64"})


async def test_mail(harness: Harness) -> None:
    async with mailbox() as receiver:
        config = Config(smtp_url=receiver.url, smtp_from="rota@example.com")
        to = notification_of({"to": "mailto:a@example.com,b@example.com"})
        await Deliveries(harness.store, config).deliver(to, EVENT)
    ((recipients, text),) = receiver.came
    assert recipients == ["a@example.com", "b@example.com"]
    assert "Subject: [rota] crawl failed\r\n" in text
    assert "Message-ID: <some-id@rota>" in text


async def test_a_mail_server_that_refuses(harness: Harness) -> None:
    async with mailbox() as receiver:
        receiver.refuses = True
        config = Config(smtp_url=receiver.url, smtp_from="rota@example.com")
        with pytest.raises(NotSent, match="451 come back later"):
            await Deliveries(harness.store, config).deliver(notification_of({"to": "mailto:a@example.com"}), EVENT)
    with pytest.raises(NotSent, match=r"127\.0\.0\.1"):  # and one that is gone
        await Deliveries(harness.store, config).deliver(notification_of({"to": "mailto:a@example.com"}), EVENT)
    with pytest.raises(NotSent, match="ROTA_SMTP_URL"):
        await Deliveries(harness.store, Config()).deliver(notification_of({"to": "mailto:a@example.com"}), EVENT)


def test_mail_servers() -> None:
    assert server_of("smtp://me:a%40b@mail:587?starttls=1") == Server("mail", 587, False, True, "me", "a@b")
    assert server_of("smtps://mail") == Server("mail", 465, True)
    for url in ("mail", "http://mail", "smtp://", "smtp://me:hunter2@mail:x"):
        with pytest.raises(BadConfig) as caught:
            server_of(url)
        assert "hunter2" not in str(caught.value)


async def test_testing_one(sqlite_url: str) -> None:
    async with hook() as receiver, Harness(url=sqlite_url, http_allow="127.0.0.0/8") as harness:
        notifications = harness.client.notifications
        await notifications.create("ops", to=receiver.url, secret="hunter2")
        assert await notifications.test("ops") == {"status": 200}
        receiver.statuses = [500]
        with pytest.raises(Unavailable, match="answered 500"):
            await notifications.test("ops")
        assert msgspec.json.decode(receiver.came[0][1])["type"] == "test"
        view = await notifications.update("ops", on=["success"], enabled=False)
        assert (view.on, view.enabled, view.secret) == (("success",), False, "***")
        await notifications.test("ops")
        assert "webhook-signature" in receiver.came[-1][0]


async def test_from_a_failure_to_the_receiver(sqlite_url: str) -> None:
    """The real messenger, worker and jobs: the first try is refused, the second is taken."""
    async with hook() as receiver, Harness(url=sqlite_url, http_allow="127.0.0.0/8") as harness:
        receiver.statuses = [500]
        await harness.declare("crawl", max_attempts=1)
        harness.app.registry.builtin.update(Deliveries(harness.store, harness.config).handlers())
        await harness.client.notifications.create("ops", to=receiver.url)
        run = await harness.client.enqueue(Order("crawl", {}))
        held = await harness.worker("a").claim()
        await held.fail(run, ValueError("no luck"))
        await harness.store.signals.deliver(100)
        (sent,) = await harness.client.list(limit=1)
        assert (sent.job, sent.queue) == ("rota.webhook", "rota")
        async with Working(harness) as at_work:
            at_work.worker.serve("rota", {"rota.webhook": 1, "rota.email": 1})
            await at_work.has_state(sent.id, RunState.SCHEDULED)
            harness.clock.advance("5m")
            await harness.promoter.step()
            await at_work.has_state(sent.id, RunState.SUCCEEDED)
            await at_work.has_state((await harness.client.retry(sent.id)).id, RunState.SUCCEEDED)
        ids = {headers["webhook-id"] for headers, _ in receiver.came}
        assert (len(receiver.came), ids) == (3, {sent.id})


async def test_mail_that_is_refused_is_sent_later(sqlite_url: str) -> None:
    async with mailbox() as receiver:
        receiver.refuses = True
        async with Harness(url=sqlite_url, smtp_url=receiver.url, smtp_from="rota@example.com") as harness:
            harness.app.registry.builtin.update(Deliveries(harness.store, harness.config).handlers())
            await harness.client.notifications.create("ops", on=["cancelled"], to="mailto:a@example.com")
            await harness.cancel(await harness.enqueue("crawl"))
            await harness.store.signals.deliver(100)
            (sent,) = await harness.client.list(limit=1)
            async with Working(harness) as at_work:
                at_work.worker.serve("rota", {"rota.webhook": 1, "rota.email": 1})
                run = await at_work.has_state(sent.id, RunState.SCHEDULED)
                assert run.error is not None
                assert "451 come back later" in run.error.message
                receiver.refuses = False
                harness.clock.advance("5m")
                await harness.promoter.step()
                await at_work.has_state(sent.id, RunState.SUCCEEDED)
    ((_, text),) = receiver.came
    assert "Subject: [rota] crawl was cancelled" in text


async def test_one_that_is_gone_is_not_tried_again(harness: Harness) -> None:
    handler = Deliveries(harness.store, LOOPBACK).handlers()["rota.webhook"]
    with pytest.raises(Fail, match="no notification 'ops' any more"):
        await handler.fn(notification="ops", event=EVENT)


async def test_channels_and_secrets_of_other_packages(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []

    async def chat(target: str, event: dict[str, Any]) -> None:
        sent.append((target, event["id"]))
        if target == "closed":
            raise ConnectionError("no such room")

    def vault(reference: str) -> str:
        return "hunter2" if reference == "hooks/ops" else ""

    plugins = {("rota.channels", "chat"): chat, ("rota.secrets", "vault"): vault}
    found = EntryPoints(EntryPoint(name, f"{__name__}:{name}", group) for group, name in plugins)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found.select(group=group))
    monkeypatch.setattr(EntryPoint, "load", lambda entry: plugins[entry.group, entry.name])
    plugin.cache_clear()
    deliveries = Deliveries(harness.store, LOOPBACK)
    assert await deliveries.deliver(notification_of({"to": "channel:chat/ops-room"}), EVENT)
    assert sent == [("ops-room", "some-id")]
    with pytest.raises(NotSent, match="ConnectionError: no such room"):
        await deliveries.deliver(notification_of({"to": "channel:chat/closed"}), EVENT)
    with pytest.raises(NotSent, match=r"no 'pager' among the entry points of 'rota\.channels'; installed: chat"):
        await deliveries.deliver(notification_of({"to": "channel:pager/ops"}), EVENT)
    async with hook() as receiver:
        to = {"to": receiver.url, "secret": "provider:vault/hooks/ops"}
        await deliveries.deliver(notification_of(to), EVENT)
        with pytest.raises(NotSent, match="gave no secret"):
            await deliveries.deliver(notification_of({**to, "secret": "provider:vault/other"}), EVENT)
    headers, body = receiver.came[0]
    assert verify("hunter2", headers, body, now=float(headers["webhook-timestamp"]))
    plugin.cache_clear()
    for wrong in ({"to": "channel:chat"}, {"to": "https://example.com", "secret": "provider:vault"}):
        with pytest.raises(Invalid):
            notification_of(wrong)
