"""`rota migrate`, `rota prune`, `rota completion`: maintenance of an installation."""

from __future__ import annotations

import asyncio

import click

from rota.cli.connect import ask, require_database, require_existing, without_password
from rota.cli.options import examples, shared
from rota.cli.terminal.format import visible
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.config import Config, load_config
from rota.store import Store, open_database
from rota.store.schema.migrate import check as versions_of
from rota.store.schema.migrate import oldest_served

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        "rota migrate --database postgresql://rota@db/rota",
        "rota migrate --check     in a deploy script: exit code 78 if a migration is needed",
    )
)
@click.option("--check", is_flag=True, help="Change nothing; exit code 78 if this version cannot use the tables.")
@click.option("--force", is_flag=True, help="Stop live workers that are too old, then migrate.")
@shared
def migrate(check: bool, force: bool, database: str | None, as_json: bool) -> None:
    """Create or update the tables of the database.

    It is safe while workers run, and from several machines at once. After an interruption, run it again: it continues.
    Older versions of rota keep working as long as the new tables support them; if live workers would be too old, it is
    refused. An SQLite file is migrated by every program that opens it.
    """
    require_database(database)
    config = load_config({"database_url": database})
    if check:
        require_existing(config.database_url)
    applied, version, serves = asyncio.run(_migrated(config, check=check, force=force))
    if as_json:
        print_json({"applied": applied, "version": version, "serves": serves})
        return
    if applied:
        emit("\n".join(applied))
    if on_terminal():
        older = f"; programs for schema {serves} and newer can use it" if serves < version else ""
        emit(f"{visible(without_password(config.database_url))} is up to date, at schema {version}{older}")


async def _migrated(config: Config, *, check: bool, force: bool) -> tuple[list[str], int, int]:
    store = Store(open_database(config.database_url, deadline=config.deadline))
    try:
        applied = [] if check else await store.migrate(force=force)
        await store.require_schema()
        version, _ = await versions_of(store.database)
        return applied, version, await oldest_served(store.database)
    finally:
        await store.close()


@click.command(epilog=examples("rota prune", "rota prune --json"))
@shared
def prune(database: str | None, as_json: bool) -> None:
    """Delete finished runs after their retention time.

    Workers and servers do this every few minutes.
    """
    count = ask(require_database(database), lambda client: client.prune())
    if as_json:
        print_json({"pruned": count})
    else:
        emit(f"pruned {count} run{'' if count == 1 else 's'}" if on_terminal() else str(count))


@click.command(
    epilog=examples(
        'eval "$(rota completion bash)"                                in ~/.bashrc',
        'eval "$(rota completion zsh)"                                 in ~/.zshrc',
        "rota completion fish > ~/.config/fish/completions/rota.fish",
    )
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Print a completion script for your shell.

    It completes commands, options, names and ids.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "rota", "_ROTA_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        emit(script)
