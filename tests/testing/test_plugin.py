"""Test the pytest plugin in pytest processes of its own, as in a project with rota installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from rota.testing.plugin import load_app
from tests.support.databases.postgres import PostgresServer

pytest_plugins = ["pytester"]

SHOP = """
    from rota import Rota, cron

    app = Rota("sqlite:///production.db")

    @app.job(backoff="10m")
    def charge(order: int) -> str:
        if order < 0:
            raise ValueError("there is no such order")
        return f"order {order} is charged"

    @app.job
    async def report() -> str:
        return "reported"

    app.schedule("nightly", report, cron("30 2 * * *", tz="Europe/Berlin"))
"""

BEFORE = """
    import sys

    ours = {name for name in sys.modules if name.partition(".")[0] == "rota"}
    heavy = {"apsw", "asyncpg", "msgspec"} & set(sys.modules)

    def test_nothing_is_imported_before_it_is_asked_for():
        assert ours == {"rota", "rota.late", "rota.version", "rota.testing", "rota.testing.plugin"}
        assert not heavy
"""

BLOCKING = """
    import pytest
    from rota import RunState
    from rota.testing import assert_enqueued, drain
    from shop import app, charge

    def test_inline(rota_inline):
        charge.enqueue(order=7)
        assert_enqueued(charge, order=7)
        assert rota_inline.runs[0].result == "order 7 is charged"

    @pytest.mark.parametrize("order", [1, 2])
    def test_drain(rota_drain, order):
        charge.enqueue(order=order)
        assert [run.result for run in rota_drain()] == [f"order {order} is charged"]
        assert_enqueued(charge, count=1)  # of this test: its database is its own

    def test_the_function_drains_the_database_of_the_test(rota_blocking_harness):
        handle = charge.enqueue(order=3)
        assert [run.id for run in drain(rota_blocking_harness.app)] == [handle.id]
        assert handle.result() == "order 3 is charged"

    @pytest.mark.rota(start="2030-03-31 01:59", zone="Europe/Berlin", lease="1m")
    def test_blocking_harness(rota_blocking_harness, rota_clock):
        assert rota_blocking_harness.clock is rota_clock
        assert rota_blocking_harness.lease.total_seconds() == 60
        (run,) = rota_blocking_harness.pass_time("10m")
        assert f"{run.started_at:%H:%M}" == "01:00"

    def test_opened_by_hand(rota_harness):
        import asyncio

        async def scenario():
            async with rota_harness as harness:
                run = await charge.aenqueue(order=-1)
                await harness.drain()
                assert await harness.state(run) is RunState.SCHEDULED

        asyncio.run(scenario())

    def test_that_leaves_a_run(rota_blocking_harness, rota_app):
        from rota.engine.engine import worker_info
        from rota.testing import HandWorker

        charge.enqueue(order=7)
        stranger = worker_info(rota_app.registry, rota_app.config, "stranger", None)
        rota_blocking_harness.wait(HandWorker(rota_blocking_harness.inner.client, stranger).claim())
"""

ASYNC = """
    import asyncio
    import pytest
    from rota import RunState
    from shop import charge, report

    MARK

    @pytest.fixture
    def enqueued(rota_harness):
        return charge.enqueue(order=1)

    @FIXTURE
    async def awaited(rota_harness):
        return await charge.aenqueue(order=2)

    async def test_harness(enqueued, awaited, rota_harness, rota_clock):
        run = await charge.aenqueue(order=-1)
        await rota_harness.drain()
        assert await rota_harness.state(enqueued) is RunState.SUCCEEDED
        assert await rota_harness.state(awaited) is RunState.SUCCEEDED
        assert await rota_harness.state(run) is RunState.SCHEDULED
        before = rota_clock.now()
        await rota_harness.pass_time("1h")
        assert (await rota_harness.run(run)).attempt > 1
        assert rota_clock.now() > before

    class TestInAClass:
        async def test_its_database_is_its_own(self, rota_harness):
            async with rota_harness:
                assert await rota_harness.client.list() == []

    async def test_that_fails(rota_harness):
        assert await rota_harness.drain() == ["something"]

    async def test_that_leaves_a_task(rota_harness):
        run = await report.aenqueue()
        asyncio.create_task(rota_harness.client.wait(run.id), name="forgotten")
        await asyncio.sleep(0)

    @pytest.mark.rota(leaves=True)
    async def test_that_may_leave_a_task(rota_harness):
        run = await report.aenqueue()
        asyncio.create_task(rota_harness.client.wait(run.id))
        await asyncio.sleep(0)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # some that are installed here take seconds to load
    pytester.makepyfile(shop=SHOP)
    configure(pytester)
    return pytester


