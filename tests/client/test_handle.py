"""Test handles: the client's verbs about an enqueued run, from every kind of client."""

import asyncio
import copy
import dataclasses
import pickle
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import cast

import msgspec
import pytest

from rota import Context, Enqueued, Handle, Invalid, Order, Rota, RunFailed, RunState, remote
from rota.api import asgi
from rota.client.handle import handle_by
from rota.errors import BlocksEventLoop, Conflict, StillRunning, UnknownRun
from rota.remote import RemoteClient
from rota.testing import adrain, drain, inline
from rota.values.instants import micros_at
from tests.support.servers.http_server import serving


@dataclasses.dataclass
class Parcel:
    order: int
    sent_at: datetime


class Shop:
    """An app on one of the databases, and its jobs."""

    def __init__(self, url: str) -> None:
        app = self.app = Rota(url)

        @app.job
        def ship(order: int) -> Parcel:
            return Parcel(order, datetime(2030, 1, 1, tzinfo=UTC))

        @app.job
        async def double(number: int) -> int:
            return 2 * number

        @app.job(max_attempts=1)
        def refund(order: int) -> None:
            raise ValueError(f"order {order} was never paid")

        @app.job
        def lie() -> dict[int, str]:
            return ["no dict"]  # type: ignore[return-value]

        @app.job
        def numbers() -> dict[int, str]:
            return {1: "one"}

        @app.job
        def plain(value):  # type: ignore[no-untyped-def]
            return value

        self.ship, self.double, self.refund, self.lie, self.numbers, self.plain = (
            ship, double, refund, lie, numbers, plain,
        )  # fmt: skip


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    shop = Shop(database_url)
    yield shop
    shop.app.close()


def test_a_handle_is_what_an_enqueue_answered_before(shop: Shop) -> None:
    handle = shop.ship.options(key="7").enqueue(order=7)
    assert isinstance(handle, Enqueued)
    assert (handle.created, handle.created_at, handle.run_at) == (True, handle.run().created_at, handle.run().run_at)
    same = shop.ship.options(key="7").enqueue(order=7)
    assert (same, same.created, hash(same)) == (handle, False, hash(handle))
    assert handle != shop.ship.enqueue(order=8)
    assert handle.id in repr(handle)


def test_a_result_has_the_type_of_the_function(shop: Shop) -> None:
    parcel, number, table, plain = shop.ship.enqueue(7), shop.double.enqueue(4), shop.numbers.enqueue(), shop.plain
    anything = plain.enqueue(value=[1])
    assert (parcel.status(), parcel.created) == (RunState.QUEUED, True)
    with pytest.raises(StillRunning):
        parcel.result(timeout="10ms")
    drain(shop.app)
    assert parcel.result() == Parcel(7, datetime(2030, 1, 1, tzinfo=UTC))
    assert (number.result(), table.result(), anything.result()) == (8, {1: "one"}, [1])
    assert parcel.wait().result == {"order": 7, "sent_at": "2030-01-01T00:00:00Z"}
    assert parcel.status() is RunState.SUCCEEDED
    assert parcel.progress().percentage == 100
    assert parcel.logs(tail=5) == []


def test_a_result_that_does_not_fit_says_so(shop: Shop) -> None:
    handle = shop.lie.enqueue()
    drain(shop.app)
    with pytest.raises(Invalid, match=rf"run {handle.id}: the result does not fit .*wait\(\).result"):
        handle.result()
    assert handle.wait().result == ["no dict"]


def test_a_failure_is_raised_with_its_type_message_and_traceback(shop: Shop) -> None:
    handle = shop.refund.enqueue(order=3)
    drain(shop.app)
    with pytest.raises(RunFailed) as raised:
        handle.result()
    failure = pickle.loads(pickle.dumps(raised.value))
    for error in (raised.value, failure):
        assert (error.type, error.message, error.state) == ("ValueError", "order 3 was never paid", "failed")
        assert str(error) == f"run {handle.id} of job 'refund' is failed: ValueError: order 3 was never paid"
        assert error.traceback is not None
        assert "raise ValueError" in error.traceback
        assert error.__notes__ == [error.traceback]


