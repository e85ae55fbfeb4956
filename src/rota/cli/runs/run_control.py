"""`rota run count|cancel|retry|restrict`, `rota purge`: one run by its id, or all that match filters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import click

from rota.cli.connect import actor, ask
from rota.cli.options import examples, idempotency_option, shared
from rota.cli.runs.filter_form import filter_form
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.cli.terminal.run_format import print_new_run, print_run
from rota.cli.terminal.wait import ProgressLine, finish, wait_for_run, wait_timeout_option
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.run_filter import filter_of, filters
from rota.cli.verbs.verb_command import carries_out, verb_command
from rota.cli.verbs.verb_options import Form, json_in
from rota.client.client import Client
from rota.client.runs.runs import RunVerbs
from rota.core.runs.bulk import BulkResult, Counted, Purged, to_cancel, to_retry
from rota.core.runs.run import Run, RunFilter
from rota.errors import Conflict, Invalid
from rota.values.sizes import format_size

Act = Callable[..., Awaitable[BulkResult]]

_everything = click.option("--all", "everything", is_flag=True, help="All runs, without any filter.")


@carries_out(RunVerbs.cancel)
@click.command(
    epilog=examples(
        "rota run cancel b3e52e11 --reason 'wrong url'",
        "rota run cancel --job crawl --state queued,scheduled",
        "rota run cancel --tag nightly --created-before 2026-01-31T08:00:00Z --yes --json",
    )
)
@click.argument("id", required=False)
@filters
@_everything
@click.option("--reason", metavar="TEXT", help="Stored with the run.")
@yes_option
@shared
def cancel(id: str | None, database: str | None, as_json: bool, reason: str | None, **options: Any) -> int:
    """Cancel a run, or all runs that match filters.

    Waiting runs end at once; the workers of running ones are asked to stop. ID is a run's id, or a unique beginning or
    end of it. With filters instead, the command counts the matching runs that have not ended, and asks. It can be
    repeated after an interruption.
    """
    yes, everything, run_filter = _selection(id, options)
    if id is not None:
        cancelled = ask(database, lambda client: client.cancel(id, reason=reason, actor=actor()))
        print_run(cancelled, as_json=as_json)
        return 0
    many = _BulkCommand("cancel", "cancelled", database, to_cancel(run_filter, everything=everything))

    async def act(client: Client, **how: Any) -> BulkResult:
        return await client.cancel_many(run_filter, reason=reason, actor=actor(), everything=everything, **how)

    return many.done(act, yes=yes, as_json=as_json)


@carries_out(RunVerbs.retry, payload="new_payload")
@click.command(
    epilog=examples(
        "rota run retry b3e52e11 --wait",
        "rota run retry b3e52e11 --from-step parse",
        """rota run retry b3e52e11 --new-payload '{"url": "https://example.com"}'""",
        "rota run retry --job crawl --error 'ConnectionError'",
        "rota run retry --state failed --created-after 2026-01-31T08:00:00Z --yes --json",
    )
)
@click.argument("id", required=False)
@filters
@_everything
@click.option("--keep-steps", is_flag=True, help="Do not repeat steps that are done.")
@click.option(
    "--from-step", metavar="STEP", help="Repeat this step and later ones; keep the earlier ones that are done."
)
@click.option(
    "--new-payload",
    type=json_in,
    metavar="JSON",
    help="Payload of the new run, instead of the old one's. Secrets that are masked in it stay as they were.",
)
@idempotency_option
@click.option("--wait", "waiting", is_flag=True, help="Wait for the new run's end.")
@wait_timeout_option
@yes_option
@shared
def retry(
    id: str | None, database: str | None, as_json: bool, waiting: bool, wait_timeout: str | None, **options: Any
) -> int:
    """Retry a finished run as a new run, or all that match filters.

    ID is a run's id, or a unique beginning or end of it. With filters instead, the command counts the matching runs,
    and asks. These are runs that failed, timed out, expired or were cancelled, unless --state says otherwise, and that
    have not been retried yet: so the command can be repeated after an interruption.
    """
    waiting = waiting or wait_timeout is not None
    how = {name: options.pop(name) for name in ("keep_steps", "from_step", "new_payload", "idempotency_key")}
    if how["keep_steps"] and how["from_step"]:
        raise click.UsageError("--keep-steps or --from-step, not both")
    yes, everything, run_filter = _selection(id, options)
    if id is not None:
        again = ask(database, lambda client: _retry_one(client, id, waiting, wait_timeout, **how))
        if waiting:
            return finish(again, as_json=as_json)
        print_new_run(again, as_json=as_json)
        return 0
    if waiting or any(value not in (None, False) for value in how.values()):
        words = "--wait, --keep-steps, --from-step, --new-payload and --idempotency-key are for one run only"
        raise Invalid(words, hint="give its id")
    many = _BulkCommand("retry", "retried", database, to_retry(run_filter, everything=everything))

    async def act(client: Client, **how: Any) -> BulkResult:
        return await client.retry_many(run_filter, actor=actor(), everything=everything, **how)

    return many.done(act, yes=yes, as_json=as_json)


@carries_out(RunVerbs.purge)
@click.command(
    epilog=examples(
        "rota purge --state succeeded --older-than 7d",
        "rota purge --job crawl --queue slow --scope tenant/42 --dry-run",
        "rota purge --older-than 30d --yes --json",
    )
)
@filters
@_everything
@click.option("--older-than", metavar="DURATION", help="Only runs that ended longer ago: 7d, 12h.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@yes_option
@shared
def purge(
    database: str | None,
    as_json: bool,
    older_than: str | None,
    dry_run: bool,
    yes: bool,
    everything: bool,
    **options: Any,
) -> int:
    """Delete runs that have ended and match filters, now, whatever their job's retention says.

    It counts them first, and asks. Runs that are still needed stay: those that live runs depend on, that keys lead to,
    that schedules continue from, and the newest success of each job. Statistics and ledgers keep what counts. It can be
    repeated after an interruption.
    """
    run_filter = filter_of(options)
    if run_filter == RunFilter() and older_than is None and not everything:
        raise Invalid("which runs?", hint="give --older-than 7d, a filter such as --job NAME, or --all")

    def purged(client: Client, **how: Any) -> Awaitable[Purged]:
        return client.purge(run_filter, older_than=older_than, everything=everything, actor=actor(), **how)

    expected = None
    if dry_run or not yes:
        counted = ask(database, lambda client: purged(client, dry_run=True))
        if dry_run:
            _tell_purged(counted, "would be deleted", as_json=as_json)
            return 0
        expected = counted.matched
        if counted.done:
            kept = counted.matched - counted.done
            others = f" ({_grouped(kept)} more are still needed, and stay)" if kept else ""
            require_consent(f"delete {_grouped(counted.done)} runs{others}?", command="rota purge …")
    with ProgressLine() as line:

        def show(result: BulkResult) -> None:
            line.show(f"deleted {_grouped(result.handled)} of {_grouped(result.matched)}")

        result = ask(database, lambda client: purged(client, expected=expected, progress=show))
    _tell_purged(result, "deleted", as_json=as_json)
    return 0


def _tell_purged(result: Purged, participle: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    runs = "run" if result.done == 1 else "runs"
    emit(f"{_grouped(result.done)} {runs} {participle}" if on_terminal() else str(result.done))
    for refused in result.refused:
        click.echo(f"note: {_grouped(refused.count)} {refused.message}", err=True)
    free = "" if result.reusable_bytes is None else f"{format_size(result.reusable_bytes)} of the file are free: "
    click.echo(f"note: {free}{result.advice}", err=True)


async def _retry_one(
    client: Client, id: str, waiting: bool, wait_timeout: str | None, *, new_payload: Any, **how: Any
) -> Run:
    run = await client.retry(id, payload=new_payload, actor=actor(), **how)
    return await wait_for_run(client, run.id, wait_timeout) if waiting else run


def _selection(id: str | None, options: dict[str, Any]) -> tuple[bool, bool, RunFilter]:
    """Return --yes, --all and the filter. An id and a filter exclude each other."""
    yes, everything = options.pop("yes"), options.pop("everything")
    run_filter = filter_of(options)
    narrow = run_filter != RunFilter()
    if id is not None and (narrow or everything):
        raise Invalid("give an id, or a filter, not both")
    if id is None and not narrow and not everything:
        raise Invalid("which run?", hint="give an id, a filter such as --job NAME, or --all")
    if narrow and everything:
        raise Invalid("give --all or a filter, not both")
    return yes, everything, run_filter


class _BulkCommand:
    """A command for all runs that match: count them, ask, act, and report."""

    def __init__(self, verb: str, participle: str, database: str | None, chosen: RunFilter) -> None:
        self._verb = verb
        self._participle = participle
        self._database = database
        self._chosen = chosen

    def done(self, act: Act, *, yes: bool, as_json: bool) -> int:
        expected = None if yes else self._ask_first()
        with ProgressLine() as line:

            def show(result: BulkResult) -> None:
                line.show(f"{self._participle} {_grouped(result.handled)} of {_grouped(result.matched)}")

            result = ask(self._database, lambda client: act(client, expected=expected, progress=show))
        self._tell(result, as_json=as_json)
        return Conflict.exit_code if result.refused and not result.done else 0

    def _ask_first(self) -> int | None:
        """Ask for consent. Return how many runs the question named; None if they were too many to count."""
        counted = ask(self._database, lambda client: client.count(self._chosen))
        if counted.count or not counted.exact:
            of = f" of {self._chosen.job}" if self._chosen.job else ""
            runs = "run" if counted.count == 1 else "runs"
            require_consent(f"{self._verb} {_number(counted)} {runs}{of}?", command=f"rota run {self._verb} …")
        return counted.count if counted.exact else None

    def _tell(self, result: BulkResult, *, as_json: bool) -> None:
        if as_json:
            print_json(result)
            return
        runs = "run" if result.done == 1 else "runs"
        emit(f"{self._participle} {_grouped(result.done)} {runs}" if on_terminal() else str(result.done))
        for refused in result.refused:
            click.echo(f"note: {_grouped(refused.count)} not {self._participle}: {refused.message}", err=True)


def _number(counted: Counted) -> str:
    return _grouped(counted.count) if counted.exact else f"at least {_grouped(counted.count)}"


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _count(reply: Reply) -> None:
    counted: Counted = reply.value
    emit(_number(counted) if on_terminal() else str(counted.count))
    if not counted.exact and not on_terminal():
        click.echo("note: there may be more; --most raises the limit", err=True)


def _workers_form() -> Form:
    """Return the form of `only_workers`: their names, or --anyone."""

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        names = values["only_workers"]
        if (names is None) is not values["anyone"]:
            raise click.UsageError("give --only-workers or --anyone, one of them")
        return {"only_workers": names}

    def write(values: Sequence[Any]) -> Sequence[Any]:
        (names,) = values
        typed = None if names is None else ",".join(names) or ("," if names else "")
        return [typed, True if names is None else None]

    only = click.Option(
        ["--only-workers"],
        type=lambda text: [name.strip() for name in text.split(",")] if text.strip() else [],
        metavar="A,B",
        help="Names of the workers that may run it.",
    )
    anyone = click.Option(["--anyone"], is_flag=True, help="Remove the restriction.")
    return Form(("only_workers",), [only, anyone], read, write)


count = verb_command(
    "",
    RunVerbs.count,
    _count,
    "rota run count --state queued --job crawl",
    "rota run count --state failed --json",
    words="Count the runs that match filters.",
    forms=(filter_form,),
)
restrict = verb_command(
    "",
    RunVerbs.restrict,
    lambda reply: print_run(reply.value, as_json=False),
    "rota run restrict b3e52e11 --only-workers gpu-1,gpu-2",
    "rota run restrict b3e52e11 --anyone",
    words="Restrict a run to some workers, by name.\n\n"
    "A worker that runs it and may not any more stops it with its next heartbeat; this does not count as an attempt.",
    forms=(_workers_form,),
)

COMMANDS = (count, cancel, retry, restrict)
