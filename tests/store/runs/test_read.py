"""Questions: one run, its attempts, lists with filters, pages, and ids cut short."""

from datetime import timedelta

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.runs.run import Run, RunFilter
from rota.core.states import Outcome, RunState
from rota.errors import AmbiguousRun, Invalid, UnknownRun
from rota.store import Store, new_id
from rota.store.databases.database import Tx
from rota.store.runs import read
from rota.values.instants import instant
from rota.values.scope import Scope
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, LEASE_MICROS, WORKER, claim, finish, ids, make, put, put_and_claim, tell


async def listed(store: Store, limit: int = 100, before: str | None = None, **wanted: object) -> list[str]:
    found: list[Run] = await store.list_runs(RunFilter(**wanted), limit, before)  # type: ignore[arg-type]
    return ids(found)


async def one_of_each_state(store: Store) -> dict[RunState, str]:
    """Everything a run can be today; nothing waits outside or is skipped yet."""
    runs = {}
    for outcome in (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED):
        held = await put_and_claim(store)
        await tell(store, held, outcome)
        runs[RunState(outcome.value)] = held.run_id
    fragile = await put_and_claim(store, JobDefinition(name="work", on_lost="fail"))
    await tell(store, fragile, Outcome.HANDED_BACK)
    runs[RunState.EXPIRED] = fragile.run_id
    runs[RunState.RUNNING] = (await put_and_claim(store)).run_id
    asked = await put_and_claim(store)
    await store.cancel(asked.run_id, None, None)
    runs[RunState.CANCELLING] = asked.run_id
    runs[RunState.SCHEDULED] = await put(store, delay="1h")
    runs[RunState.QUEUED] = await put(store)
    return runs


async def test_an_unknown_run(store: Store) -> None:
    nobody = new_id()
    about = (store.attempts, store.notes.steps, store.notes.logs, store.dependencies.parents, store.conducts.replicas)
    for question in (store.get_run, store.copy_of, store.find_run, store.ledger.events_of_run, *about):
        with pytest.raises(UnknownRun):
            await question(nobody)


async def test_a_run_of_another_scope_is_unknown_to_whoever_sees_one(store: Store) -> None:
    run_id, other = await put(store, scope=("account", "42")), Scope("account", "7")
    own = Scope("account", "42")
    for question in (store.get_run, store.attempts, store.notes.steps, store.dependencies.children):
        await question(run_id, within=own)
        for part in (run_id, run_id[-9:]):
            with pytest.raises(UnknownRun):
                await question(part, within=other)
    for part in (run_id, run_id[-9:]):
        with pytest.raises(UnknownRun):
            await store.cancel(part, None, None, other)
        with pytest.raises(UnknownRun):
            await store.restrict(part, ("gpu-1",), None, other)
        with pytest.raises(UnknownRun):
            await store.retry_facts(part, other)
    assert (await store.cancel(run_id[-9:], None, None, own)).state is RunState.CANCELLED


async def test_several_runs_in_the_order_asked(store: Store) -> None:
    first, second = await put(store), await put(store)
    assert ids(await store.get_runs([second, first])) == [second, first]


async def test_attempts_while_running(store: Store, clock: ManualClock) -> None:
    run_id = await put(store)
    assert await store.attempts(run_id) == []
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED, retry_in=0)
    clock.advance(SECOND)
    await claim(store, worker="worker-2")
    past, present = await store.attempts(run_id)
    assert (past.no, past.fence, past.outcome, past.worker_id) == (1, 1, Outcome.FAILED, "worker-1")
    assert (present.no, present.fence, present.outcome, present.worker_id) == (2, 2, None, "worker-2")
    assert present.claimed_at == instant(clock.micros())
    assert present.lease_until == present.claimed_at + LEASE
    assert (present.ended_at, present.error, present.cpu_time_ms) == (None, None, None)


async def test_newest_first(store: Store) -> None:
    runs = [await put(store) for _ in range(5)]
    assert await listed(store) == runs[::-1]


async def test_pages_meet_without_gap_or_overlap(store: Store) -> None:
    runs = sorted(answer.id for answer in await store.enqueue([make() for _ in range(23)]))
    seen: list[str] = []
    while page := await listed(store, 5, seen[-1] if seen else None):
        assert len(page) <= 5
        seen += page
    assert seen == runs[::-1]


