"""`rota token`: create, list and revoke API tokens."""

from __future__ import annotations

from datetime import datetime

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, examples, scope_of, shared
from rota.cli.terminal.format import Cell, Columns, age_cell, instant_cell, text_cell
from rota.cli.terminal.output import print_facts, print_json, print_rows
from rota.client.client import Client
from rota.core.access.roles import Issued, Role, Token

_COLUMNS = Columns(
    ("id", "name", "role", "scope", "state", "expires", "last used", "created by"),
    cut=("name",),
    spare=("created by", "last used"),
)
_NONE = "no tokens: create one with `rota token create NAME --role operator`"
_NEVER = "never"


@click.group(cls=Group, epilog=examples("rota token create ci --role enqueue --expires 30d", "rota token list"))
def token() -> None:
    """Create, list and revoke API tokens.

    Servers check them if ROTA_AUTH is on. Roles: viewer (read) < operator (also act and enqueue) < admin (everything);
    worker and enqueue may do only that.
    """


@token.command(
    "create",
    epilog=examples(
        "rota token create grafana --role viewer --expires never",
        "rota token create shop --role enqueue --scope tenant/42",
    ),
)
@click.argument("name")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True, help="What it may do.")
@click.option("--expires", default="90d", show_default=True, metavar="DURATION|never", help="How long it is valid.")
@click.option("--scope", type=scope_of, metavar="KIND/ID", help="Only for runs of this scope.")
@shared
def create(
    name: str, role: str, expires: str, scope: tuple[str, str] | None, database: str | None, as_json: bool
) -> None:
    """Create a token, and print it. It is not shown again."""

    async def command(client: Client) -> Issued:
        life = None if expires == _NEVER else expires
        return await client.tokens.create(name, role, expires=life, scope=scope, actor=actor())

    issued = ask(database, command)
    if as_json:
        print_json({"token": issued.token, "secret": issued.secret})
        return
    click.echo(issued.secret)
    click.echo("note: the token is not shown again; keep it like a password", err=True)


@token.command("list", epilog=examples("rota token list", "rota token list --json"))
@shared
def list_tokens(database: str | None, as_json: bool) -> None:
    """List tokens, including expired and revoked ones."""

    async def question(client: Client) -> tuple[list[Token], datetime]:
        return list(await client.tokens.list()), await client.time()

    tokens, now = ask(database, question)
    if as_json:
        print_json(tokens)
        return
    print_rows(_COLUMNS, [_row(token, now) for token in tokens], none=_NONE)


@token.command("revoke", epilog=examples("rota token revoke grafana"))
@click.argument("who", metavar="NAME|ID")
@shared
def revoke(who: str, database: str | None, as_json: bool) -> None:
    """Revoke a token and end its sessions.

    Servers apply it within seconds.
    """
    revoked = ask(database, lambda client: client.tokens.revoke(who, actor=actor()))
    if as_json:
        print_json(revoked)
        return
    print_facts([("revoked", text_cell(f"{revoked.name} ({revoked.id})"))])


def _row(token: Token, now: datetime) -> list[Cell]:
    return [
        text_cell(token.id),
        text_cell(token.name),
        text_cell(token.role.value),
        text_cell("" if token.scope is None else f"{token.scope.kind}/{token.scope.id}"),
        text_cell(_state(token, now)),
        text_cell(_NEVER) if token.expires_at is None else instant_cell(token.expires_at, now),
        text_cell(_NEVER) if token.used_at is None else age_cell(token.used_at, now),
        text_cell(token.created_by or ""),
    ]


def _state(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "valid"
