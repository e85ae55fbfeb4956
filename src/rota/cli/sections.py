"""`rota --help`: commands by what they are for, those that come first in somebody's day first."""

from __future__ import annotations

import click

_SECTIONS = {
    "To begin": ("init", "dev"),
    "Programs that stay": ("server", "worker"),
    "What goes on": ("top", "run", "errors", "explain"),
    "What is to be done": ("job", "schedule", "queue", "quota", "cron", "import"),
    "Who does it": ("workers",),
    "Who is told, and who may": ("expect", "notify", "token", "audit"),
    "Upkeep": ("migrate", "promote", "doctor", "prune", "export", "completion"),
}
_OTHER = "Other commands"
_INDENT = 6


def sections_of(names: list[str]) -> dict[str, list[str]]:
    """Every name once; those that nobody put anywhere come last."""
    placed = {title: [name for name in wanted if name in names] for title, wanted in _SECTIONS.items()}
    known = {name for wanted in placed.values() for name in wanted}
    placed[_OTHER] = [name for name in names if name not in known]
    return {title: wanted for title, wanted in placed.items() if wanted}


def write_sections(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """In all of them the words begin in the same column."""
    widest = max(len(name) for name in group.commands)
    room = formatter.width - _INDENT - widest
    for title, names in sections_of(group.list_commands(context)).items():
        with formatter.section(title):
            formatter.write_dl(
                [(name.ljust(widest), group.commands[name].get_short_help_str(room)) for name in names], col_spacing=2
            )
