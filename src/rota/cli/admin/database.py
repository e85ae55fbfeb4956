"""`rota database`: show the standing of the database, accept a copy as the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rota.cli.options import Group, examples
from rota.cli.terminal.cells import facts_of
from rota.cli.verbs.looks import facts
from rota.cli.verbs.verb_command import Consent, verb_command
from rota.client.client import Client
from rota.client.monitoring.database import DatabaseClient
from rota.core.ledger.database_state import DatabaseStanding


@click.group(cls=Group, epilog=examples("rota database get", "rota database accept --reason restored"))
def database() -> None:
    """Show the standing of the database, and accept a restored one.

    A copy of a PostgreSQL database, as by restoring a dump, plans, claims and sends nothing until it is accepted: its
    original may still be at work.
    """


_show = facts(
    facts_of(
        "kind epoch since held accepted_at accepted_by",
        held=lambda standing, _: "yes: a copy that nobody has accepted" if standing.held else "no",
    )
)


async def _standing(client: Client, _arguments: Mapping[str, Any]) -> DatabaseStanding:
    return await client.database.get()


def _question(standing: DatabaseStanding, _arguments: Mapping[str, Any]) -> str | None:
    if not standing.held:
        return None
    return "accept this copy as the original? What is due is then run and sent; nobody may work with the other one"


for command in (
    verb_command("database", DatabaseClient.get, _show, "rota database get", "rota database get --json"),
    verb_command(
        "database",
        DatabaseClient.accept,
        _show,
        "rota database accept",
        "rota database accept --reason 'restored from last night' --yes",
        consent=Consent(_standing, _question),
    ),
):
    database.add_command(command)
