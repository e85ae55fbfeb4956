"""Filters stay fast however many runs there are: plans that walk indexes, windows, and pages that are short in time."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from rota.core.runs.bulk import Counted
from rota.core.runs.error_fingerprint import fingerprint_of
from rota.core.runs.run import Run, RunError, RunFilter
from rota.core.runs.search import RunPage, shown_filter
from rota.core.states import FINAL_STATES, LIVE_STATES, Outcome, RunState
from rota.store import Store, new_id, open_database
from rota.store.databases.database import Database, Row, Tx
from rota.store.databases.postgres.postgres import PostgresTx
from rota.store.databases.sqlite.sqlite import SqliteTx
from rota.store.runs import search
from rota.store.runs.search import ALL
from rota.values.instants import instant
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, ids, make, put, put_and_claim, tell

MINE = fingerprint_of(RunError("ValueError", "no luck"))
FAULTS = tuple(sorted(FINAL_STATES - {RunState.SUCCEEDED}))
FILTERS: dict[str, RunFilter] = {
    "failed": RunFilter(states=(RunState.FAILED,)),
    "faults": RunFilter(states=FAULTS),
    "running": RunFilter(states=(RunState.RUNNING,)),
    "queued": RunFilter(states=(RunState.QUEUED,)),
    "scheduled": RunFilter(states=(RunState.SCHEDULED,)),
    "waiting": RunFilter(states=(RunState.WAITING,)),
    "cancelling": RunFilter(states=(RunState.CANCELLING,)),
    "live": RunFilter(states=tuple(sorted(LIVE_STATES))),
    "failed or running": RunFilter(states=(RunState.FAILED, RunState.RUNNING)),
    "fingerprint": RunFilter(fingerprint=MINE),
    "job": RunFilter(job="work"),
    "schedule": RunFilter(schedule="news"),
    "parent": RunFilter(parent=new_id()),
    "job and failed": RunFilter(job="work", states=(RunState.FAILED,), retried=False),
    "tag": RunFilter(tag="nightly"),
    "error": RunFilter(error="no luck"),
    "payload": RunFilter(payload={"url": "https://example.com"}),
    "worker": RunFilter(worker="w"),
    "queue": RunFilter(queue="mail"),
    "scope": RunFilter(scope=Scope("account", "42")),
    "key": RunFilter(key="k"),
    "succeeded": RunFilter(states=(RunState.SUCCEEDED,), tag="nightly"),
    "retried": RunFilter(retried=True),
}
_WHOLE = re.compile(r"Seq Scan on rota_(run|fault)|^SCAN (r|rota_run)\b(?! USING)")
_ALL_IDS = re.compile(r"using rota_(run|fault)_pkey|rota_run USING (COVERING )?(INDEX \S+|PRIMARY KEY) \(id>")


class Ticking(ManualClock):
    """Each look at it takes a tenth of a second."""

    def monotonic(self) -> float:
        self.advance(timedelta(milliseconds=100))
        return super().monotonic()


async def filled(store: Store) -> None:
    """Many that went well, few that did not, and nothing known of them but from statistics."""

    async def body(tx: Tx) -> None:
        await tx.fetch_sql(_MANY, count=20_000) if tx.dialect.name == "postgres" else await tx.fetch_sql(_MANY_HERE)

    await store.database.transact(body)
    if store.database.dialect.name == "postgres":
        await store.database.transact(lambda tx: tx.script("analyze rota_run; analyze rota_fault"))


_COLUMNS = (
    "insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, max_attempts, "
    "on_lost, created_at, run_at, state, error)"
)
_VALUES = (
    "'work', 1, 'default', 0, 'global', 'global', '{{}}', 4, 'retry', 0, 0, "
    "case when n % 100 = 0 then 'failed' else 'succeeded' end, "
    'case when n % 100 = 0 then \'{"type":"A","message":"b","fingerprint":"f"}\' end'
).replace("{{}}", "{}")
_MANY = f"{_COLUMNS} select gen_random_uuid(), {_VALUES} from generate_series(1, :count) as n"
_MANY_HERE = (
    "with recursive many (n) as (select 1 union all select n + 1 from many where n < 20000) "
    f"{_COLUMNS} select lower(printf('%s-%s-%s-%s-%s', hex(randomblob(4)), hex(randomblob(2)), hex(randomblob(2)), "
    f"hex(randomblob(2)), hex(randomblob(6)))), {_VALUES} from many"
)


Asked = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Every statement composed for a search."""
    statements: Asked = []
    for kind in (SqliteTx, PostgresTx):
        original = kind.fetch_sql

        async def noting(
            self: Tx, sql: str, /, _original: Callable[..., Awaitable[Any]] = original, **values: Any
        ) -> Any:
            if not sql.startswith("explain"):
                statements.append((sql, dict(values)))
            return await _original(self, sql, **values)

        monkeypatch.setattr(kind, "fetch_sql", noting)
    return statements


