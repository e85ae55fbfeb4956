"""The reference of the command line: every command as click knows it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from rota.cli import EXIT_CODES, root
from tools.reference.settings import row, table


def page() -> str:
    lines = [
        "# Commands",
        "",
        "What `--help` of each command says; [the guide](../cli.md) has what they have in common.",
    ]
    lines += ["", "## Exit codes", "", *table("code", "means")]
    lines += [row(code, words) for code, words in re.findall(r"^  (\d+) +(.*)$", EXIT_CODES, re.MULTILINE)]
    context = click.Context(root, info_name="rota")
    lines += ["", "## rota", "", *body(root, context)]
    for _, group in commands(root, context):
        lines += ["", f"## {group.command_path}", "", *body(group.command, group)]
        for _, inner in commands(group.command, group):
            lines += ["", f"### {inner.command_path}", "", *body(inner.command, inner)]
    return "\n".join(lines)


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Context]]:
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield name, click.Context(command.commands[name], info_name=name, parent=context)


def body(command: click.Command, context: click.Context) -> list[str]:
    pieces = " ".join(command.collect_usage_pieces(context))
    lines = ["```text", f"{context.command_path} {pieces}", "```", "", *paragraphs(command.help or "")]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if options:
        lines += ["", *table("option", "means"), *(option(one, context) for one in options)]
    shown = examples(command)
    return [*lines, "", "```sh", *shown, "```"] if shown else lines


def paragraphs(text: str) -> list[str]:
    """As Markdown: what click is told not to wrap stays as it is."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            lines += ["```text", *paragraph.splitlines()[1:], "```", ""]
        else:
            lines += [*paragraph.splitlines(), ""]
    return lines[:-1]


def option(one: click.Option, context: click.Context) -> str:
    names, words = one.get_help_record(context) or ("", "")
    if isinstance(one.type, click.Choice):
        names = re.sub(r" \[.*\]$", "", names)
        words = f"{', '.join(f'`{choice}`' for choice in one.type.choices)}: {words}"
    return row(f"`{names}`".replace("|", "\\|"), " ".join(words.split()).replace("|", "\\|"))


def examples(command: click.Command) -> list[str]:
    _, _, shown = (command.epilog or "").partition("Examples:")
    lines = inspect.cleandoc(shown.partition("\n\n")[0].strip("\n")).splitlines()
    return [re.sub(r"(?<=\S) {2,}(?=\S)", "  # ", line.strip(), count=1) for line in lines if line.strip()]
