"""`rota job limit` and `rota queue limit`: set and clear a live limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import click

from rota.cli.terminal.format import Cell
from rota.cli.verbs.looks import Reply, sentence
from rota.cli.verbs.verb_command import VerbCommand, verb_command
from rota.cli.verbs.verb_options import Form
from rota.client.client import Client
from rota.client.limits.live import LiveLimitVerbs
from rota.core.jobs.queues import Queue
from rota.core.jobs.status import JobStatus
from rota.core.limits.live import LiveLimit, limit_options
from rota.errors import Invalid


def limit_cell(limit: LiveLimit | None) -> Cell:
    """Return a live limit in few words; an empty cell if there is none."""
    return Cell("") if limit is None else Cell(limit.words, limit.words, "yellow")


def _form(parameter: str) -> Form:
    """Return the form of a name and its limits: `NAME 5/s`, `NAME 3`, or `NAME --clear`."""

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        options = limit_options([part for word in values["limits"] for part in word.split(",")])
        if bool(options) == values["clear"]:
            raise Invalid("give a limit, or --clear", hint="5/s (a rate), 3 (runs at a time), or both")
        return {parameter: values["name"], **options, **({"clear": True} if values["clear"] else {})}

    def write(values: Sequence[Any]) -> Sequence[Any]:
        name, *limits = values
        return [name, [limit for limit in limits if limit is not None], None]

    params = [
        click.Argument(["name"], metavar="NAME"),
        click.Argument(["limits"], metavar="LIMIT...", nargs=-1),
        click.Option(["--clear"], is_flag=True, help="End the live limit."),
    ]
    return Form((parameter, "max_concurrency", "rate"), params, read, write)


async def _limit_job(client: Client, name: str, *, clear: bool = False, **options: Any) -> JobStatus:
    if not clear:
        return await client.limit_job(name, **options)
    await client.clear_job_limit(name, actor=options["actor"])
    return await client.job_status(name)


async def _limit_queue(client: Client, queue: str, *, clear: bool = False, **options: Any) -> Queue:
    if not clear:
        return await client.limit_queue(queue, **options)
    await client.clear_queue_limit(queue, actor=options["actor"])
    found = {each.queue: each for each in await _queues(client)}
    return found.get(queue) or Queue(queue)


async def _queues(client: Client) -> list[Queue]:
    queues: list[Queue] = []
    while page := await client.queues(limit=500, after=queues[-1].queue if queues else None):
        queues += page
        if len(page) < 500:
            break
    return queues


def _look(reply: Reply) -> None:
    limit = reply.value.live_limit
    words = "the live limit of {name} is cleared" if limit is None else f"{{name}} is limited to {limit.words}"
    sentence(words)(reply)


def _command(method: Callable[..., Any], parameter: str, act: Callable[..., Any], kind: str, name: str) -> VerbCommand:
    return verb_command(
        "",
        method,
        _look,
        f"rota {kind} limit {name} 5/s --for 2h --reason 'after the outage'",
        f"rota {kind} limit {name} 3",
        f"rota {kind} limit {name} --clear",
        name="limit",
        forms=(partial(_form, parameter),),
        settings={"lasts": {"metavar": "DURATION"}},
        act=act,
    )


JOB_LIMIT = _command(LiveLimitVerbs.limit_job, "name", _limit_job, "job", "crawl")
QUEUE_LIMIT = _command(LiveLimitVerbs.limit_queue, "queue", _limit_queue, "queue", "mail")
