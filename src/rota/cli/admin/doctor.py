"""`rota doctor`: check an installation for problems."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, cast

import click

from rota.cli.connect import require_database, require_existing, without_password
from rota.cli.options import examples, shared
from rota.cli.terminal.format import one_field, visible
from rota.cli.terminal.output import coloured, emit, on_terminal, print_json
from rota.config import Config, load_config
from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.monitoring.doctor import (
    OK,
    PROBLEM,
    WARNING,
    Check,
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
    check_versions,
    check_workers,
)
from rota.core.workers.worker import Worker
from rota.errors import BadConfig, RotaError
from rota.store import Store, open_store
from rota.store.databases.statements import POSTGRES
from rota.store.monitoring import doctor as doctor_facts
from rota.store.schema.migrate import check as versions_of
from rota.values.clock import HostClock
from rota.values.durations import in_micros
from rota.values.instants import instant
from rota.version import __version__

if TYPE_CHECKING:
    from rota.store.databases.sqlite.sqlite import SqliteDatabase

_MOST_VERIFIED = 1_000
_HINT_PATIENCE = 2.0
_WIDEST = 9
_ECHO = "\x01doctor"
_SYMBOLS = {OK: ("✓", "green"), WARNING: ("!", "yellow"), PROBLEM: ("✗", "red")}


@click.command(
    epilog=examples(
        "rota doctor                     exit code 1 if there is a problem",
        "rota doctor --schedule nightly  verify this schedule more thoroughly",
    )
)
@click.option("--schedule", metavar="NAME", help="Verify the ledger of this schedule only, run by run.")
@click.option("--all", "everything", is_flag=True, help=f"Verify all ledgers, even if there are over {_MOST_VERIFIED}.")
@shared
def doctor(database: str | None, schedule: str | None, everything: bool, as_json: bool) -> int:
    """Check the installation for problems.

    It checks the database, disk, versions, settings, clock, workers, leases, schedules and ledgers, and changes
    nothing. It needs the database itself, because the server may be the problem. Warnings do not affect the exit code:
    it is 1 only if there is a problem.
    """
    require_database(database)
    config = load_config({"database_url": database})
    checks = asyncio.run(_run_checks(config, schedule, everything=everything))
    healthy = not any(check.level == PROBLEM for check in checks)
    if as_json:
        print_json({"healthy": healthy, "checks": checks})
    else:
        for check in checks:
            emit(_shown(check) if on_terminal() else _plain(check))
    return 0 if healthy else 1


def _shown(check: Check) -> str:
    symbol, style = _SYMBOLS[check.level]
    hint = f"\n  {' ' * _WIDEST} {visible(check.hint)}" if check.hint else ""
    return f"{coloured(symbol, style)} {check.name.ljust(_WIDEST)} {visible(check.words)}{hint}"


def _plain(check: Check) -> str:
    return "\t".join((check.level, check.name, one_field(check.words), one_field(check.hint or "")))


async def _run_checks(config: Config, schedule: str | None, *, everything: bool) -> list[Check]:
    try:
        require_existing(config.database_url)
        store = await open_store(config.database_url, deadline=config.deadline)
    except BadConfig:
        raise
    except RotaError as error:
        return [Check(name="database", level=PROBLEM, words=error.message, hint=error.hint)]
    try:
        return [check async for check in _checks(store, config, schedule, everything=everything)]
    finally:
        await store.close()


async def _checks(store: Store, config: Config, schedule: str | None, *, everything: bool) -> AsyncIterator[Check]:
    schema, expected = await versions_of(store.database)
    newer = f", which supports this version ({expected})" if schema > expected else ""
    words = f"{without_password(config.database_url)} answers, at schema {schema}{newer}"
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
    yield check_expectations(await store.expectations.list())
    names = [schedule] if schedule else await store.schedules.names()
    selected = names if everything else names[:_MOST_VERIFIED]
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
    micros = await store.now()
    now, epoch = instant(micros), check_epoch(await doctor_facts.last_epoch(store.database), micros)
    if store.database.dialect is POSTGRES:
        server = await doctor_facts.server_vitals(store.database)
        return [*check_versions(ours, workers, server, now), *check_server(server), epoch]
    file = await doctor_facts.file_vitals(cast("SqliteDatabase", store.database))
    return [*check_versions(ours, workers, None, now), check_file(file), epoch]


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
