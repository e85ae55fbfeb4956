"""`rota quota`: limits of a scope, over all jobs."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import click

from rota.cli.options import Group, examples
from rota.cli.terminal.cells import facts_of, row_of, yes_cell
from rota.cli.terminal.format import Columns
from rota.cli.verbs.looks import Reply, facts, sentence, table
from rota.cli.verbs.verb_command import verb_command
from rota.cli.verbs.verb_options import scope_form
from rota.client.limits.quotas import QuotasClient
from rota.core.limits.quotas import QuotaOf
from rota.values.scope import Scope, scope_text

_COLUMNS = Columns(("scope", "max_concurrency", "max_queued", "rate", "owner", "paused"), cut=("scope", "owner"))


@click.group(cls=Group, epilog=examples("rota quota update tenant/42 --max-concurrency 3", "rota quota list"))
def quota() -> None:
    """List, set and delete quotas of scopes.

    A quota limits the runs of a scope over all jobs: running, queued, and started within a time. KIND/ID is one scope;
    KIND is every scope of that kind that has no quota of its own.
    """


def _name(quota: QuotaOf, _: datetime) -> str:
    return quota.kind if quota.id is None else scope_text(Scope(quota.kind, quota.id))


_row = row_of(_COLUMNS, scope=_name, paused=lambda quota, _: yes_cell(quota.paused, "yellow"))
_facts = facts_of(" ".join(_COLUMNS.titles), scope=_name, paused=lambda quota, _: yes_cell(quota.paused, "yellow"))
_command = partial(verb_command, "quotas")
_of_scope = partial(_command, forms=(scope_form,), settings={"rate": {"metavar": "N/DURATION"}})

for command in (
    _command(
        QuotasClient.list,
        table(_COLUMNS, _row, "no quotas: set one with `rota quota update KIND/ID`"),
        "rota quota list",
        "rota quota list --json",
    ),
    _of_scope(
        QuotasClient.get,
        facts(_facts),
        "rota quota get tenant/42",
        "rota quota get tenant --json",
    ),
    _of_scope(
        QuotasClient.update,
        sentence("the quota of {scope} is set"),
        "rota quota update tenant --max-concurrency 5",
        "rota quota update tenant/42 --rate 1000/1h --max-queued 100",
    ),
    _of_scope(QuotasClient.delete, sentence("the quota of {scope} is deleted"), "rota quota delete tenant/42"),
):
    quota.add_command(command)


@click.group(cls=Group, epilog=examples("rota scope pause tenant/42 --reason 'their database moves'"))
def scope() -> None:
    """Pause and resume scopes: the runs of a tenant, over all jobs."""


def _resumed(reply: Reply) -> None:
    sentence("{scope} is resumed" if reply.value.was_paused else "{scope} was not paused")(reply)


_of_one = partial(_command, forms=(partial(scope_form, "KIND/ID"),))

for command in (
    _of_one(QuotasClient.pause, sentence("{scope} is paused"), "rota scope pause tenant/42"),
    _of_one(QuotasClient.resume, _resumed, "rota scope resume tenant/42"),
):
    scope.add_command(command)
