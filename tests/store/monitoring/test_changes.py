"""ChangePoller for subscribers: what changed since their last look, from real commits, one look at a time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from rota.client.changes import ChangePoller
from rota.client.subscription import Hint, Subscription
from rota.core.states import Outcome, RunState
from rota.errors import Invalid, Unavailable, UnknownRun
from rota.store import Store, new_id
from rota.store.databases.database import Tx
from rota.values.scope import Scope
from tests.support.runs.runs import claim, finish, put, put_and_claim, tell
from tests.support.wait import PATIENCE


class Rest:
    """A pause between looks that ends on request, so that tests control each look."""

    def __init__(self) -> None:
        self.found: list[bool] = []
        self._go = asyncio.Event()

    async def __call__(self, found: bool) -> None:
        self.found.append(found)
        await self._go.wait()
        self._go.clear()

    def over(self) -> None:
        self._go.set()


@pytest.fixture
def rest() -> Rest:
    return Rest()


@pytest.fixture
async def hints(store: Store, rest: Rest) -> AsyncIterator[ChangePoller]:
    made = ChangePoller(store, rest)
    yield made
    await made.close()


async def next_of(subscription: Subscription) -> Hint:
    async with asyncio.timeout(PATIENCE):
        return await anext(subscription)


async def waits(subscription: Subscription) -> bool:
    """Return whether a subscriber gets nothing."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await anext(subscription)
            return False
    return True


async def test_first_how_it_is_then_each_change(store: Store, second: Store, hints: ChangePoller) -> None:
    run_id = await put(store)
    topic = f"run:{run_id}"
    async with hints.subscribe([topic]) as subscription:
        states = [await next_of(subscription)]
        (held,) = await claim(second)
        assert await hints.step()
        states.append(await next_of(subscription))
        await second.cancel(run_id, None, None)
        assert await hints.step()
        states.append(await next_of(subscription))
        await tell(second, held, Outcome.CANCELLED)
        assert await hints.step()
        states.append(await next_of(subscription))
        assert not await hints.step()
    assert [(hint.topic, hint.id) for hint in states] == [(topic, run_id)] * 4
    assert [hint.state for hint in states] == [
        *(RunState.QUEUED, RunState.RUNNING, RunState.CANCELLING, RunState.CANCELLED)
    ]
    assert len({hint.version for hint in states}) == 4


async def test_progress_steps_and_logs_are_changes_too(store: Store, hints: ChangePoller) -> None:
    held = await put_and_claim(store)
    async with hints.subscribe([f"run:{held.run_id}"]) as subscription:
        seen = [await next_of(subscription)]
        for words in (
            "insert into rota_progress (run_id, fence, done, at) values (:id, 1, 4000, 5)",
            "update rota_progress set at = 6 where run_id = :id",
            "insert into rota_step (run_id, id, no, state, fence, attempt) values (:id, 'a', 1, 'running', 1, 1)",
            "update rota_step set started_at = 7 where run_id = :id",
            "update rota_step set finished_at = 8 where run_id = :id",
            "insert into rota_log (run_id, fence, no, attempt, at, lines) values (:id, 1, 1, 1, 9, '[]')",
        ):
            await write(store, words, held.run_id)
            if await hints.step():
                seen.append(await next_of(subscription))
    assert {hint.state for hint in seen} == {RunState.RUNNING}
    assert len({hint.version for hint in seen}) == 6


async def write(store: Store, sql: str, run_id: str) -> None:
    async def body(tx: Tx) -> None:
        await tx.fetch_sql(sql, id=run_id)

    await store.database.transact(body)


async def test_what_others_do_is_no_hint(store: Store, hints: ChangePoller) -> None:
    run_id = await put(store)
    async with hints.subscribe([f"run:{run_id}"]) as subscription:
        await next_of(subscription)
        await put(store)
        assert not await hints.step()
        assert await waits(subscription)


