"""Examination of an installation: all checks, in order, for `rota doctor` and for those who ask a server."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, cast

from rota.config import Config
from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.monitoring.attention import judge
from rota.core.monitoring.attention_rules import items_of
from rota.core.monitoring.doctor import (
    OK,
    WARNING,
    Check,
    check_attention,
    check_clock,
    check_expectations,
    check_ledgers,
    check_symptoms,
)
from rota.core.monitoring.doctor_host import (
    HeartbeatSettings,
    Versions,
    check_epoch,
    check_file,
    check_server,
    check_settings,
    check_users,
    check_versions,
    check_workers,
)
from rota.core.workers.worker import Worker
from rota.store import Store
from rota.store.databases.statements import POSTGRES
from rota.store.monitoring import doctor as doctor_facts
from rota.store.schema.migrate import check as versions_of
from rota.values.clock import HostClock
from rota.values.durations import in_micros
from rota.values.instants import instant
from rota.version import __version__

if TYPE_CHECKING:
    from rota.store.databases.sqlite.sqlite import SqliteDatabase

_HINT_PATIENCE = 2.0
_ECHO = "\x01doctor"


async def examined(
    store: Store,
    config: Config,
    where: str = "the database",
    schedule: str | None = None,
    *,
    most_verified: int | None = None,
) -> AsyncIterator[Check]:
    """Yield the result of each check. `where` names the database.

    Verify the ledgers of at most so many schedules, or that of one `schedule` run by run.
    """
    schema, expected = await versions_of(store.database)
    newer = f", which supports this version ({expected})" if schema > expected else ""
    words = f"{where} answers, at schema {schema}{newer}"
    yield Check(name="database", level=OK, words=words, facts={"schema": schema})
    workers = await store.workers.list()
    for check in await _check_environment(store, workers):
        yield check
    yield check_clock(await _clock_offset(store))
    yield check_settings(
        HeartbeatSettings(lease=config.lease, heartbeat=config.heartbeat, deadline=config.deadline), workers
    )
    yield await _check_hints(store)
    yield check_workers(workers, instant(await store.now()))
    stuck_for = config.lease + config.reaper
    for check in check_symptoms(await store.ledger.symptoms(in_micros(config.lease), in_micros(stuck_for) + 1_000_000)):
        yield check
    found = (await store.monitoring.overview(in_micros(config.lease), in_micros(stuck_for) + 1_000_000)).facts
    judged = judge(items_of(found), found.snoozes, found.symptoms.now)
    for check in check_attention(judged.open, len(judged.snoozed)):
        yield check
    yield check_expectations(await store.expectations.list())
    names = [schedule] if schedule else await store.schedules.names()
    selected = names[:most_verified]
    verified = [await store.ledger.verify(name, thorough=schedule is not None) for name in selected]
    for check in check_ledgers(verified, len(names) - len(selected)):
        yield check


async def _check_environment(store: Store, workers: Sequence[Worker]) -> list[Check]:
    ours = Versions(
        rota=__version__,
        python=platform.python_version(),
        sqlite=doctor_facts.sqlite_library(),
        zones=TZDATA_VERSION,
        planned_with=await doctor_facts.planned_with(store.database),
    )
    now = instant(await store.now())
    epoch = check_epoch(await store.standing.read(), now)
    if store.database.dialect is POSTGRES:
        server = await doctor_facts.server_vitals(store.database)
        return [*check_versions(ours, workers, server, now), *check_server(server), epoch]
    database = cast("SqliteDatabase", store.database)
    file, users = await doctor_facts.file_vitals(database), await doctor_facts.file_users(database)
    return [*check_versions(ours, workers, None, now), check_file(file), check_users(users), epoch]


async def _clock_offset(store: Store) -> int:
    """Return the offset of the host's clock in µs, against the middle of a query's round trip."""
    clock = HostClock()
    before = clock.micros()
    database_micros = await store.now()
    return (before + clock.micros()) // 2 - database_micros


async def _check_hints(store: Store) -> Check:
    """Check that a notification of the database arrives."""
    if store.database.dialect is not POSTGRES:
        return Check(name="hints", level=OK, words="processes on this host see each other's writes to the file")
    heard = asyncio.Event()
    unlisten = store.listen(lambda queue: heard.set() if queue in (_ECHO, None) else None)
    try:
        for _ in range(4):  # the listening connection may not be open yet
            store.database.notify([_ECHO])
            try:
                await asyncio.wait_for(heard.wait(), _HINT_PATIENCE / 4)
            except TimeoutError:
                continue
            return Check(name="hints", level=OK, words="LISTEN and NOTIFY work")
    finally:
        unlisten()
    words = "notifications do not arrive: everything is found by polling, up to a second later"
    return Check(
        name="hints",
        level=WARNING,
        words=words,
        hint="a transaction pooler may be in between, which does not support LISTEN",
    )
