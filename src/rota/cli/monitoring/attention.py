"""`rota attention`: what needs attention; snooze items and end snoozes."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import click

from rota.cli.options import Group, examples
from rota.cli.terminal.format import Cell, Columns, rfc3339, text_cell, visible
from rota.cli.terminal.output import emit, on_terminal
from rota.cli.verbs.looks import Reply, sentence, table
from rota.cli.verbs.verb_command import verb_command
from rota.client.monitoring.attention import AttentionClient
from rota.core.monitoring.attention import PROBLEM, Attention
from rota.values.durations import age, span

_COLUMNS = Columns(
    ("severity", "kind", "subject", "for", "text", "helps"),
    cut=("subject",),
    spare=("subject",),
    below=("text", "helps"),
)
_SYMBOLS = {PROBLEM: ("✗", "red")}


@click.group(
    cls=Group,
    invoke_without_command=True,
    epilog=examples(
        "rota attention                 exit code 1 if there is a problem",
        "rota attention snooze queue_unserved mail --length 2h --reason 'the relay is being moved'",
    ),
)
@click.pass_context
def attention(context: click.Context) -> int | None:
    """Show what needs attention, and snooze items of it.

    Without a command, it lists what is not snoozed.
    """
    if context.invoked_subcommand is not None:
        return None
    result: int | None = context.invoke(_list, **{param.name: None for param in _list.params if param.name})
    return result


def _row(item: Attention, now: datetime) -> list[Cell]:
    symbol, style = _SYMBOLS.get(item.severity, ("!", "yellow"))
    since = Cell("") if item.since is None else Cell(rfc3339(item.since), span(now - item.since))
    return [
        Cell(item.severity, f"{symbol} {item.severity}", style),
        text_cell(item.kind),
        text_cell(item.subject),
        since,
        Cell(_words(item)),
        text_cell(item.help),
    ]


def _words(item: Attention) -> str:
    """Return what is the matter, and who snoozed it."""
    if item.snoozed_until is None:
        return item.text
    by = f" by {item.snoozed_by}" if item.snoozed_by else ""
    why = f" ({item.snooze_reason})" if item.snooze_reason else ""
    return f"{item.text}; snoozed{by}{why} until {rfc3339(item.snoozed_until)}"


def _snoozed(reply: Reply) -> None:
    item = reply.value
    if on_terminal():
        back = f"it is back {age(item.snoozed_until, reply.now)}, or when it gets worse"
        emit(visible(f"{item.kind} {item.subject or ''} is snoozed; {back}"))
    else:
        emit(item.kind)


def _unsnoozed(reply: Reply) -> None:
    sentence("{kind} is not snoozed any more" if reply.value.was_snoozed else "{kind} was not snoozed")(reply)


_command = partial(verb_command, "attention")
_list = _command(
    AttentionClient.list,
    table(_COLUMNS, _row, "nothing needs attention"),
    "rota attention list",
    "rota attention list --snoozed",
    "rota attention list --kind run_slow --json",
    code=lambda reply: int(any(it.severity == PROBLEM and it.snoozed_until is None for it in reply.value)),
)
for command in (
    _list,
    _command(
        AttentionClient.snooze,
        _snoozed,
        "rota attention snooze run_slow 019c1a2b-7d1e-7c3a-9f00-5d1f3c2b1a00 --length 1h",
    ),
    _command(AttentionClient.unsnooze, _unsnoozed, "rota attention unsnooze queue_unserved mail"),
):
    attention.add_command(command)
