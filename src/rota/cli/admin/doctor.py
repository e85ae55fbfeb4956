"""`rota doctor`: check an installation for problems."""

from __future__ import annotations

import asyncio

import click

from rota.cli.connect import require_database, require_existing, without_password
from rota.cli.options import examples, shared
from rota.cli.terminal.format import one_field, visible
from rota.cli.terminal.output import coloured, emit, on_terminal, print_json
from rota.client.monitoring.doctor import examined
from rota.config import Config, load_config
from rota.core.monitoring.doctor import OK, PROBLEM, WARNING, Check
from rota.errors import BadConfig, RotaError
from rota.store import open_store

_MOST_VERIFIED = 1_000
_WIDEST = 9
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
        where, most = without_password(config.database_url), None if everything else _MOST_VERIFIED
        return [check async for check in examined(store, config, where, schedule, most_verified=most)]
    finally:
        await store.close()
