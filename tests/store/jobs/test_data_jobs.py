"""Data jobs, on both databases: versions, taken names, and what workers are told."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.pipelines import Part
from rota.core.states import RunState
from rota.errors import ChangedMeanwhile, Conflict, JobInUse, UnknownJob
from rota.registry.data_jobs import define_data_job
from rota.store import Store
from rota.store.jobs.data_jobs import DataJobChanges, Seen
from tests.support.runs.runs import claim, make, put

NOTHING = (0, 0, 0)


def ping(path: str = "", name: str = "ping", version: int = 1) -> JobDefinition:
    return define_data_job(name, "http", {"url": f"https://example.com/{path}"}, version=version)


async def written(store: Store, definition: JobDefinition, actor: str | None = None) -> JobDefinition:
    return (await store.data_jobs.write(definition.name, lambda _: definition, "api", actor)).job


def of_the_first(definition: JobDefinition) -> Callable[[JobDefinition | None], JobDefinition]:
    """Refuse the change unless the job still has its first version."""

    def make(old: JobDefinition | None) -> JobDefinition:
        assert old is not None
        if old.version != 1:
            raise ChangedMeanwhile("job 'ping'")
        return definition

    return make


async def changed(store: Store, path: str) -> JobDefinition | None:
    return await written(store, ping(path), "me")


def read(found: DataJobChanges) -> list[JobDefinition]:
    return [msgspec.json.decode(text, type=JobDefinition) for text in found.definitions]


async def heard(store: Store, seen: Seen = NOTHING) -> DataJobChanges:
    found = await store.data_jobs.changes(seen, ())
    assert found is not None
    return found


async def test_added_it_is_a_job_like_others(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", "me")
    assert await store.job("ping") == ping()
    assert [job.name for job in await store.jobs()] == ["ping"]
    (event,) = await store.events.audit({"kind": "job"}, 10, None)
    assert (event.type, event.actor, event.details) == ("added", "me", {"kind": "http", "version": 1})


async def test_added_again_just_the_same_it_is_there_already(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    assert (await store.data_jobs.create(ping(), "api", None)).version == 1
    with pytest.raises(Conflict, match="already"):
        await store.data_jobs.create(ping("other"), "api", None)


async def test_a_change_is_a_new_version(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    made = await changed(store, "new")
    assert made == await store.job("ping") == ping("new", version=2)
    assert await changed(store, "new") == made
    found = await heard(store)
    assert sorted(definition.version for definition in read(found)) == [1, 2]


async def test_a_change_of_what_has_changed_meanwhile_is_not_made(store: Store, second: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    results = await asyncio.gather(
        store.data_jobs.write("ping", of_the_first(ping("a")), "api", None),
        second.data_jobs.write("ping", of_the_first(ping("b")), "api", None),
        return_exceptions=True,
    )
    assert sorted(isinstance(result, ChangedMeanwhile) for result in results) == [False, True]
    newest = await store.job("ping")
    assert newest is not None
    assert newest.version == 2


async def test_two_that_are_added_at_once_are_one(store: Store, second: Store) -> None:
    results = await asyncio.gather(
        store.data_jobs.create(ping("a"), "api", None),
        second.data_jobs.create(ping("b"), "api", None),
        return_exceptions=True,
    )
    assert sorted(type(result).__name__ for result in results) == ["Conflict", "JobDefinition"]


async def test_dropped_it_is_not_there_any_more(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    await store.data_jobs.delete("ping", "me", force=False)
    await store.data_jobs.delete("ping", "me", force=False)
    assert (await store.job("ping"), await store.jobs()) == (None, [])
    with pytest.raises(UnknownJob):
        await store.data_jobs.get("ping")
    assert [event.type for event in await store.events.audit({"kind": "job"}, 10, None)] == ["dropped", "added"]
    assert (await store.data_jobs.create(ping("again"), "api", None)).version == 2


async def test_what_was_never_there_cannot_be_dropped(store: Store) -> None:
    with pytest.raises(UnknownJob):
        await store.data_jobs.delete("ping", None, force=False)


async def test_while_a_run_needs_it_it_is_not_dropped(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    await put(store, ping())
    for _ in range(2):  # it waits, and it is being done
        with pytest.raises(JobInUse, match="used by 1 live run "):
            await store.data_jobs.delete("ping", None, force=False)
        await claim(store, known={"ping": 1})
    await store.data_jobs.delete("ping", None, force=True)
    assert await store.job("ping") is None


async def test_what_waits_ends_with_the_job_that_is_dropped_by_force(store: Store) -> None:
    """In one transaction: if the caller died after it, nobody would ever claim runs of an external job that is gone."""
    job = JobDefinition(name="label", kind="external")
    await store.data_jobs.create(job, "api", None)
    held = await put(store, job)
    await claim(store, known={"label": 1})
    waits = [await put(store, job) for _ in range(3)]
    assert await store.data_jobs.delete("label", "ada", force=True, reason="gone") == [held]
    for run in waits:
        ended = await store.get_run(run)
        assert (ended.state, ended.reason, ended.cancelled_by) == (RunState.CANCELLED, "gone", "ada")
    assert (await store.get_run(held)).state is RunState.RUNNING


async def test_a_pipeline_that_is_at_its_part_needs_it(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    await put(store, JobDefinition(name="pipe", kind="pipeline", pipeline=(Part("one", "ping"), Part("two", "other"))))
    for _ in range(2):  # it waits for its part, and it is being done
        with pytest.raises(JobInUse, match="used by 1 live run "):
            await store.data_jobs.delete("ping", None, force=False)
        await claim(store, known={"ping": 1})


async def test_one_that_is_dropped_is_not_paused(store: Store) -> None:
    """A pause after a concurrent drop would let the next job of this name be born paused."""
    await store.data_jobs.create(ping(), "api", None)
    await store.data_jobs.delete("ping", None, force=False)
    with pytest.raises(UnknownJob):
        await store.pause_job("ping", None, None)
    await store.data_jobs.create(ping(), "api", None)
    (facts,) = await store.job_facts(["ping"])
    assert facts.paused_at is None


async def test_a_run_of_one_that_is_dropped_is_refused(store: Store) -> None:
    """The run was prepared before the drop: of one call, no run at all is made."""
    await store.data_jobs.create(ping(), "api", None)
    late = [msgspec.structs.replace(make(ping()), droppable=True), make("work")]
    await store.data_jobs.delete("ping", None, force=False)
    with pytest.raises(UnknownJob):
        await store.enqueue(late)
    await store.data_jobs.create(ping("again"), "api", None)
    assert [answer.created for answer in await store.enqueue(late)] == [True, True]


async def test_code_and_data_do_not_overwrite_one_another(store: Store) -> None:
    mine, coded = ping(), JobDefinition(name="crawl")
    await store.data_jobs.create(mine, "api", None)
    await store.save_jobs([coded])
    with pytest.raises(Conflict, match="in code"):
        await store.save_jobs([JobDefinition(name="ping")])
    with pytest.raises(Conflict, match="already"):
        await store.data_jobs.create(ping(name="crawl"), "api", None)
    for act in (
        written(store, ping(name="crawl")),
        store.data_jobs.delete("crawl", None, force=True),
        store.data_jobs.get("crawl"),
    ):
        with pytest.raises(Conflict, match="declared in code"):
            await act
    assert (await store.job("ping"), await store.job("crawl")) == (mine, coded)


async def test_code_may_take_a_name_that_was_dropped(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    await changed(store, "new")
    await store.data_jobs.delete("ping", None, force=False)
    coded = JobDefinition(name="ping")
    await store.save_jobs([coded])
    assert await store.job("ping") == coded
    assert await store.jobs() == [coded]


async def test_workers_hear_of_changes_only(store: Store) -> None:
    assert await store.data_jobs.changes(NOTHING, ()) is None
    await store.save_jobs([JobDefinition(name="crawl"), define_data_job("call", "http", {"url": "https://a.example"})])
    assert await store.data_jobs.changes(NOTHING, ()) is None  # those who have the code have it
    await store.data_jobs.create(ping(), "api", None)
    await store.data_jobs.create(define_data_job("review", "external", {}), "api", None)
    found = await heard(store)
    assert (found.names, read(found)) == ({"ping"}, [ping()])
    assert await store.data_jobs.changes(found.seen, ()) is None
    await changed(store, "new")
    newer = await store.data_jobs.changes(found.seen, {("ping", 1)})
    assert newer is not None
    assert read(newer) == [ping("new", version=2)]
    await store.data_jobs.delete("ping", None, force=False)
    assert (await heard(store, newer.seen)).names == {"ping"}


async def test_one_that_was_dropped_long_ago_is_forgotten(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    await store.data_jobs.delete("ping", None, force=False)
    assert (await heard(store)).names == {"ping"}
    await store.database.transact(lambda tx: tx.fetch_sql("update rota_job set dropped_at = 1"))
    assert (await heard(store)).names == set()


async def test_secrets_are_stored_for_workers(store: Store) -> None:
    secret = define_data_job("ping", "http", {"url": "https://example.com", "secret": "s", "headers": {"X-Key": "k"}})
    await store.data_jobs.create(secret, "api", None)
    assert read(await heard(store)) == [secret]


async def test_what_is_expected_of_it_comes_and_goes_with_it(store: Store) -> None:
    job = define_data_job("ping", "http", {"url": "https://example.com/", "expect": {"success_every": "1h"}})
    await store.data_jobs.create(job, "api", None)
    (view,) = await store.expectations.list()
    assert (view.kind, view.subject) == ("job", "ping")
    await written(store, ping(), None)
    assert await store.expectations.list() == []
    await store.data_jobs.delete("ping", None, force=False)
    await store.data_jobs.create(job, "api", None)
    assert await store.expectations.list()
    await store.data_jobs.delete("ping", None, force=False)
    assert await store.expectations.list() == []


async def test_its_runs_need_what_its_newest_version_needs(store: Store) -> None:
    await store.data_jobs.create(ping(), "api", None)
    await put(store, ping())
    await written(store, define_data_job("ping", "http", {"url": "https://example.com/", "only_workers": ["a"]}), None)
    assert await claim(store, known={"ping": 2}) == []
    (requirements,) = (await store.known_requirements()).values()
    assert requirements.only_workers == ("a",)