def test_a_cancelled_run_has_no_result(shop: Shop) -> None:
    handle = shop.ship.enqueue(order=7)
    assert handle.cancel(reason="sold out", actor="ada").cancelled_by == "ada"
    with pytest.raises(RunFailed, match="is cancelled: sold out"):
        handle.result()


async def test_in_async_code_a_handle_is_awaited(shop: Shop) -> None:
    handle, failing = await shop.double.aenqueue(number=4), await shop.refund.aenqueue(order=3)
    assert await handle.astatus() is RunState.QUEUED
    await adrain(shop.app)
    assert await handle == 8
    assert tuple(await asyncio.gather(handle, handle.aresult("1s"))) == (8, 8)
    assert ((await handle.await_()).result, (await handle.arun()).result) == (8, 8)
    assert (await handle.aprogress()).percentage == 100
    assert await handle.alogs() == []
    with pytest.raises(RunFailed, match="never paid"):
        await failing
    with pytest.raises(Conflict, match="failed already"):
        await failing.acancel()
    await shop.app.aclose()


async def test_what_would_block_the_event_loop_says_so(shop: Shop) -> None:
    with pytest.raises(BlocksEventLoop, match=r"enqueue would block .*await job.aenqueue"):
        shop.double.enqueue(4)
    with pytest.raises(BlocksEventLoop, match=r"await job.aenqueue_many"):
        shop.double.enqueue_many([{"number": 4}])
    handle = await shop.double.aenqueue(4)
    with pytest.raises(BlocksEventLoop, match=r"await handle"):
        handle.result()
    assert await asyncio.to_thread(handle.status) is RunState.QUEUED
    assert [run.id for run in await (await shop.app.connect()).list()] == [handle.id]
    await shop.app.aclose()


async def test_a_handle_that_a_job_or_a_step_returns_is_stored_without_its_app(shop: Shop) -> None:
    @shop.app.job(max_attempts=1)
    async def start(ctx: Context) -> Handle[int]:
        await ctx.step("first", shop.double.aenqueue, 1)
        return await shop.double.aenqueue(2)

    handle = await start.aenqueue()
    assert copy.copy(handle).door is handle.door is shop.app
    await adrain(shop.app)
    run = await handle.await_()
    assert run.error is None
    second = await (await shop.app.connect()).get(run.result["id"])
    assert run.result == msgspec.to_builtins(
        Enqueued(second.id, True, micros_at(second.created_at), micros_at(second.run_at))
    )
    assert (second.payload, (await handle).id) == ({"number": 2}, second.id)
    assert msgspec.to_builtins(handle) == msgspec.structs.asdict(handle)
    await shop.app.aclose()


async def test_handles_of_a_bulk_are_a_sequence_like_any_other(shop: Shop) -> None:
    """They are made when they are looked at, and nobody needs to know."""
    made = await shop.double.aenqueue_many([{"number": number} for number in range(3)])
    first, second, third = made
    assert [handle.id for handle in made] == sorted({first.id, second.id, third.id})
    assert (len(made), made[0], made[-1], second in made, made.index(third)) == (3, first, third, True, 2)
    assert made == [first, second, third]
    assert made != [first, third]
    assert made[1:] == [second, third]
    assert [*reversed(made)] == [third, second, first]
    assert [first, *made] == [first] + made == made[:1] + made  # noqa: RUF005
    assert repr(made) == repr([first, second, third])
    assert {handle.created for handle in made} == {True}
    assert first.run_at is not None
    await adrain(shop.app)
    assert await asyncio.gather(*made) == [0, 2, 4]

    @shop.app.job
    async def several() -> Sequence[Enqueued]:
        return await shop.double.aenqueue_many([{"number": 5}])

    parent = await several.aenqueue()
    await adrain(shop.app)
    (child,) = (await parent.arun()).result
    assert child["created"] is True
    await shop.app.aclose()


def test_a_handle_by_id(shop: Shop) -> None:
    handle = shop.ship.handle(shop.ship.enqueue(7).id)
    assert (handle.created, handle.status()) == (False, RunState.QUEUED)
    assert shop.app.handle(handle.id) == handle
    with pytest.raises(UnknownRun):
        shop.app.handle("f00d").result(timeout="1s")


