"""Shell completion of names and ids, read from the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import click
from click.shell_completion import CompletionItem

from rota.cli.connect import ask
from rota.cli.verbs.verb_command import VerbCommand
from rota.client.client import MOST_LISTED, Client

Offer = list[tuple[str, str]]
"""Completions: words, each with a description that some shells show."""
_PATIENCE = 2.0
_MOST_RUNS = 30
_HARMLESS = "@%+=:,./_-"
"""Characters besides letters and digits that no shell interprets."""


async def _jobs(client: Client) -> Offer:
    return [(job.name, job.description or "") for job in await client.jobs(limit=MOST_LISTED)]


async def _schedules(client: Client) -> Offer:
    return [(schedule.name, schedule.definition.job) for schedule in await client.schedules.list(limit=MOST_LISTED)]


async def _queues(client: Client) -> Offer:
    return [(queue.queue, "") for queue in await client.queues(limit=MOST_LISTED)]


async def _workers(client: Client) -> Offer:
    return [(worker.id, worker.state.value) for worker in await client.workers.list()]


async def _runs(client: Client) -> Offer:
    """Return the newest runs: nobody types the id of an old one."""
    return [(run.id, f"{run.state.value} {run.job}") for run in (await client.page(limit=_MOST_RUNS)).runs]


async def _notifications(client: Client) -> Offer:
    return [(notification.name, "") for notification in await client.notifications.list()]


async def _tokens(client: Client) -> Offer:
    return [(token.name, token.role.value) for token in await client.tokens.list()]


_EVERYWHERE = {
    "--job": _jobs, "--queue": _queues, "--schedule": _schedules, "--worker": _workers, "--parent": _runs,
    "--name": _jobs, "job": _jobs, "id": _runs,
}  # fmt: skip
_BELOW = {
    ("job", "name"): _jobs,
    ("schedule", "name"): _schedules,
    ("queue", "name"): _queues,
    ("workers", "id"): _workers,
    ("notification", "name"): _notifications,
    ("token", "id"): _tokens,
    ("explain", "subject"): _schedules,
}
_NEW = {("job", "create"), ("schedule", "create"), ("token", "create"), ("notification", "create")}


class CompletedName(click.types.StringParamType):
    """A text parameter that is completed from the database."""

    def __init__(self, offer: Callable[[Client], Awaitable[Offer]]) -> None:
        self._offer = offer

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return completions; none after an error, because a half-typed line has no place for a message."""
        try:
            with ctx.scope(cleanup=False):
                words = ask(ctx.params.get("database"), self._offer, within=_PATIENCE)
        except Exception:
            return []
        fitting = [
            (word, description) for word, description in words if word.startswith(incomplete) and _is_harmless(word)
        ]
        return [CompletionItem(word, help=_one_line(description)) for word, description in fitting]


def _is_harmless(word: str) -> bool:
    """Return whether a shell takes the word literally: some insert it unquoted, and a name may be `$(…)`."""
    return word[:1] != "-" and all(char.isalnum() or char in _HARMLESS for char in word)


def _one_line(description: str) -> str | None:
    """Return the description as one line, because shells read one completion per line."""
    line = " ".join(description.split())
    return line if line.isprintable() and line else None


def add_completion(command: click.Command, path: tuple[str, ...] = ()) -> None:
    """Complete every parameter below that takes a name or an id, chosen by the parameter's name."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            add_completion(below, (*path, name))
    elif isinstance(command, VerbCommand):
        command.when_made = partial(_complete, path)
    else:
        _complete(path, command)


def _complete(path: tuple[str, ...], command: click.Command) -> None:
    for param in command.params:
        offer = _offer_for(param, path)
        if offer is not None and param.type is click.STRING:
            param.type = CompletedName(offer)


def _offer_for(param: click.Parameter, path: tuple[str, ...]) -> Callable[[Client], Awaitable[Offer]] | None:
    if isinstance(param, click.Argument):
        if param.name == "name" and path in _NEW:
            return None
        return _BELOW.get((path[0], param.name or "")) or _EVERYWHERE.get(param.name or "")
    return next((_EVERYWHERE[word] for word in param.opts if word in _EVERYWHERE), None)