async def plan_of(store: Store, sql: str, values: dict[str, Any]) -> list[str]:
    async def body(tx: Tx) -> Sequence[Row]:
        explain = "explain" if tx.dialect.name == "postgres" else "explain query plan"
        return await tx.fetch_sql(f"{explain} {sql}", **values)

    return [str(row[-1]).strip() for row in await store.database.read(body)]


def walks_all(sql: str, plan: list[str]) -> list[str]:
    """Steps that look at every run; to find ids, it must not be all ids that are walked."""
    finds_ids = "limit :span" in sql and sql != ALL
    return [step for step in plan if _WHOLE.search(step) or (finds_ids and _ALL_IDS.search(step))]


@pytest.mark.parametrize("name", FILTERS)
async def test_no_statement_of_a_search_walks_all_runs(
    store: Store, asked: Asked, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(search, "_LARGEST", 1_000)
    await filled(store)
    asked.clear()
    await store.searching.page(FILTERS[name], 50, None)
    await store.searching.find(FILTERS[name], 200)
    statements = dict(asked)
    assert statements
    for sql, values in statements.items():
        plan = await plan_of(store, sql, values)
        assert walks_all(sql, plan) == [], (sql, plan)


@pytest.mark.parametrize("name", ["failed", "faults", "running", "queued", "scheduled", "live", "fingerprint", "job"])
async def test_where_there_is_an_index_not_even_windows_of_all_runs_are_looked_at(
    store: Store, asked: Asked, name: str
) -> None:
    await filled(store)
    asked.clear()
    await store.searching.page(FILTERS[name], 50, None)
    assert ALL not in dict(asked)


async def some(store: Store) -> list[str]:
    """Thirty runs, newest first: every third failed, every fifth has a tag."""
    runs = []
    for place in range(30):
        options: dict[str, Any] = {"tags": ["fifth"]} if place % 5 == 0 else {}
        held = await put_and_claim(store, payload={"n": place}, **options)
        await tell(store, held, Outcome.FAILED if place % 3 == 0 else Outcome.SUCCEEDED)
        runs.append(held.run_id)
    return runs[::-1]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_SMALL", 4), ("_FIRST", 2), ("_LARGEST", 7), ("_GROWTH", 2)):
        monkeypatch.setattr(search, name, size)


WANTED: dict[str, tuple[RunFilter, Callable[[int], bool]]] = {
    "all": (RunFilter(), lambda _: True),
    "failed": (RunFilter(states=(RunState.FAILED,)), lambda n: n % 3 == 0),
    "fingerprint": (RunFilter(fingerprint=MINE), lambda n: n % 3 == 0),
    "succeeded": (RunFilter(states=(RunState.SUCCEEDED,)), lambda n: n % 3 != 0),
    "tag": (RunFilter(tag="fifth"), lambda n: n % 5 == 0),
    "both": (RunFilter(tag="fifth", job="work", states=(RunState.FAILED,)), lambda n: n % 15 == 0),
    "payload": (RunFilter(payload={"n": 3}), lambda n: n == 3),
    "shown payload": (shown_filter(RunFilter(payload={"n": 3})), lambda n: n == 3),
    "shown error": (shown_filter(RunFilter(error="no luck")), lambda n: n % 3 == 0),
    "none": (RunFilter(queue="nobody's"), lambda _: False),
    "other job": (RunFilter(job="other"), lambda _: False),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", WANTED)
async def test_windows_miss_nothing_and_repeat_nothing(store: Store, name: str) -> None:
    runs = await some(store)
    wanted, matches = WANTED[name]
    expected = [id for place, id in enumerate(runs) if matches(29 - place)]
    assert ids(await store.list_runs(wanted, 100)) == expected
    for limit in (1, 2, 3, 10):
        found, before, pages = [], None, 0
        while pages == 0 or before is not None:
            page = await store.searching.page(wanted, limit, before)
            found += ids(page.runs)
            before, pages = page.next, pages + 1
            assert len(page.runs) == limit or page.next is None
        assert found == expected
    assert await store.searching.count(wanted, 100) == Counted(len(expected), exact=True)
    if len(expected) > 1:
        assert await store.searching.count(wanted, len(expected) - 1) == Counted(len(expected) - 1, exact=False)
    assert [one.id for one in await store.searching.find(wanted, None)] == expected


@pytest.mark.usefixtures("small")
async def test_a_page_that_takes_too_long_is_short_and_says_where_to_go_on(database_url: str, store: Store) -> None:
    runs = await some(store)
    impatient = Store(open_database(database_url, Ticking()))
    wanted = RunFilter(payload={"n": 3})
    found, before, pages = [], None, 0
    while pages == 0 or before is not None:
        page = await impatient.searching.page(wanted, 1, before, 0.25)
        found += ids(page.runs)
        before, pages = page.next, pages + 1
    assert found == [runs[-4]]
    assert 3 < pages < 20
    counted = await impatient.searching.count(RunFilter(queue="nobody's"), 10, 0.25)
    assert counted == Counted(0, exact=False)
    await impatient.close()


@pytest.mark.usefixtures("small")
async def test_where_a_page_of_one_scope_ends_names_no_run_of_another(store: Store) -> None:
    """Ids of the same millisecond lie close to each other: nothing between them is missed or told twice."""
    named, own = uuid7_of(1_000), Scope("account", "42")
    runs = [msgspec.structs.replace(make(scope=own if n % 13 < 2 else None), id=named(n)) for n in range(80)]
    await store.enqueue(runs)
    mine = [run.id for run in runs if run.scope_id == own.id][::-1]
    for wanted in (RunFilter(scope=own), RunFilter(scope=own, job="work")):
        page = await store.searching.page(wanted, 2, None, 0.0)
        found, ends = ids(page.runs), [page.next]
        while page.next is not None:
            page = await store.searching.page(wanted, 2, page.next, 0.0)
            found += ids(page.runs)
            ends.append(page.next)
        assert found == mine
        assert {*ends} & {run.id for run in runs} <= {*mine}
        assert len({*ends} - {None, *mine}) > 3, "of pages that were short"


def uuid7_of(millis: int) -> Callable[[int], str]:
    """Three ids of each millisecond."""
    return lambda n: str(UUID(int=millis + n // 3 << 80 | 7 << 76 | 2 << 62 | n << 8))


@pytest.mark.usefixtures("small")
async def test_the_runs_of_a_job_are_counted_in_one_statement(store: Store, clock: ManualClock, asked: Asked) -> None:
    await store.enqueue([make() for _ in range(20)])
    clock.advance(timedelta(seconds=1))
    later = instant(clock.micros())
    await store.enqueue([make() for _ in range(10)])
    await store.enqueue([make("other") for _ in range(5)])
    for wanted, count in ((RunFilter(job="work"), 30), (RunFilter(job="work", created_before=later), 20)):
        asked.clear()
        assert await store.searching.count(wanted, 100) == Counted(count, exact=True)
        assert len(asked) == 1
        assert await store.searching.count(wanted, count) == Counted(count, exact=True)
        assert await store.searching.count(wanted, count - 1) == Counted(count - 1, exact=False)
    assert await store.searching.count(RunFilter(job="work", created_after=later), 100) == Counted(10, exact=True)
    assert await store.searching.count(RunFilter(job="work", queue="mail"), 100) == Counted(0, exact=True)


@pytest.mark.usefixtures("small")
async def test_the_run_time_of_those_that_match_is_summed_up(store: Store, clock: ManualClock) -> None:
    """Of those that have ended, also of failures; not of one that still runs, nor of another scope."""
    mine = Scope("tenant", "1")
    for seconds, outcome in ((2, Outcome.SUCCEEDED), (3, Outcome.FAILED)):
        held = await put_and_claim(store, scope=mine, max_attempts=1)
        clock.advance(timedelta(seconds=seconds))
        await tell(store, held, outcome, busy=seconds * 1_000_000)
    await tell(store, await put_and_claim(store), Outcome.SUCCEEDED, busy=7_000_000)
    await put_and_claim(store, scope=mine)
    clock.advance(timedelta(seconds=9))
    count = await store.searching.count(RunFilter(scope=mine), 100, run_time=True)
    assert count == Counted(3, exact=True, run_time_ms=5_000)
    assert (await store.searching.count(RunFilter(job="work"), 100, run_time=True)).run_time_ms == 12_000


@pytest.mark.usefixtures("small")
async def test_what_matches_by_a_hidden_text_leaves_no_trace(
    database_url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are: neither in what is found, nor in where a page ends, nor in how exact a number is."""
    monkeypatch.setattr(search, "_LARGEST_SHOWN", 5)
    monkeypatch.setattr(search, "_AT_ONCE", 2)
    for n in range(30):
        await put(store, payload={"password": "swordfish", "said": "swordfish" if n != 7 else "hello"})
    clock = Ticking()
    impatient = Store(open_database(database_url, clock))
    read = search._runs

    async def read_slowly(database: Database, run_ids: Sequence[str]) -> list[Run]:
        clock.advance(timedelta(seconds=len(run_ids)))
        return await read(database, run_ids)

    monkeypatch.setattr(search, "_runs", read_slowly)
    hidden, nothing = ({"said": said} for said in ("swordfish", "sunfish"))
    for before in (None, (await store.list_runs(RunFilter(), 10))[-1].id):
        for limit in (1, 3):
            pages = [
                await impatient.searching.page(shown_filter(RunFilter(payload=asked)), limit, before, 0.25)
                for asked in (hidden, nothing)
            ]
            assert pages[0] == pages[1]
            assert (pages[0].runs, pages[0].next is None) == ([], False)
    for asked in (hidden, nothing):
        wanted = shown_filter(RunFilter(payload=asked))
        assert await store.searching.page(wanted, 3, None) == RunPage([], None)
        assert await store.searching.count(wanted, 3) == Counted(0, exact=True)
        assert await impatient.searching.count(wanted, 3, 0.25) == Counted(0, exact=False)
        assert await store.searching.find(wanted, 0) == []
    assert (await store.searching.count(RunFilter(payload=hidden), 100)).count == 29
    assert (await store.searching.count(shown_filter(RunFilter(payload={"said": "hello"})), 100)).count == 1
    await impatient.close()


@pytest.mark.usefixtures("small")
async def test_where_matches_must_be_read_so_many_are_looked_at_in_a_moment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_SHOWN_A_SECOND", 12)
    runs = await some(store)
    wanted = shown_filter(RunFilter(payload={"n": 30}))
    assert await store.searching.page(wanted, 1, None, 0.5) == RunPage([], runs[5])
    assert await store.searching.page(wanted, 1, None, 600.0) == RunPage([], None)
    assert await store.searching.page(wanted, 1, None) == RunPage([], None)


async def test_live_runs_are_found_wherever_they_are(store: Store) -> None:
    await store.enqueue([make() for _ in range(3)])
    later = await put(store, delay="1h")
    held = await claim(store, 1)
    queued = await store.list_runs(RunFilter(states=(RunState.QUEUED,)), 10)
    assert len(queued) == 2
    assert ids(await store.list_runs(RunFilter(states=(RunState.SCHEDULED,)), 10)) == [later]
    assert ids(await store.list_runs(RunFilter(states=(RunState.RUNNING,)), 10)) == [held[0].run_id]
    both = RunFilter(states=(RunState.RUNNING, RunState.SCHEDULED))
    assert ids(await store.list_runs(both, 10)) == [later, held[0].run_id]


@pytest.mark.usefixtures("small")
async def test_more_that_wait_than_are_read_whole(store: Store) -> None:
    await store.enqueue([make() for _ in range(9)])
    later = [await put(store, delay="1h") for _ in range(6)]
    assert ids(await store.list_runs(RunFilter(states=(RunState.SCHEDULED,)), 10)) == later[::-1]
    assert len(await store.list_runs(RunFilter(states=(RunState.QUEUED,)), 100)) == 9
    assert len(await store.searching.find(RunFilter(states=tuple(LIVE_STATES)), None)) == 15
