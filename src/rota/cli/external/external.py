"""`rota run complete|fail`: report the result of an external run, with its fence as proof."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.options import examples, shared
from rota.cli.terminal.run_format import print_run
from rota.client.client import Client
from rota.core.runs.run import Run
from rota.errors import BadPayload, Invalid
from rota.values import json
from rota.values.json import Limits

_fence = click.option(
    "--fence", type=int, required=True, metavar="N", help="The run's fence, shown by `rota run get ID`."
)


@click.command(
    epilog=examples(
        "rota run complete b3e52e11 --fence 3 --result '{\"labels\": 12}'",
        "rota run complete b3e52e11 --fence 3 --json",
    )
)
@click.argument("id")
@_fence
@click.option("--result", metavar="JSON", help="The result.")
@shared
def complete(id: str, fence: int, result: str | None, database: str | None, as_json: bool) -> None:
    """Complete an external run or step.

    ID is a run's id, or a unique beginning or end of it. Repeating the command changes nothing.
    """

    async def act(client: Client, run_id: str) -> object:
        value = None if result is None else _json(result, Limits(client.config.max_payload))
        return await client.external.complete(run_id, fence, value)

    print_run(ask(database, lambda client: _report(client, id, act)), as_json=as_json)


@click.command(
    epilog=examples(
        "rota run fail b3e52e11 --fence 3 --error 'the scanner jammed'",
        "rota run fail b3e52e11 --fence 3 --error 'not one of ours' --no-retry",
        "rota run fail b3e52e11 --fence 3 --error 'closed until noon' --after 3h --json",
    )
)
@click.argument("id")
@_fence
@click.option("--error", required=True, metavar="TEXT", help="What went wrong.")
@click.option("--no-retry", is_flag=True, help="Do not retry the run.")
@click.option("--after", metavar="DURATION", help='Retry after this long: "90s", "3h".')
@shared
def fail(id: str, fence: int, error: str, database: str | None, as_json: bool, **how: Any) -> None:
    """Fail an external run; it is retried as its job says.

    ID is a run's id, or a unique beginning or end of it. Repeating the command changes nothing.
    """
    retry, after = not how["no_retry"], how["after"]

    async def act(client: Client, run_id: str) -> object:
        return await client.external.fail(run_id, fence, error, retry=retry, after=after)

    print_run(ask(database, lambda client: _report(client, id, act)), as_json=as_json)


async def _report(client: Client, id: str, act: Callable[[Client, str], Awaitable[object]]) -> Run:
    run = await client.get(id)
    await act(client, run.id)
    return await client.get(run.id)


def _json(text: str, limits: Limits) -> Any:
    try:
        return json.decode(text, limits)
    except BadPayload as error:
        raise Invalid(f"--result is not JSON: {error.problem}", hint="use single quotes") from None


COMMANDS = (complete, fail)
