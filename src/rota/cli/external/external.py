"""`rota run complete|fail`: report the result of an external run, with its fence as proof."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rota.cli.terminal.run_format import print_run
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.verb_command import VerbCommand, verb_command
from rota.client.client import Client
from rota.client.external.external import ExternalClient
from rota.core.runs.dependencies import is_whole
from rota.core.runs.run import Run

_SETTINGS = {"fence": {"help": "The run's fence, shown by `rota run get ID`."}}


def _command(method: Callable[..., Awaitable[Any]], *lines: str, words: str) -> VerbCommand:
    async def act(client: Client, run_id: str, **told: Any) -> Any:
        whole = run_id if is_whole(run_id) else (await client.get(run_id)).id
        return await getattr(client.external, method.__name__)(whole, **told)

    about = f"{words}\n\nID is a run's id, or a unique beginning or end of it. Repeating the command changes nothing."
    return verb_command("external", method, _show, *lines, words=about, settings=_SETTINGS, act=act, also=_run)


async def _run(client: Client, _: object, arguments: Mapping[str, Any]) -> Run:
    return await client.get(arguments["run_id"])


def _show(reply: Reply) -> None:
    print_run(reply.also, as_json=False)


COMMANDS = (
    _command(
        ExternalClient.complete,
        "rota run complete b3e52e11 --fence 3 --result '{\"labels\": 12}'",
        "rota run complete b3e52e11 --fence 3 --json",
        words="Complete an external run or step.",
    ),
    _command(
        ExternalClient.fail,
        "rota run fail b3e52e11 --fence 3 --error 'the scanner jammed'",
        "rota run fail b3e52e11 --fence 3 --error 'not one of ours' --no-retry",
        "rota run fail b3e52e11 --fence 3 --error 'closed until noon' --after 3h --json",
        words="Fail an external run; it is retried as its job says.",
    ),
)
