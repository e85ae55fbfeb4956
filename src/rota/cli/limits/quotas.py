"""`rota quota`: limits of a scope, over all jobs."""

from __future__ import annotations

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, examples, shared
from rota.cli.terminal.format import Cell, Columns, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_json, print_rows
from rota.core.limits.quotas import QuotaOf

_COLUMNS = Columns(("scope", "max_concurrency", "max_queued", "rate", "owner"), cut=("scope", "owner"))

scope = click.argument("scope", metavar="KIND[/ID]")


@click.group(cls=Group, epilog=examples("rota quota update tenant/42 --max-concurrency 3", "rota quota list"))
def quota() -> None:
    """List, set and delete quotas of scopes.

    A quota limits the runs of a scope over all jobs: running, queued, and started within a time. KIND/ID is one scope;
    KIND is every scope of that kind that has no quota of its own.
    """


@quota.command("list", epilog=examples("rota quota list", "rota quota list --json"))
@shared
def list_quotas(database: str | None, as_json: bool) -> None:
    """List quotas."""
    quotas = ask(database, lambda client: client.quotas.list())
    if as_json:
        print_json({"items": quotas, "next_cursor": None})
        return
    print_rows(_COLUMNS, [_row(quota) for quota in quotas], none="no quotas: set one with `rota quota update KIND/ID`")


@quota.command(
    "update",
    epilog=examples(
        "rota quota update tenant --max-concurrency 5", "rota quota update tenant/42 --rate 1000/1h --max-queued 100"
    ),
)
@scope
@click.option("--max-concurrency", type=int, metavar="N", help="Runs at a time.")
@click.option("--max-queued", type=int, metavar="N", help="Runs that may wait; a further one is refused.")
@click.option("--rate", metavar="N/DURATION", help='Attempts that may start within any such time: "1000/1h".')
@shared
def update_quota(
    scope: str,
    max_concurrency: int | None,
    max_queued: int | None,
    rate: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Set a quota; it replaces the previous one.

    It applies to queued and running runs, too. From then on, declarations in code do not change it.
    """
    kind, id = _kind_and_id(scope)
    quota = ask(
        database,
        lambda client: client.quotas.update(
            kind, id, max_concurrency=max_concurrency, max_queued=max_queued, rate=rate, actor=actor()
        ),
    )
    if as_json:
        print_json(quota)
    elif on_terminal():
        emit(f"the quota of {scope} is set")


@quota.command("delete", epilog=examples("rota quota delete tenant/42"))
@scope
@shared
def delete_quota(scope: str, database: str | None, as_json: bool) -> None:
    """Delete a quota.

    Its runs are then unlimited, or under the quota of their kind. A quota that code declares comes back when the app
    starts again.
    """
    kind, id = _kind_and_id(scope)
    ask(database, lambda client: client.quotas.delete(kind, id, actor=actor()))
    if as_json:
        print_json({"kind": kind, "id": id, "dropped": True})
    elif on_terminal():
        emit(f"the quota of {scope} is deleted")


def _kind_and_id(scope: str) -> tuple[str, str | None]:
    kind, slash, id = scope.partition("/")
    return kind, id if slash else None


def _row(quota: QuotaOf) -> list[Cell]:
    name = quota.kind if quota.id is None else f"{quota.kind}/{quota.id}"
    return [text_cell(fact) for fact in (name, quota.max_concurrency, quota.max_queued, quota.rate, quota.owner)]
