"""Jobs as a client sees them that knows the runs of one scope only."""

import pytest

from rota import Fail, Rota
from rota.errors import Forbidden, NothingToRetry, UnknownRun
from rota.testing import adrain


async def test_only_the_newest_run_of_the_scope_is_retried(database_url: str) -> None:
    app = Rota(database_url)

    @app.job
    async def send() -> None:
        raise Fail("no")

    first = await send.options(scope=("user", "1")).aenqueue()
    await send.options(scope=("user", "2")).aenqueue()
    await adrain(app)
    client = await app.connect()
    own = client.within(("user", "1"))
    again = await own.retry_job("send", idempotency_key="once")
    assert (again.retry_of, again.scope.id, again.created) == (first.id, "1", True)
    repeated = await own.retry_job("send", idempotency_key="once")
    assert (repeated.id, repeated.created) == (again.id, False)
    with pytest.raises(NothingToRetry):
        await client.within(("user", "3")).retry_job("send")
    await app.aclose()


async def test_executions_are_numbered_among_all_scopes_and_so_refused(database_url: str) -> None:
    app = Rota(database_url)

    @app.job
    async def send() -> None: ...

    runs = [await send.options(scope=("user", str(number))).aenqueue() for number in range(3)]
    await adrain(app)
    client = await app.connect()
    with pytest.raises(Forbidden):
        await client.within(("user", "1")).executions("send")
    page = await client.executions("send", limit=2, offset=1)
    assert [(tried.run_id, tried.execution_number) for tried in page.executions] == [(runs[1].id, 2), (runs[0].id, 1)]
    assert page.total == 3
    own = await client.within(("user", "1")).execution(runs[1].id)
    assert (own.id, own.execution_number, own.status) == (page.executions[0].id, None, "completed")
    with pytest.raises(UnknownRun):
        await client.within(("user", "1")).execution(page.executions[1].id)
    await app.aclose()
