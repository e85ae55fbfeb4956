"""Test `Job`: call it, enqueue it, give it options, and errors for invalid arguments."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Context, Fail, Job, NotFound, Order, Rota, RunState, SyncContext
from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.errors import BadPayload, Conflict, Invalid, JobDisabled, NotRepeatable, UnknownJob, UnknownOption

Crawl = Job[[str, int], str]


def count(app: Rota) -> int:
    return len(app.blocking.list())


def test_calling_a_job_calls_the_function(app: Rota, crawl: Crawl) -> None:
    assert crawl("ctx", "https://example.com", depth=3) == "https://example.com to 3 for ctx"
    assert app.blocking.list() == []


async def test_calling_an_async_job_gives_its_coroutine(app: Rota) -> None:
    @app.job
    async def double(n: int) -> int:
        return n * 2

    assert await double(21) == 42


def test_a_job_looks_like_its_function(crawl: Crawl) -> None:
    assert (crawl.__name__, crawl.__doc__, crawl.name) == ("crawl", "Fetch a page.", "crawl")
    assert repr(crawl) == "<rota job 'crawl' version 1>"
    assert crawl.handler.definition.description == "Fetch a page."


def test_enqueue_from_plain_code(app: Rota, crawl: Crawl) -> None:
    made = crawl.enqueue("https://example.com", 2)
    assert made.created
    run = app.blocking.get(made.id)
    assert (run.job, run.payload, run.state) == ("crawl", {"url": "https://example.com", "depth": 2}, RunState.QUEUED)
    assert (run.tags, run.max_attempts) == (("net",), 5)


async def test_enqueue_from_async_code(app: Rota, crawl: Crawl) -> None:
    made = await crawl.aenqueue("https://example.com", 2)
    client = await app.connect()
    assert (await client.get(made.id)).payload == {"url": "https://example.com", "depth": 2}
    await app.aclose()


def test_an_omitted_argument_stays_omitted(app: Rota) -> None:
    @app.job
    def greet(name: str, greeting: str = "hello") -> None:
        """Never called here."""

    assert app.blocking.get(greet.enqueue("me").id).payload == {"name": "me"}


def test_options_are_for_the_runs_enqueued_through_them(app: Rota, crawl: Crawl) -> None:
    soon = crawl.options(delay="10m", priority=5, scope=("account", "42")).options(queue="slow")
    run = app.blocking.get(soon.enqueue("https://example.com", 1).id)
    assert (run.state, run.priority, run.queue, run.scope.id) == (RunState.SCHEDULED, 5, "slow", "42")
    assert run.run_at - run.created_at == timedelta(minutes=10)
    plain = app.blocking.get(crawl.enqueue("https://example.com", 1).id)
    assert (plain.state, plain.priority, plain.queue) == (RunState.QUEUED, 0, "default")


def test_a_key_leads_to_the_same_run(app: Rota, crawl: Crawl) -> None:
    front = crawl.options(key="front-page")
    first, second = front.enqueue("https://example.com", 1), front.enqueue("https://example.com", 2)
    assert (second.id, second.created) == (first.id, False)
    assert count(app) == 1


def test_many_at_once(app: Rota, crawl: Crawl) -> None:
    made = crawl.options(priority=3).enqueue_many([{"url": f"https://example.com/{n}"} for n in range(20)])
    runs = [app.blocking.get(one.id) for one in made]
    assert [run.payload["url"] for run in runs] == [f"https://example.com/{n}" for n in range(20)]
    assert {run.priority for run in runs} == {3}
    assert crawl.enqueue_many([]) == []


def test_many_with_fields_that_must_be_unique(app: Rota, crawl: Crawl) -> None:
    urls = ["a", "b", "a"]
    made = crawl.options(unique="url").enqueue_many([{"url": url} for url in urls])
    assert made[0].id == made[2].id != made[1].id
    assert count(app) == 2


def test_many_are_all_or_nothing(app: Rota, crawl: Crawl) -> None:
    with pytest.raises(BadPayload, match=r"\$\.depth"):
        crawl.enqueue_many([{"url": "a"}, {"url": "b", "depth": "deep"}])
    assert count(app) == 0


async def test_many_from_async_code_and_of_several_jobs(app: Rota, crawl: Crawl) -> None:
    @app.job
    def mail(to: str) -> None:
        """Never called here."""

    client = await app.connect()
    made = await client.enqueue_many(
        [
            Order("mail", {"to": "me"}),
            Order("crawl", {"url": "a"}, {"priority": 1}),
            Order("crawl", {"url": "b"}, {"priority": 2}),
        ]
    )
    runs = [await client.get(one.id) for one in made]
    assert [(run.job, run.priority) for run in runs] == [("mail", 0), ("crawl", 1), ("crawl", 2)]
    assert len(await crawl.aenqueue_many([{"url": "c"}, {"url": "d"}])) == 2
    await app.aclose()


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"url": 1}, r"\$\.url"),
        ({"url": "a", "depth": "deep"}, r"\$\.depth"),
        ({"url": "a", "deepth": 1}, r"\$\.deepth.*did you mean 'depth'"),
        ({}, r"\$\.url.*missing"),
        ({"url": "a", "ctx": 1}, r"\$\.ctx.*the worker passes it"),
        ({"url": "a\0b"}, r"\$\.url"),
        ({"url": "\ud800"}, r"\$\.url"),
        ({"url": "x" * 300_000}, "the limit is"),
        ({"url": object()}, r"\$\.url"),
    ],
)
def test_a_bad_payload_names_its_place_and_nothing_is_written(
    app: Rota, crawl: Crawl, arguments: dict[str, object], path: str
) -> None:
    with pytest.raises(BadPayload, match=path):
        crawl.enqueue(**arguments)  # type: ignore[call-arg]
    assert count(app) == 0


def test_a_bad_payload_deep_inside(app: Rota) -> None:
    @app.job
    def tally(users: list[dict[str, int]]) -> None:
        """Never called here."""

    with pytest.raises(BadPayload) as caught:
        tally.enqueue([{"age": 1}, {"age": "old"}])  # type: ignore[dict-item]
    assert caught.value.path == "$.users[1][...]"


def test_a_bad_option_writes_nothing(app: Rota, crawl: Crawl) -> None:
    with pytest.raises(UnknownOption, match="did you mean 'priority'"):
        crawl.options(priorty=3).enqueue("a", 1)  # type: ignore[call-arg]
    with pytest.raises(Invalid, match="not both"):
        crawl.options(delay="1s", run_at=datetime.now(UTC)).enqueue("a", 1)
    assert count(app) == 0


def test_a_disabled_job(app: Rota) -> None:
    @app.job(enabled=False)
    def off() -> None:
        """Never called here."""

    with pytest.raises(JobDisabled, match="'off'"):
        off.enqueue()
    assert count(app) == 0


def test_a_job_that_is_not_repeatable(app: Rota) -> None:
    @app.job(repeatable=False)
    def found() -> None:
        """Never called here."""

    first = found.enqueue()
    with pytest.raises(NotRepeatable) as caught:
        found.enqueue()
    assert caught.value.holder == first.id
    assert count(app) == 1


def test_an_unknown_job(app: Rota, crawl: Crawl) -> None:
    with pytest.raises(UnknownJob, match="did you mean 'crawl'"):
        app.blocking.enqueue(Order("crawll", {}))
    assert issubclass(UnknownJob, NotFound)


async def test_a_job_known_only_to_the_database(app: Rota, crawl: Crawl, sqlite_url: str) -> None:
    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    stranger = Rota(sqlite_url)
    external = await stranger.connect()
    made = await external.enqueue(Order("crawl", {"url": "a"}))
    assert (await client.get(made.id)).max_attempts == 5
    for arguments in ({"url": 5}, {}, {"url": "a", "x": 1}, {"url": "\ud800"}, {"url": "a", "depth": float("nan")}):
        with pytest.raises(BadPayload):
            await external.enqueue(Order("crawl", arguments))
    assert len(await client.list()) == 1
    await stranger.aclose()
    await app.aclose()


def test_declared_twice(app: Rota, crawl: Crawl) -> None:
    with pytest.raises(Conflict, match="declared twice"):
        app.job(name="crawl")(lambda: None)
    app.job(name="crawl", version=2)(lambda: None)
    assert app.registry.known() == {"crawl": 2}


def test_a_misspelt_job_option(app: Rota) -> None:
    with pytest.raises(UnknownOption, match="did you mean 'timeout'"):
        app.job(timeot="5s")(lambda: None)  # type: ignore[call-overload]


async def test_retrying_a_finished_run_makes_a_new_one(app: Rota) -> None:
    @app.job(max_attempts=1)
    async def flaky(ctx: Context) -> None:
        raise Fail("no luck")

    async with app.running() as client:
        first = await client.wait((await flaky.aenqueue()).id, "60s")
        assert first.state is RunState.FAILED
        again = await client.wait((await client.retry(first.id)).id, "60s")
        third = await client.wait((await client.retry(again.id)).id, "60s")
        assert (again.retry_of, third.retry_of) == (first.id, again.id)
        assert await client.get(first.id) == first
        assert {run.id for run in await client.list()} == {first.id, again.id, third.id}


def test_the_definition_is_what_was_declared(crawl: Crawl) -> None:
    definition: JobDefinition = crawl.handler.definition
    assert (definition.name, definition.retry.max_attempts, definition.tags) == ("crawl", 5, ("net",))
    assert definition.payload_schema["required"] == ["url"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_concurrency": 0}, "max_concurrency must be a whole number from 1 up"),
        ({"limit": {"max": 1, "by": "ulr"}}, "has no field 'ulr'"),
        ({"limit": {"max": 1, "when_full": "rejct"}}, "did you mean 'reject'"),
        ({"limit": [{"max": 1, "by": "url"}, {"max": 2, "by": "url"}]}, "two limits by url"),
        ({"limit": {"max": 1}, "max_concurrency": 2}, "two limits of all its runs"),
        ({"limit": "url"}, "limit cannot be 'url'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(app: Rota, options: Any, told: str) -> None:
    with pytest.raises(Invalid, match=told):

        @app.job(**options)
        def fetch(url: str) -> None: ...


def test_a_jobs_limits(app: Rota) -> None:
    @app.job(max_concurrency=5, limit={"max": 2, "by": ["scope", "url"], "max_queued": 10})
    def fetch(url: str) -> None: ...

    assert fetch.handler.definition.limits == (Limit(max=2, by=("scope", "url"), max_queued=10), Limit(max=5))


def test_a_coroutine_cannot_have_the_context_of_plain_functions() -> None:
    app = Rota("sqlite:///never-opened.db")

    async def crawl(ctx: SyncContext) -> None:
        """Its steps would be begun and never awaited."""

    with pytest.raises(Invalid, match="not a SyncContext"):
        app.job(crawl)
