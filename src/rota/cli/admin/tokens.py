"""`rota token`: create, list and revoke API tokens."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import click

from rota.cli.options import Group, examples
from rota.cli.terminal.cells import row_of
from rota.cli.terminal.format import Columns, instant_cell
from rota.cli.verbs.looks import Reply, sentence, table
from rota.cli.verbs.verb_command import verb_command
from rota.client.access.tokens import TokensClient
from rota.core.access.roles import Token

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


def _state(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "valid"


_row = row_of(
    _COLUMNS,
    state=_state,
    expires=lambda token, now: instant_cell(token.expires_at, now) if token.expires_at else _NEVER,
    last_used=lambda token, now: token.used_at or _NEVER,
)


def _print_secret(reply: Reply) -> None:
    click.echo(reply.value.secret)
    click.echo("note: the token is not shown again; keep it like a password", err=True)


_command = partial(verb_command, "tokens")

for command in (
    _command(
        TokensClient.create,
        _print_secret,
        "rota token create grafana --role viewer --expires never",
        "rota token create shop --role enqueue --scope tenant/42",
        words="Create a token, and print it. It is not shown again.",
    ),
    _command(TokensClient.list, table(_COLUMNS, _row, _NONE), "rota token list", "rota token list --json"),
    _command(
        TokensClient.revoke,
        sentence("token {answer.name} ({answer.id}) is revoked, and its sessions have ended"),
        "rota token revoke grafana",
    ),
):
    token.add_command(command)