async def test_a_slow_subscriber_gets_the_last_of_many(store: Store, hints: ChangePoller) -> None:
    run_id = await put(store)
    async with hints.subscribe([f"run:{run_id}", "runs"]) as subscription:
        await next_of(subscription), await next_of(subscription)
        for _ in range(5):
            (held,) = await claim(store)
            await hints.step()
            await tell(store, held, Outcome.SNOOZED, retry_in=0)
            await hints.step()
        await finish(store, (await claim(store))[0])
        await hints.step()
        waiting = {hint.topic: hint for hint in (await next_of(subscription), await next_of(subscription))}
        assert waiting[f"run:{run_id}"].state is RunState.SUCCEEDED
        assert (waiting["runs"].id, waiting["runs"].state) == (run_id, RunState.SUCCEEDED)
        assert await waits(subscription)


async def test_coarse_topics_tell_that_something_was_written(store: Store, second: Store, hints: ChangePoller) -> None:
    async with hints.subscribe(["runs", "schedules", "workers", "queues"]) as subscription:
        first = [await next_of(subscription) for _ in range(4)]
        await second.pause_queue("mail", None, None)
        assert await hints.step()
        then = [await next_of(subscription) for _ in range(4)]
    assert {hint.topic for hint in first} == {hint.topic for hint in then} == {"runs", "schedules", "workers", "queues"}
    assert {hint.version for hint in first}.isdisjoint(hint.version for hint in then)


async def told(subscription: Subscription, count: int) -> set[tuple[str | None, RunState | None]]:
    hints = [await next_of(subscription) for _ in range(count)]
    assert {hint.topic for hint in hints} == {"runs"}
    return {(hint.id, hint.state) for hint in hints}


async def test_hints_of_runs_name_those_that_another_process_changed(
    store: Store, second: Store, hints: ChangePoller
) -> None:
    """`second` has connections of its own, as another process has."""
    async with hints.subscribe(["runs"]) as subscription:
        assert await told(subscription, 1) == {(None, None)}
        one, two = await put(second), await put(second)
        assert await hints.step()
        assert await told(subscription, 2) == {(one, RunState.QUEUED), (two, RunState.QUEUED)}
        held = await claim(second, 1)
        assert await hints.step()
        assert await told(subscription, 1) == {(one, RunState.RUNNING)}
        await second.cancel(two, None, None)
        await finish(second, held[0])
        assert await hints.step()
        assert await told(subscription, 2) == {(one, RunState.SUCCEEDED), (two, RunState.CANCELLED)}
        await second.pause_queue("mail", None, None)
        assert await hints.step()
        assert await told(subscription, 1) == {(None, None)}, "something else"


async def test_within_a_scope_hints_of_runs_name_none(store: Store, hints: ChangePoller) -> None:
    async with hints.subscribe(["runs"], Scope("tenant", "1")) as subscription:
        assert await told(subscription, 1) == {(None, None)}
        await put(store, scope=("tenant", "2"))
        assert await hints.step()
        assert await told(subscription, 1) == {(None, None)}


async def test_a_subscriber_of_runs_who_is_slow_gets_one_hint_for_many() -> None:
    subscription = Subscription(frozenset({"runs"}), lambda _: asyncio.sleep(0))
    for number in range(101):
        subscription.tell(Hint("runs", f"run {number}", RunState.QUEUED, number))
    subscription.tell(Hint("runs", "one more", RunState.QUEUED, 101))
    assert await next_of(subscription) == Hint("runs", None, None, 101)
    assert await waits(subscription)


