"""A database full of schedules: one real schedule made by rota, and copies of its rows, some of them due together."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from benchmarks.harness.cluster import Cluster
from rota import Rota, cron
from rota.client.client import Client
from rota.engine.loops.planner import Planner
from rota.store import Database, Store, open_database
from rota.store.databases.statements import POSTGRES
from rota.values.instants import instant

JOB = "noop"
MODEL = "model"
SECOND = 1_000_000
BITE = 20_000
FIRST_CURSOR = 1_000  # the copies' cursors are numbered from here on
LATER = 6 * 3600 * SECOND  # what is only carried is due from then on, over a day
DAY = 24 * 3600 * SECOND

NUMBERS = {
    "postgres": "(select generate_series(:first::bigint, :last::bigint) as n) as k",
    "sqlite": (
        "(with recursive k(n) as (select :first union all select n + 1 from k where n < :last) select n from k) as k"
    ),
}
IDS = {
    "postgres": "('019a0000-0000-7000-8000-' || lpad(to_hex({n}), 12, '0'))::uuid",
    "sqlite": "printf('019a0000-0000-7000-8000-%012x', {n})",
}
OLDER_IDS = {
    "postgres": "(lpad(to_hex(k.n), 8, '0') || substr(r.id::text, 9))::uuid",
    "sqlite": "printf('%08x', k.n) || substr(r.id, 9)",
}
FORGET = (
    "delete from rota_cursor where no in (select cursor_no from rota_schedule_now where name = :model)",
    "delete from rota_schedule where name = :model and deleted_at is null",
)
LAST_FIRE = "(select max(plan_time) from rota_run)"
# The runs of one fire end well and stay, where planning finds the last run of a schedule; those before were pruned.
FINISH = (
    "delete from rota_ready",
    "delete from rota_lease",
    "update rota_run set state = 'succeeded', attempt = 1, fence = 1, finished_at = run_at where state is null",
    f"delete from rota_run where plan_time < {LAST_FIRE}",
)


@dataclass(frozen=True)
class Outcome:
    """What a fire left behind: runs beyond one per schedule, schedules without one, and runs that did not begin."""

    doubled: int
    missed: int
    skipped: int
    created_ms: list[float]


def declared(url: str) -> Rota:
    """An application with the one job of these measures."""
    app = Rota(url)

    @app.job(name=JOB)
    async def noop(n: int = 0) -> None:
        """Nothing."""

    return app


class Fleet:
    """`carried` schedules in one database; `arm` makes some of them due, each of which had `history` runs before."""

    def __init__(self, url: str, cluster: Cluster, carried: int, history: int = 1) -> None:
        self.url = url
        self.carried = carried
        self._history = history
        self._cluster = cluster
        self._database = open_database(url)
        self.dialect = self._database.dialect

    @property
    def server(self) -> int | None:
        return self._cluster.pid if self.dialect is POSTGRES else None

    async def make(self) -> None:
        store = Store(open_database(self.url))
        await store.migrate()
        await store.close()
        async with self._client() as client:
            await client.store.save_jobs(client.registry.definitions())
            await Planner(client.store, {}, client.config.poll).step()  # it notes which time zone data is in use
            await client.schedules.create(MODEL, JOB, cron("0 0 1 1 *"), payload={"n": 0})
            now = await client.store.now()
        for first in range(0, self.carried, BITE):
            last = min(first + BITE, self.carried) - 1
            await self._execute(*await self._copies(), first=first, last=last, base=now + LATER)
        await self._execute(*FORGET, model=MODEL)
        await self.settle()

    async def arm(self, due: int, seconds: float, *, own: bool) -> int:
        """So many schedules, spread evenly over all, are due at one second from now on. Returns it, in microseconds.

        `own`: each has a payload of its own, so that no two definitions are the same text.
        """
        await self._execute(*FINISH)
        if self._history > 1:
            await self._execute(await self._past(), first=1, last=self._history - 1)
        async with self._client() as client:
            now = await client.store.now()
            at = -(-(now + int(seconds * SECOND)) // SECOND) * SECOND
            await self._execute(*FORGET, model=MODEL)
            fire = instant(at)
            when = f"{fire.second} {fire.minute} {fire.hour} * * *"
            await client.schedules.create(MODEL, JOB, cron(when), payload={"n": 0})
        await self._execute(*self._arming(own), first=0, last=due - 1, stride=max(1, self.carried // due), model=MODEL)
        await self._execute(*FORGET, model=MODEL)
        await self.settle()
        return at

    async def outcome(self, due: int, at: int) -> Outcome:
        rows = await self._execute(
            "select schedule_id, created_at - plan_time, state from rota_run where plan_time = :at", at=at
        )
        schedules = {row[0] for row in rows}
        skipped = sum(row[2] == "skipped" for row in rows)
        return Outcome(len(rows) - len(schedules), due - len(schedules), skipped, [row[1] / 1000 for row in rows])

    async def settle(self) -> None:
        if self.dialect is POSTGRES:
            await self._cluster.settle(self.url)
            return
        connection = apsw.Connection(self.url.removeprefix("sqlite:///"))
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        connection.close()

    async def close(self) -> None:
        await self._database.close()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        client = await declared(self.url).open_client()
        try:
            yield client
        finally:
            await client.close()

    async def _execute(self, *statements: str, **values: object) -> Any:
        async def body(tx: Any) -> Any:
            answers = [await tx.fetch_sql(statement, **values) for statement in statements]
            return answers[-1]

        return await self._database.transact(body)

    async def _copies(self) -> tuple[str, str]:
        at = f":base + (k.n * 7919 % 86400) * {SECOND}"
        no = str(FIRST_CURSOR) + " + k.n"
        schedule = {"id": IDS[self.dialect.name].format(n="k.n"), "name": "'carried-' || k.n", "cursor_no": no}
        return (
            await self._copy("rota_cursor", "no = m.cursor_no", {"no": no, "next_plan": at, "next_at": at}),
            await self._copy("rota_schedule", "id = m.id", schedule),
        )

    async def _copy(self, table: str, same: str, changed: dict[str, str]) -> str:
        columns = await self._columns(table)
        values = ", ".join(changed.get(column, f"s.{column}") for column in columns)
        return (
            f"insert into {table} ({', '.join(columns)}) select {values} from {NUMBERS[self.dialect.name]}, "
            f"rota_schedule as m, {table} as s where m.name = '{MODEL}' and m.deleted_at is null and s.{same}"
        )

    async def _past(self) -> str:
        """What ran at the last fire ran on the days before, too."""
        times = ("plan_time", "run_at", "created_at", "finished_at")
        changed = {"id": OLDER_IDS[self.dialect.name], **{time: f"r.{time} - k.n * {DAY}" for time in times}}
        columns = await self._columns("rota_run")
        values = ", ".join(changed.get(column, f"r.{column}") for column in columns)
        return (
            f"insert into rota_run ({', '.join(columns)}) select {values} from {NUMBERS[self.dialect.name]}, "
            f"rota_run as r where r.plan_time = {LAST_FIRE}"
        )

    async def _columns(self, table: str) -> list[str]:
        if self.dialect is POSTGRES:
            sql = f"select attname::text from pg_attribute where attrelid = '{table}'::regclass and attnum > 0"
        else:
            sql = f"select name from pragma_table_info('{table}')"
        return [row[0] for row in await self._execute(sql)]

    def _arming(self, own: bool) -> tuple[str, str]:
        number = "k.n * :stride::bigint" if self.dialect is POSTGRES else "k.n * :stride"
        numbers = NUMBERS[self.dialect.name]
        definition = "replace(m.definition, '\"n\":0', '\"n\":' || k.n)" if own else "m.definition"
        schedule = IDS[self.dialect.name].format(n=number)
        says = (
            f"update rota_schedule set revision = rota_schedule.revision + 1, definition = {definition} "
            f"from {numbers}, rota_schedule as m "
            f"where m.name = :model and m.deleted_at is null and rota_schedule.id = {schedule}"
        )
        stands = (
            "update rota_cursor set cursor_at = m.cursor_at, next_plan = m.next_plan, next_at = m.next_at, fired = 1 "
            f"from {numbers}, rota_cursor as m "
            "where m.no = (select cursor_no from rota_schedule where name = :model and deleted_at is null) "
            f"and rota_cursor.no = {FIRST_CURSOR} + {number}"
        )
        return says, stands


async def fall_behind(database: Database, name: str, back: int) -> None:
    """As if nobody had planned this schedule for so long."""
    sql = (
        "update rota_cursor set cursor_at = cursor_at - :back, next_plan = next_plan - :back, "
        "next_at = next_at - :back where no in (select cursor_no from rota_schedule where name = :name)"
    )
    await database.transact(lambda tx: tx.fetch_sql(sql, back=back, name=name))


@asynccontextmanager
async def fleet(database: str, cluster: Cluster, carried: int, history: int = 1) -> AsyncIterator[Fleet]:
    if database == "postgres":
        with cluster.database() as url:
            async with _made(Fleet(url, cluster, carried, history)) as made:
                yield made
    else:
        with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
            async with _made(Fleet(f"sqlite:///{Path(folder) / 'rota.db'}", cluster, carried, history)) as made:
                yield made


@asynccontextmanager
async def _made(fleet: Fleet) -> AsyncIterator[Fleet]:
    try:
        await fleet.make()
        yield fleet
    finally:
        await fleet.close()
