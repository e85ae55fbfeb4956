"""A role that owns nothing is enough for everything but migrations: docs/howto/operate.md has these statements."""

import re
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from rota import Rota
from rota.core.calendar.triggers import every
from rota.core.states import RunState
from rota.store import open_database
from rota.store.monitoring import doctor
from rota.store.schema.migrate import migrate
from rota.testing import Harness
from tests.support.databases.postgres import connected

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "operate.md"


def statements() -> list[str]:
    (block,) = re.findall(r"```sql not-run: [^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for line in block.splitlines() if not line.startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";") if each.strip()]


async def test_a_role_without_tables_of_its_own_does_everything_but_migrate(new_postgres_url: str) -> None:
    app = Rota()

    @app.job
    def work() -> int:
        return 1

    parts = urlsplit(new_postgres_url)
    database = parts.path.removeprefix("/")

    def as_role(role: str) -> str:
        return urlunsplit(parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}"))

    owner, user = f"{database}_owner", f"{database}_user"
    named = {"rota_owner": owner, "rota_user": user, "DATABASE rota": f"DATABASE {database}"}
    create, *grants = [re.sub("|".join(named), lambda found: named[found[0]], statement) for statement in statements()]
    assert create

    async def carry_out(connection: asyncpg.Connection) -> None:
        for statement in (create, *grants):
            await connection.execute(statement)

    connected(new_postgres_url, carry_out)
    tables = open_database(as_role(owner))
    await migrate(tables)
    await tables.close()
    async with Harness(app, as_role(user)) as harness:
        await harness.client.schedules.create("often", "work", every("1m"))
        run = await harness.enqueue("work")
        await harness.drain()
        assert await harness.state(run) is RunState.SUCCEEDED
        assert (await doctor.server_vitals(harness.store.database)).version
