"""`rota migrate` with several versions: which programs the new tables support, and how that is reported."""

import asyncio
from datetime import timedelta

import pytest

from rota.core.workers.worker import Pace, WorkerInfo
from rota.store import Store, open_database
from rota.store.databases.statements import Dialect, Migration, migrations, schema_version
from rota.store.schema import migrate
from tests.support.processes.command_line import answer, rota

NEWEST = schema_version()
ADDS = Migration(NEWEST + 1, "adds", "create table added (n integer)", NEWEST)
CHANGES = Migration(NEWEST + 2, "changes", "create table changed (n integer)", NEWEST + 2)


def pretend(patch: pytest.MonkeyPatch, *more: Migration) -> None:
    def known(dialect: Dialect) -> list[Migration]:
        return [*migrations(dialect), *more]

    patch.setattr(migrate, "migrations", known)


async def beat(url: str) -> None:
    pace = Pace(heartbeat=timedelta(seconds=10), poll=timedelta(seconds=1), lease=timedelta(minutes=5))
    worker = WorkerInfo(
        id="old@1", name="old", host="here", pid=1, version="0.1", queues=("default",), jobs=(), slots=1, pace=pace
    )
    store = Store(open_database(url))
    await store.workers.beat(worker)
    await store.close()


def test_it_says_whom_the_tables_serve(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as future:
        pretend(future, ADDS)
        done = answer("migrate", "--database", database_url)
        assert done == {"applied": ["adds"], "version": NEWEST + 1, "serves": NEWEST}
    assert rota("migrate", "--check", "--database", database_url).exit_code == 0
    assert answer("migrate", "--database", database_url) == {"applied": [], "version": NEWEST + 1, "serves": NEWEST}
    assert (
        f"at schema {NEWEST + 1}, which supports this version ({NEWEST})"
        in rota("doctor", "--database", database_url).stdout
    )


def test_whoever_is_left_behind_is_named_unless_it_is_forced(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(beat(database_url))
    with monkeypatch.context() as future:
        pretend(future, ADDS, CHANGES)
        refused = rota("migrate", "--database", database_url)
        assert refused.exit_code == 6
        assert "old" in refused.stderr
        assert "rota workers drain old" in refused.stderr
        assert answer("migrate", "--force", "--database", database_url)["applied"] == ["adds", "changes"]
        (worker,) = answer("workers", "ls", "--database", database_url)["items"]
        assert worker["asked"]["state"] == "stopping"
    late = rota("migrate", "--check", "--database", database_url)
    assert late.exit_code == 78
    assert "install a newer rota" in late.stderr