def test_a_pickled_handle_finds_its_app_by_name(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = shop.double.enqueue(4)
    with pytest.raises(pickle.PicklingError, match=r"app.handle\(id\)"):
        pickle.dumps(handle)
    module = ModuleType("shop_of_pickles")
    module.app = shop.app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop_of_pickles", module)
    again: Handle[int] = pickle.loads(pickle.dumps(handle))
    drain(shop.app)
    assert (again, again.created, again.door, again.result()) == (handle, True, shop.app, 8)


def test_a_pickled_app_is_named_after_a_module_that_others_can_import(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("shop_of_pickles")
    module.app = shop.app  # type: ignore[attr-defined]
    monkeypatch.setattr(sys.modules["__main__"], "app", shop.app, raising=False)
    assert b"__main__" in pickle.dumps(shop.app)
    monkeypatch.setitem(sys.modules, "no module", cast("ModuleType", object()))
    monkeypatch.setitem(sys.modules, "shop_of_pickles", module)
    text = pickle.dumps(shop.app)
    assert (b"__main__" in text, pickle.loads(text)) == (False, shop.app)


async def test_an_asynchronous_client_gives_handles_to_await(shop: Shop) -> None:
    client = await shop.app.open_client()
    client.door = None
    handle = await client.enqueue(Order("double", {"number": 4}, {"scope": ("tenant", "1")}))
    with pytest.raises(Conflict, match="await handle"):
        handle.result()
    with pytest.raises(pickle.PicklingError, match=r"app.handle\(id\)"):
        pickle.dumps(handle)
    await adrain(shop.app)
    assert await handle == 8
    within = client.within(("tenant", "2"))
    client.door = shop.app
    other = (await within.enqueue_many([Order("double", {"number": 5})]))[0]
    assert other.door is within
    with pytest.raises(UnknownRun):
        await handle_by(within, handle.id, False)
    await client.close()
    await shop.app.aclose()


def test_without_a_database(shop: Shop) -> None:
    with inline(shop.app):
        parcel, failing = shop.ship.enqueue(7), shop.refund.enqueue(3)
        assert parcel.result() == Parcel(7, datetime(2030, 1, 1, tzinfo=UTC))
        assert parcel.status() is RunState.SUCCEEDED
        with pytest.raises(RunFailed, match="ValueError: order 3 was never paid"):
            failing.result()


async def test_without_a_database_in_async_code(shop: Shop) -> None:
    with inline(shop.app):
        assert await (await shop.double.aenqueue(4)) == 8
        assert shop.double.enqueue(5).result() == 10  # handlers are called in place, which blocks nobody for long


def test_handles_of_a_server(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(asgi(shop.app, trusted=True), shop.app) as site:
        asyncio.run(_awaited(shop, site.url))
        client = remote.connect(site.url, "a-secret")
        handle = client.enqueue(Order("double", {"number": 5}))
        assert handle.status() is RunState.QUEUED
        assert asyncio.run(handle.astatus()) is RunState.QUEUED  # on the client's own event loop
        text = pickle.dumps(handle)
        assert b"a-secret" not in text
        monkeypatch.setenv("ROTA_TOKEN", "another-secret")
        again: Handle[int] = pickle.loads(text)
        assert again.door is pickle.loads(text).door is not client
        assert again.cancel().state is RunState.CANCELLED
        with pytest.raises(RunFailed, match="is cancelled"):
            again.result()
        again.door.close()
        client.close()


async def _awaited(shop: Shop, url: str) -> None:
    async with RemoteClient(url, "a-secret") as client:
        handle = await client.enqueue(Order("double", {"number": 4}))
        text = pickle.dumps(handle)
        assert b"a-secret" not in text
        again: Handle[int] = pickle.loads(text)
        assert again.door is pickle.loads(text).door is not client
        assert await again.astatus() is RunState.QUEUED
        await again.door.close()
        failing, parcel = await client.enqueue_many([Order("refund", {"order": 3}), Order("ship", {"order": 7})])
        await adrain(shop.app)
        assert (await handle, (await handle.await_("1s")).id) == (8, handle.id)
        assert await parcel == {"order": 7, "sent_at": "2030-01-01T00:00:00Z"}
        with pytest.raises(RunFailed, match="ValueError: order 3 was never paid"):
            await failing
        with pytest.raises(Conflict, match="await handle"):
            handle.result()
    await shop.app.aclose()
