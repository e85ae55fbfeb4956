"""Error groups on both databases: how many failed runs are read, and of which scope."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.core.jobs.job import JobDefinition
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from rota.errors import Invalid
from rota.store import Store
from rota.values.scope import Scope
from rota.verbs.pages import cursor_at
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import put_and_claim, tell

OTHER = JobDefinition(name="other")


async def failed(store: Store, message: str = "no", outcome: Outcome = Outcome.FAILED, **options: Any) -> str:
    held = await put_and_claim(store, **options)
    await tell(store, held, outcome, error=stored_error(RunError("ValueError", message)))
    return held.run_id


async def test_faults_are_grouped_with_what_the_newest_says(store: Store, clock: ManualClock) -> None:
    await failed(store, "item 1")
    clock.advance(SECOND)
    newest = await failed(store, "item 2", Outcome.TIMED_OUT)
    clock.advance(SECOND)
    other = await failed(store, "quite another")
    await tell(store, await put_and_claim(store), Outcome.SUCCEEDED)
    await tell(store, await put_and_claim(store), Outcome.CANCELLED)
    clock.advance(SECOND)
    found = await ErrorGroupsClient(store).list()
    assert not found.truncated
    assert [(one.last_run_id, one.count, one.type, one.message) for one in found.items] == [
        (other, 1, "ValueError", "quite another"),
        (newest, 2, "ValueError", "item 2"),
    ]
    assert found.items[1].states == {"failed": 1, "timed_out": 1}
    assert found.items[1].last_at - found.items[1].first_at == SECOND
    first = await ErrorGroupsClient(store).list(limit=1)
    second = await ErrorGroupsClient(store).list(limit=1, cursor=first.next_cursor)
    assert [*first.items, *second.items] == found.items
    assert (first.next_cursor is None, second.next_cursor, found.next_cursor) == (False, None, None)


async def test_all_pages_are_of_one_time_range(store: Store, clock: ManualClock) -> None:
    client = ErrorGroupsClient(store)
    old = await failed(store, "one")
    clock.advance(SECOND)
    await failed(store, "quite another")
    clock.advance(timedelta(hours=23))
    first = await client.list(limit=1)
    clock.advance(timedelta(hours=2))
    second = await client.list(limit=1, cursor=first.next_cursor)
    assert (second.since, second.until, [group.last_run_id for group in second.items]) == (
        *(first.since, first.until, [old]),
    )
    for place in (("2026-01-01T00:00:00", "x", "2026-01-02T00:00:00Z"), ("2026-01-01T00:00:00", "x"), 1):
        with pytest.raises(Invalid, match="cursor"):
            await client.list(cursor=cursor_at(place))


async def test_only_of_the_time_the_job_and_the_scope_asked_for(store: Store, clock: ManualClock) -> None:
    await failed(store)
    clock.advance(timedelta(hours=25))
    mine = await failed(store, scope=("account", "42"))
    clock.advance(SECOND)

    async def found(**wanted: Any) -> list[str]:
        return [one.last_run_id for one in (await ErrorGroupsClient(store).list(**wanted)).items]

    assert await found() == [mine]
    assert (await ErrorGroupsClient(store).list()).items[0].count == 1
    assert await found(job="work") == [mine]
    assert await found(job="other") == []
    assert await found(scope=("account", "42")) == [mine]
    assert await found(scope=Scope("account", "43")) == []


async def test_more_than_can_be_looked_at(store: Store, clock: ManualClock) -> None:
    since = await store.now()
    runs = [await failed(store) for _ in range(4)]
    clock.advance(SECOND)
    until = await store.now()
    some, truncated = await store.error_groups.between(since, until, None, None, most=3)
    assert (sorted(fault.run_id for fault in some), truncated) == (runs[1:], True)
    everything, truncated = await store.error_groups.between(since, until, None, None, most=4)
    assert (len(everything), truncated) == (4, False)


async def test_an_old_run_that_ended_late_may_be_left_out(store: Store, clock: ManualClock) -> None:
    old = await put_and_claim(store)
    for _ in range(3):
        await failed(store)
    clock.advance(timedelta(days=3))
    since = await store.now()
    await tell(store, old, Outcome.FAILED)
    assert await store.error_groups.between(since, since + 1, None, None, most=3) == ([], True)


async def test_faults_of_others_do_not_push_out_those_of_a_scope(store: Store, clock: ManualClock) -> None:
    own = Scope("account", "42")
    mine = [await failed(store, scope=own) for _ in range(2)]
    for _ in range(7):
        await failed(store, scope=("account", "43"))
    clock.advance(SECOND)
    since, until = clock.micros() - 1_000_000_000, clock.micros()
    found, truncated = await store.error_groups.between(since, until, None, own, most=3)
    assert ([fault.run_id for fault in found], truncated) == (mine[::-1], False)
    found, truncated = await store.error_groups.between(since, until, None, own, most=1)
    assert ([fault.run_id for fault in found], truncated) == (mine[1:], True)


async def test_the_same_error_of_several_jobs_the_largest_first(store: Store, clock: ManualClock) -> None:
    client = ErrorGroupsClient(store)
    await failed(store, "disk full on 1")
    for _ in range(2):
        held = await put_and_claim(store, OTHER)
        place = 'File "other.py", line 3, in other'
        await tell(
            store, held, Outcome.FAILED, error=stored_error(RunError("ValueError", "disk full on 2", traceback=place))
        )
        clock.advance(SECOND)
    last = await failed(store, "no route to host")
    clock.advance(SECOND)
    assert [group.count for group in (await client.list()).items] == [1, 2, 1]
    found = (await client.list(all_jobs=True, sort="count")).items
    assert [(group.message, group.count, group.job_count) for group in found] == [
        ("disk full on 2", 3, 2),
        ("no route to host", 1, 1),
    ]
    assert sorted((part.job, part.count) for part in found[0].parts) == [("other", 2), ("work", 1)]
    assert len({part.fingerprint for part in found[0].parts}) == 2, "they were raised in different places"
    assert (await client.list(all_jobs=True)).items[0].last_run_id == last
    first = await client.list(sort="count", limit=1)
    second = await client.list(sort="count", limit=9, cursor=first.next_cursor)
    assert [group.count for group in (*first.items, *second.items)] == [2, 1, 1]
    with pytest.raises(Invalid, match="sort cannot be"):
        await client.list(sort="size")


async def test_a_search_reads_what_each_group_says(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.monitoring.error_groups._BATCH", 2)
    words = ("alpha", "beta", "gamma", "delta")
    for word in words:
        await failed(store, f"no {word} here")
        clock.advance(SECOND)
    client = ErrorGroupsClient(store)

    async def found(text: str, **options: Any) -> list[str | None]:
        return [group.message for group in (await client.list(search=text, **options)).items]

    assert await found("GAMMA") == ["no gamma here"]
    assert sorted(map(str, await found("valueerror: no"))) == sorted(f"no {word} here" for word in words)
    assert await found("nothing of the kind") == []
    first = await client.list(search="here", limit=3)
    second = await client.list(search="here", limit=3, cursor=first.next_cursor)
    assert ([len(first.items), len(second.items)], second.next_cursor) == ([3, 1], None)
    monkeypatch.setattr("rota.store.monitoring.error_groups.MOST_SEARCHED", 2)
    cut = await client.list(search="here")
    assert (len(cut.items), cut.truncated) == (2, True)
    hidden = client.shown_by(lambda run: msgspec.structs.replace(run, error=None))
    assert (await hidden.list(search="alpha")).items == []