async def test_a_page_is_not_moved_by_newer_runs(store: Store) -> None:
    first, second = await put(store), await put(store)
    assert await listed(store, 1) == [second]
    await put(store)
    assert await listed(store, 1, second) == [first]


async def test_by_state(store: Store) -> None:
    runs = await one_of_each_state(store)
    for state in RunState:
        assert await listed(store, states=(state,)) == ([runs[state]] if state in runs else [])
        if state in runs:
            assert (await store.get_run(runs[state])).state is state


async def test_by_several_states(store: Store) -> None:
    runs = await one_of_each_state(store)
    wanted = (RunState.QUEUED, RunState.FAILED, RunState.CANCELLING)
    assert sorted(await listed(store, states=wanted)) == sorted(runs[state] for state in wanted)


async def test_by_everything_else(store: Store) -> None:
    run_id = await put(store, "mail", queue="slow", scope=("account", "42"), key="k", tags=["red", "blue"])
    await put(store)
    for wanted in (
        {"job": "mail"},
        {"queue": "slow"},
        {"scope": Scope("account", "42")},
        {"key": "k"},
        {"tag": "blue"},
        {"job": "mail", "queue": "slow", "tag": "red", "states": (RunState.QUEUED, RunState.RUNNING)},
    ):
        assert await listed(store, **wanted) == [run_id], wanted
    for wanted in (
        {"job": "mai"},
        {"queue": "Slow"},
        {"scope": Scope("account", "4")},
        {"job": "mail", "tag": "green"},
    ):
        assert await listed(store, **wanted) == [], wanted


@pytest.mark.parametrize("tag", ["50%", "a_b", "~tilde", 'quo"te', "back\\slash", "naïve", "Case"])
async def test_a_tag_is_found_by_itself_only(store: Store, tag: str) -> None:
    run_id = await put(store, tags=[tag, "other"])
    await put(store, tags=["50x", "axb", "tilde", "quote", "back", "case", "prefix-" + tag])
    assert await listed(store, tag=tag) == [run_id]


async def test_a_run_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    run_id = await put(store, id="0190aaaa-0000-7000-8000-000000000001")
    await put(store, id="0190bbbb-0000-7000-8000-000000000001")
    for prefix in ("0190a", "0190AAAA", "0190aaaa-0", "0190aaaa00007", run_id):
        assert await store.find_run(prefix) == run_id
    with pytest.raises(AmbiguousRun, match="0190aaaa-0000-7000-8000-000000000001, 0190bbbb"):
        await store.find_run("0190")


async def test_a_run_is_found_by_the_end_of_its_id(store: Store) -> None:
    """Runs enqueued together have the time in common, which is the beginning."""
    run_id = await put(store, id="0190aaaa-0000-7000-8000-00000000beef")
    for number in range(7):
        await put(store, id=f"0190aaaa-0000-7000-8000-00000{number}00dead")
    for end in ("beef", "BEEF", "8000-00000000beef", "00000000beef"):
        assert await store.find_run(end) == run_id
    with pytest.raises(AmbiguousRun) as ambiguous:
        await store.find_run("dead")
    assert (ambiguous.value.hint or "").count("0190aaaa") == 5
    for unknown in ("eef", "abcd", "1190aaaa-0000-7000-8000-00000000beef"):
        with pytest.raises(UnknownRun):
            await store.find_run(unknown)


async def test_within_a_scope_there_are_no_other_runs(store: Store) -> None:
    own, other, mine = Scope("account", "42"), ("account", "43"), "0190aaaa-0000-7000-8000-00000000beef"
    await put(store, id=mine, scope=own)
    for number in range(7):
        await put(store, id=f"0190aaaa-0000-7000-8000-00000{number}00beef", scope=other)
    theirs = "0190aaaa-0000-7000-8000-00000000beef".replace("0000beef", "0300beef")
    for part in ("01", "0190aaaa", mine, mine.upper(), "beef", "00000000beef"):
        assert await store.find_run(part, own) == mine
    for part in (theirs, theirs.replace("-", ""), "0300beef", theirs[:-4]):
        with pytest.raises(UnknownRun):
            await store.find_run(part, own)
    assert await store.find_runs([mine, "01", "beef"], own) == {mine: mine, "01": mine, "beef": mine}
    with pytest.raises(UnknownRun, match=theirs):
        await store.find_runs([mine, theirs], own)
    assert await store.find_runs([mine, theirs]) == {mine: mine, theirs: theirs}
    second = await put(store, id="0190aaaa-0000-7000-8000-00000001dead", scope=own)
    with pytest.raises(AmbiguousRun) as ambiguous:
        await store.find_run("0190", own)
    assert (ambiguous.value.hint or "").endswith(f": {mine}, {second}")


