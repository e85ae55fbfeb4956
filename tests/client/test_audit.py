"""The audit log through the clients: who retried, triggered and resumed; valid and invalid queries."""

from rota.core.calendar.triggers import every
from rota.testing import Harness


async def test_retries_triggers_and_resumes_have_an_actor() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        client = harness.client
        await client.schedules.create("s", "work", every("1h"), actor="ann")
        first = await harness.enqueue("work")
        await client.cancel(first.id, reason="wrong", actor="ann")
        again = await client.retry(first.id, actor="bob")
        created, *_ = await client.events(again.id[:20])
        assert (created.type, created.actor, created.details) == ("created", "bob", {"retry_of": first.id})
        await client.cancel(again.id, actor="ann")
        third = await client.retry_job("work", actor="carl")
        assert (await client.events(third.id))[0].actor == "carl"
        (triggered,) = await client.schedules.trigger("s", actor="dora")
        assert (await client.events(triggered.id))[0].actor == "dora"
        assert [event.type for event in await client.schedules.events("s")] == ["created", "triggered"]
        await client.pause_queue("default", actor="ann")
        await client.resume_queue("default", actor="bob")
        newest, *_ = await client.audit(kind="queue")
        assert (newest.type, newest.actor) == ("resumed", "bob")
        assert [event.type for event in await client.audit(actor="bob")] == ["resumed", "retried"]
        assert len(await client.audit(subject=first.id)) == 1


async def test_quotas_notifications_and_jobs_that_are_data_have_trails() -> None:
    async with Harness() as harness:
        client = harness.client
        for _ in range(2):  # done again, it changes nothing
            await client.quotas.update("tenant", "a", max_concurrency=2, actor="ann")
        await client.quotas.update("tenant", max_queued=9)
        await client.quotas.delete("tenant", "a", actor="bob")
        last, of_all, first = await client.audit(kind="quota")
        assert (first.subject, first.type, first.actor) == ("tenant/a", "set", "ann")
        assert first.details["max_concurrency"] == 2
        assert (of_all.subject, of_all.type) == ("tenant", "set")
        assert (last.subject, last.type, last.actor) == ("tenant/a", "dropped", "bob")
        await client.notifications.create("ops", to="https://example.com/?token=hunter2", secret="hunter2", actor="ann")
        await client.notifications.update("ops", on=["success"], actor="bob")
        await client.notifications.delete("ops", actor="carl")
        trail = await client.audit(kind="notification", subject="ops")
        assert [(event.type, event.actor) for event in trail] == [
            ("dropped", "carl"),
            ("changed", "bob"),
            ("added", "ann"),
        ]
        assert "hunter2" not in repr(trail)
        await client.data_jobs.create("ping", "http", url="https://example.com", actor="ann")
        await client.data_jobs.update("ping", timeout="1s", actor="bob")
        await client.data_jobs.delete("ping", actor="carl")
        trail = await client.audit(kind="job", subject="ping")
        assert [(event.type, event.actor) for event in trail] == [
            ("dropped", "carl"),
            ("changed", "bob"),
            ("added", "ann"),
        ]