def async_tests(mark: str = "", fixture: str = "pytest.fixture") -> str:
    return ASYNC.replace("MARK", mark).replace("FIXTURE", fixture)


def configure(project: pytest.Pytester, *lines: str) -> None:
    own = ("rota_app = shop:app", "pythonpath = .", "addopts = --strict-markers --strict-config")
    project.makeini("\n".join(["[pytest]", *own, *lines]))


def run(project: pytest.Pytester, *plugins: str, arguments: Sequence[str] = ()) -> pytest.RunResult:
    """With these plugins besides ours, which is found by its entry point."""
    loaded = [option for name in ("rota", *plugins) for option in ("-p", name)]
    return project.runpytest_subprocess("-p", "no:cacheprovider", *loaded, *arguments)


def test_without_any_plugin_for_async_tests(project: pytest.Pytester) -> None:
    project.makepyfile(test_a_before=BEFORE, test_blocking=BLOCKING)
    done = run(project)
    done.assert_outcomes(passed=8, errors=1)
    done.stdout.fnmatch_lines(["the test left something running:", "  run * of 'charge' is running"])
    assert not (project.path / "production.db").exists()


def test_asyncio_in_strict_mode_and_anyio_side_by_side(project: pytest.Pytester) -> None:
    """In strict mode pytest-asyncio leaves alone what is not marked for it."""
    configure(project, "asyncio_mode = strict")
    project.makepyfile(
        test_asyncio=async_tests("import pytest_asyncio; pytestmark = pytest.mark.asyncio", "pytest_asyncio.fixture"),
        test_anyio=async_tests("pytestmark = pytest.mark.anyio"),
        conftest="""
            import pytest

            @pytest.fixture
            def anyio_backend():
                return "asyncio"
        """,
    )
    done = run(project, "asyncio", "anyio")
    done.assert_outcomes(passed=6, failed=4)
    done.stdout.fnmatch_lines(
        ["*assert [[]] == [[]'something']", "the test left something running:", "  task forgotten *"]
    )
    assert not (project.path / "production.db").exists()


def test_asyncio_in_auto_mode_in_several_processes_on_a_server(
    project: pytest.Pytester, postgres_cluster: PostgresServer
) -> None:
    project.makeini("[pytest]\nasyncio_mode = auto")
    project.makepyfile(
        test_auto=async_tests(),
        test_server="""
            def test_where(rota_drain, rota_database_url):
                assert "/rota_test_" in rota_database_url
        """,
        conftest="""
            import pytest
            import shop

            @pytest.fixture
            def rota_app():
                return shop.app
        """,
    )
    done = run(project, "asyncio", "xdist", arguments=["-n", "2", f"--rota-database={postgres_cluster.url}"])
    done.assert_outcomes(passed=4, failed=2)


def test_which_app_is_meant_must_be_said() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"(?s)which app is tested.*rota_app = "):
        load_app("")
    with pytest.raises(pytest.fail.Exception, match="No module named 'shp'; is its folder"):
        load_app("shp:app")
    with pytest.raises(pytest.fail.Exception, match="'rota:cron' is not a Rota app but <function cron"):
        load_app("rota:cron")


def test_importing_the_plugin_is_cheap() -> None:
    program = "import sys, rota.testing.plugin; print(sorted(name for name in sys.modules if name.startswith('rota')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rota', 'rota.late', 'rota.testing', 'rota.testing.plugin', 'rota.version']"