async def test_many_parts_take_one_look_at_the_newest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """To pick out the newest of a scope takes long: a call with thousands of parts must not do it for each."""
    looks: list[Scope | None] = []

    async def counted(tx: Tx, within: Scope | None) -> list[str]:
        looks.append(within)
        return await newest(tx, within)

    newest = read._newest
    monkeypatch.setattr(read, "_newest", counted)
    own = Scope("tenant", "1")
    mine = [await put(store, scope=own) for _ in range(3)]
    parts = {id[-length:]: id for id in mine for length in (8, 9, 10)}
    assert await store.find_runs(list(parts), own) == parts
    assert looks == [own]


@pytest.mark.parametrize("prefix", ["", "-", "x", "0190' or 1=1", "\0", "\ud800", "0" * 33, "١"])
async def test_a_beginning_that_no_id_has(store: Store, prefix: str) -> None:
    await put(store)
    with pytest.raises(UnknownRun):
        await store.find_run(prefix)


@pytest.mark.parametrize("hostile", ["\0", "\ud800", "x" * 100_000, "'; drop table rota_run; --"])
async def test_hostile_filters_find_nothing_or_are_refused(store: Store, hostile: str) -> None:
    await put(store)
    for name in ("job", "queue", "key", "tag", "worker", "error"):
        try:
            assert await store.list_runs(msgspec.structs.replace(RunFilter(), **{name: hostile}), 10) == []
        except Invalid:
            continue
    assert len(await listed(store)) == 1


@pytest.mark.parametrize("hostile", ["\0", "\ud800"])
async def test_a_hostile_reason_is_kept_or_refused(store: Store, hostile: str) -> None:
    run_id = await put(store)
    try:
        await store.cancel(run_id, hostile, hostile)
    except Invalid:
        assert (await store.get_run(run_id)).state is RunState.QUEUED
    else:
        assert (await store.get_run(run_id)).reason == hostile


async def test_jobs_are_saved_and_read_back(store: Store) -> None:
    old = JobDefinition(name="b", version=1, description="old")
    new = JobDefinition(name="b", version=2, timeout=timedelta(minutes=5), metadata={"x": [1]}, tags=("t",))
    other = JobDefinition(name="a", retention=Retention(5, timedelta(days=1)))
    await store.save_jobs([new, old, other])
    assert await store.jobs() == [other, new]


async def test_saving_a_job_again_changes_it(store: Store) -> None:
    await store.save_jobs([JobDefinition(name="a", description="one")])
    await store.save_jobs([JobDefinition(name="a", description="two")])
    assert [job.description for job in await store.jobs()] == ["two"]


async def test_a_worker_is_seen_from_its_first_heartbeat_until_it_says_goodbye(
    store: Store, clock: ManualClock
) -> None:
    async def seen() -> list[tuple[str, int, int]]:
        async def body(tx: Tx) -> list[tuple[str, int, int]]:
            rows = await tx.fetch_sql("select id, started_at, seen_at from rota_worker")
            return [(id, started_at, seen_at) for id, started_at, seen_at in rows]

        return await store.database.read(body)

    started = clock.micros()
    await store.extend(WORKER, [], LEASE_MICROS)
    clock.advance(SECOND)
    await store.extend(WORKER, [], LEASE_MICROS)
    assert await seen() == [(WORKER.id, started, started + 1_000_000)]
    await store.worker_gone(WORKER.id)
    assert await seen() == []


async def test_the_clock_is_the_databases(store: Store, clock: ManualClock) -> None:
    assert await store.now() == clock.micros()
    clock.advance(SECOND)
    assert await store.now() == clock.micros()


async def test_finish_is_seen_by_another_process_at_once(store: Store, second: Store) -> None:
    held = await put_and_claim(store)
    await finish(store, held)
    assert (await second.get_run(held.run_id)).state is RunState.SUCCEEDED
