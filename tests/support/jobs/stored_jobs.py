"""Jobs of an app in its database, as a worker that starts stores them."""

from __future__ import annotations

from rota.app import Rota
from rota.store import Store, open_database


async def save_jobs_of(app: Rota) -> None:
    """Store the jobs that an app declares, in tables that are made if there are none."""
    store = Store(open_database(app.config.database_url))
    await store.migrate()
    await store.save_jobs(app.registry.definitions())
    await store.close()
