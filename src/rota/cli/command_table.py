"""Commands below `rota`, imported at their first use: `rota --version` needs none of them, a command only itself."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from typing import NamedTuple

import click


class Home(NamedTuple):
    """Place of a command. `summary` is the first sentence of its help, which `rota --help` shows without importing it.

    `below` adds commands of other topics to a group, here, so that topics do not import each other.
    """

    module: str
    name: str
    summary: str
    below: tuple[tuple[str, str], ...] = ()

    def load(self) -> click.Command:
        command: click.Command = getattr(importlib.import_module(self.module), self.name)
        for module, name in self.below:
            assert isinstance(command, click.Group)
            loaded = getattr(importlib.import_module(module), name)
            for lower in (loaded,) if isinstance(loaded, click.Command) else loaded:
                command.add_command(lower)
        return command


HOMES = {
    "init": Home("rota.cli.servers.init", "init", "Write a first application and its settings."),
    "dev": Home("rota.cli.servers.server", "dev", "Run the server, its dashboard and a worker in one process."),
    "server": Home("rota.cli.servers.server", "server", "Run the API and the dashboard, without a worker."),
    "worker": Home("rota.cli.servers.worker", "worker", "Run a worker for the jobs of an app."),
    "top": Home("rota.cli.top.top", "top", "Show runs, failures, errors, queues and workers, live."),
    "migrate": Home("rota.cli.admin.maintenance", "migrate", "Create or update the tables of the database."),
    "promote": Home("rota.cli.admin.promote", "promote", "Move everything from an SQLite file to PostgreSQL."),
    "run": Home(
        "rota.cli.runs.runs",
        "run",
        "Enqueue, list, show, watch, cancel and retry runs.",
        below=(("rota.cli.monitoring.audit", "events"), ("rota.cli.external.external", "COMMANDS")),
    ),
    "schedule": Home(
        "rota.cli.schedules.schedules",
        "schedule",
        "Create, list, pause, trigger and simulate schedules.",
        below=(("rota.cli.monitoring.audit", "schedule_events"),),
    ),
    "job": Home("rota.cli.jobs.jobs", "job", "List, show, pause, cancel and retry jobs; create data jobs."),
    "queue": Home("rota.cli.jobs.queues", "queue", "List, pause, resume and limit queues."),
    "quota": Home("rota.cli.limits.quotas", "quota", "List, set and delete quotas of scopes."),
    "scope": Home("rota.cli.limits.quotas", "scope", "Pause and resume scopes: the runs of a tenant, over all jobs."),
    "workers": Home("rota.cli.workers.workers", "workers", "List, drain, resume, stop and reconfigure workers."),
    "token": Home("rota.cli.admin.tokens", "token", "Create, list and revoke API tokens."),
    "expectation": Home(
        "rota.cli.alerts.expectations", "expectation", "List, set and delete expectations of jobs and schedules."
    ),
    "error-groups": Home("rota.cli.monitoring.error_groups", "error_groups", "List failed runs, grouped by error."),
    "notification": Home(
        "rota.cli.alerts.notifications", "notification", "List, create, delete and test notifications."
    ),
    "explain": Home(
        "rota.cli.monitoring.explain", "explain", "Explain a run's state, or why a plan time ran or did not."
    ),
    "audit": Home("rota.cli.monitoring.audit", "audit", "List what people and policies did, newest first."),
    "attention": Home(
        "rota.cli.monitoring.attention", "attention", "Show what needs attention, and snooze items of it."
    ),
    "upcoming": Home(
        "rota.cli.monitoring.next_runs", "upcoming", "Show what is to begin within the next hour, or another period."
    ),
    "cron": Home("rota.cli.schedules.cron", "cron", "Describe a cron expression, and list its next times."),
    "import": Home("rota.cli.schedules.import_from", "import_group", "Import schedules of other schedulers."),
    "export": Home("rota.cli.admin.export", "export", "Print all runs, attempts or events as JSON lines."),
    "purge": Home(
        "rota.cli.runs.run_control",
        "purge",
        "Delete runs that have ended and match filters, now, whatever their job's retention says.",
    ),
    "database": Home(
        "rota.cli.admin.database", "database", "Show the standing of the database, and accept a restored one."
    ),
    "mcp": Home(
        "rota.cli.mcp.mcp", "mcp", "Serve rota's verbs to an agent, by the Model Context Protocol on stdin and stdout."
    ),
    "prune": Home("rota.cli.admin.maintenance", "prune", "Delete finished runs after their retention time."),
    "doctor": Home("rota.cli.admin.doctor", "doctor", "Check the installation for problems."),
    "completion": Home("rota.cli.admin.maintenance", "completion", "Print a completion script for your shell."),
}


class CommandTable(MutableMapping[str, click.Command]):
    """Commands by name. Their names and summaries are known at once; a command is imported when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}
        self._homes = dict(HOMES)

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            command = self._loaded[name] = self._homes[name].load()
            # Imported late, too: it needs the client, and the help of `rota` does not.
            importlib.import_module("rota.cli.shell_completion").add_completion(command, (name,))
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        self._loaded.pop(name, None)
        self._homes.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter({**self._homes, **self._loaded})

    def __len__(self) -> int:
        return len({*self._homes, *self._loaded})

    def short_help(self, name: str, width: int) -> str:
        """Return a command's line in the help of `rota`, without importing the command."""
        home = self._homes.get(name)
        command = self._loaded[name] if home is None else click.Command(name, help=home.summary)
        return command.get_short_help_str(width)