async def test_a_look_at_what_nobody_wrote_reads_nothing(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hints = ChangePoller(sqlite_store, Rest())
    run_id = await put(sqlite_store)
    async with hints.subscribe([f"run:{run_id}", "runs"]) as subscription:
        await next_of(subscription), await next_of(subscription)
        await hints.step()

        async def read(_work: object) -> None:
            raise AssertionError("it was read")

        with monkeypatch.context() as patch:
            patch.setattr(sqlite_store.database, "read", read)
            assert not await hints.step()


async def test_a_run_that_is_not_there(store: Store, hints: ChangePoller) -> None:
    nobody = new_id()
    async with hints.subscribe([f"run:{nobody}"]) as subscription:
        assert await next_of(subscription) == Hint(f"run:{nobody}", nobody, None, 0)


async def test_one_who_comes_later_is_told_how_it_is(store: Store, hints: ChangePoller) -> None:
    run_id = await put(store)
    async with hints.subscribe([f"run:{run_id}"]) as early:
        await next_of(early)
        async with hints.subscribe([f"run:{run_id}"]) as late:
            assert (await next_of(late)).state is RunState.QUEUED
        assert await waits(early)


async def test_one_who_comes_during_a_look_is_told_by_the_next(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subscriber that comes during a look gets the next one, though nothing was written since."""
    hints = ChangePoller(sqlite_store, Rest())
    first, other = await put(sqlite_store), await put(sqlite_store)
    late: list[Subscription] = []
    look = sqlite_store.watch.runs

    async def runs(run_ids: list[str]) -> object:
        if not late:
            late.append(hints.subscribe([f"run:{other}"]))
        return await look(run_ids)

    monkeypatch.setattr(sqlite_store.watch, "runs", runs)
    async with hints.subscribe([f"run:{first}"]) as subscription:
        await next_of(subscription)
        assert await hints.step()
        assert (await next_of(late[0])).id == other
        await late[0].close()


async def test_nobody_looks_while_nobody_subscribes(store: Store, hints: ChangePoller, rest: Rest) -> None:
    assert rest.found == []
    async with hints.subscribe(["runs"]) as subscription:
        await next_of(subscription)
        async with hints.subscribe(["runs"]):
            assert len(asyncio.all_tasks()) >= 2
    assert [task for task in asyncio.all_tasks() if "_watch" in repr(task)] == []


async def test_the_poller_survives_the_database_going_away(
    store: Store, hints: ChangePoller, rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await put_and_claim(store)

    async def away() -> object:
        raise Unavailable("away")

    async with hints.subscribe([f"run:{held.run_id}"]) as subscription:
        await next_of(subscription)
        with monkeypatch.context() as patch:
            patch.setattr(store.watch, "mark", away)
            rest.over()
            async with asyncio.timeout(PATIENCE):
                while len(rest.found) < 2:
                    await asyncio.sleep(0)
        await finish(store, held)
        rest.over()
        assert (await next_of(subscription)).state is RunState.SUCCEEDED


async def test_following_a_run_to_its_end(store: Store, hints: ChangePoller) -> None:
    run_id = await put(store)
    states = []
    held = None
    async with contextlib.aclosing(hints.follow(run_id[-12:])) as runs:
        async for run in runs:
            states.append(run.state)
            if run.state is RunState.QUEUED:
                (held,) = await claim(store)
            elif held is not None and run.state is RunState.RUNNING:
                await finish(store, held)
            await hints.step()
    assert states == [RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED]
    with pytest.raises(UnknownRun):
        await anext(hints.follow(new_id()))


async def test_following_waits_for_the_database(
    store: Store, hints: ChangePoller, rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await put_and_claim(store)
    await finish(store, held)
    answers = iter([Unavailable("away")])
    get_run = store.get_run

    async def shaky(run_id: str) -> object:
        rest.over()
        for error in answers:
            raise error
        return await get_run(run_id)

    monkeypatch.setattr(store, "get_run", shaky)
    async with asyncio.timeout(PATIENCE):
        assert [run.state async for run in hints.follow(held.run_id)] == [RunState.SUCCEEDED]


async def test_a_client_that_closes_ends_its_subscriptions(store: Store, hints: ChangePoller) -> None:
    subscription = hints.subscribe(["runs"])
    await next_of(subscription)
    await hints.close()
    assert [hint async for hint in subscription] == []
    await subscription.close()


@pytest.mark.parametrize("topics", [[], ["run"], ["run:71e1"], ["jobs"], ["run:x"], [f"run:{new_id()}", "nope"]])
async def test_topics_that_there_are_not(store: Store, hints: ChangePoller, topics: list[str]) -> None:
    with pytest.raises(Invalid):
        hints.subscribe(topics)


async def test_a_commit_wakes_the_poller_without_being_asked(store: Store, second: Store) -> None:
    """The poller with its real pauses."""
    hints = ChangePoller(store)
    run_id = await put(store)
    async with hints.subscribe([f"run:{run_id}"]) as subscription:
        await next_of(subscription)
        await second.cancel(run_id, None, None)
        assert (await next_of(subscription)).state is RunState.CANCELLED
