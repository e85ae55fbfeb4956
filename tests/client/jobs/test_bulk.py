"""Many jobs at once."""

import pytest

from rota import Rota, Unavailable
from rota.store import Store


async def test_a_database_that_is_away_is_no_refusal_of_a_job(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Rota(sqlite_url)

    @app.job
    def crawl() -> None: ...

    async def away(*_: object, **__: object) -> None:
        raise Unavailable("the database is away")

    client = await app.connect()
    monkeypatch.setattr(Store, "pause_job", away)
    with pytest.raises(Unavailable):
        await client.change_jobs("pause", everything=True)
    await app.aclose()
