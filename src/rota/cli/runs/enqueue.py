"""`rota run enqueue`: enqueue a run of a job, with a payload and options."""

from __future__ import annotations

from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.options import examples, instant_of, scope_of, shared
from rota.cli.terminal.payload import arguments_of, decode_object
from rota.cli.terminal.run_format import print_new_run
from rota.cli.terminal.wait import finish, wait_for_run, wait_timeout_option
from rota.client.client import Client, Order
from rota.core.runs.dependencies import Otherwise
from rota.core.runs.run import Run
from rota.errors import BadPayload, Invalid
from rota.values.json import Limits

_METADATA = """use single quotes: --metadata '{"from": "me"}'"""


@click.command(
    epilog=examples(
        'rota run enqueue crawl \'{"url": "https://example.com"}\' --wait',
        "rota run enqueue crawl @payload.json --delay 10m --tag nightly",
        "make-payload | rota run enqueue crawl - --json",
        "rota run enqueue publish --after 71e1f057,b3e52e11 --otherwise cancel",
        "rota run enqueue report --key march --scope account/42 --at 2026-04-01T06:00:00Z",
    )
)
@click.argument("job")
@click.argument("payload", metavar="[PAYLOAD_JSON | @FILE | -]", default="{}")
@click.option("--queue", metavar="NAME", help="Queue, instead of the job's.")
@click.option("--priority", type=int, metavar="N", help="Higher runs first; -1000 to 1000.")
@click.option("--delay", metavar="DURATION", help='Start after this delay: "90s", "1h30m".')
@click.option("--at", "run_at", type=instant_of, metavar="TIME", help="Start at this time: 2026-01-31T08:00:00Z.")
@click.option("--key", metavar="KEY", help="Name of the work: while its run has not ended, no second one is created.")
@click.option("--scope", type=scope_of, metavar="KIND/ID", help="Scope of the run.")
@click.option("--unique", is_flag=True, help="At most one live run with this payload.")
@click.option(
    "--unique-by", multiple=True, metavar="FIELD", help="At most one live run with this field's value. Repeatable."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag of the run. Repeatable.")
@click.option("--metadata", metavar="JSON", help="Object that is stored with the run.")
@click.option("--max-attempts", type=int, metavar="N", help="Attempts of the run; 1 means no retry.")
@click.option("--timeout", metavar="DURATION", help="Limit for each attempt; for the wait there is --wait-timeout.")
@click.option("--after", multiple=True, metavar="ID[,ID]", help="Start after these runs have succeeded. Repeatable.")
@click.option("--after-any-end", is_flag=True, help="With --after: start however those runs end.")
@click.option(
    "--otherwise",
    type=click.Choice([mode.value for mode in Otherwise]),
    help="What to do if one of them does not succeed.  [default: skip]",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="ARGUMENT=ID",
    help="Follow this run, and take its result as the argument; of ID,ID the list of theirs. Repeatable.",
)
@click.option("--idempotency-key", metavar="KEY", help="A request with the same key within 24h creates no second run.")
@click.option("--wait", "waiting", is_flag=True, help="Wait for its end; exit code as of `rota run wait`.")
@wait_timeout_option
@shared
def enqueue(
    job: str,
    payload: str,
    waiting: bool,
    wait_timeout: str | None,
    database: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Enqueue a run of JOB.

    In a pipe it prints the run's id alone; with --wait the id, the state, and the result or error, tab-separated.
    """
    settings = run_options(**options)
    waiting = waiting or wait_timeout is not None

    async def command(client: Client) -> tuple[Run, bool]:
        arguments = arguments_of(payload, Limits(client.config.max_payload))
        try:
            enqueued = await client.enqueue(Order(job, arguments, settings))
        except BadPayload as error:
            error.hint = error.hint or f"`rota job get {job}` shows what it takes"
            raise
        run = await (wait_for_run(client, enqueued.id, wait_timeout) if waiting else client.get(enqueued.id))
        return run, enqueued.created

    run, created = ask(database, command)
    if not created:
        click.echo(f"note: the work is already enqueued, as run {run.id}", err=True)
    if waiting:
        return finish(run, as_json=as_json)
    print_new_run(run, as_json=as_json)
    return 0


def run_options(*, unique: bool, unique_by: tuple[str, ...], metadata: str | None, **options: Any) -> dict[str, Any]:
    """Return the options that were given, named as `.options(...)` names them."""
    if options.get("delay") is not None and options.get("run_at") is not None:
        raise Invalid("give --delay or --at, not both")
    if unique or unique_by:
        options["unique"] = list(unique_by) or True
    options["after"] = _after(options["after"], options.pop("after_any_end"), options.pop("otherwise"))
    options["inputs"] = _inputs(options["inputs"])
    if metadata is not None:
        options["metadata"] = _metadata(metadata)
    return {name: value for name, value in options.items() if value is not None and value != ()}


def _after(ids: tuple[str, ...], any_end: bool, otherwise: str | None) -> list[dict[str, str]] | None:
    if not ids and (any_end or otherwise):
        raise Invalid(f"{'--after-any-end' if any_end else '--otherwise'} needs --after", hint="--after ID")
    if any_end and otherwise:
        raise Invalid("give --after-any-end or --otherwise, not both")
    how = {"on": "end"} if any_end else {"otherwise": otherwise or "skip"}
    return [{"run": id.strip(), **how} for part in ids for id in part.split(",")] or None


def _inputs(texts: tuple[str, ...]) -> dict[str, str | list[str]] | None:
    inputs: dict[str, str | list[str]] = {}
    for text in texts:
        argument, _, ids = text.partition("=")
        if not argument or not ids:
            raise Invalid(f"--input {text!r} is not ARGUMENT=ID", hint="--input pages=71e1f057")
        if argument in inputs:
            raise Invalid(f"--input gives {argument!r} twice", hint=f"a list of results: --input {argument}=ID,ID")
        inputs[argument] = [id.strip() for id in ids.split(",")] if "," in ids else ids
    return inputs or None


def _metadata(text: str) -> dict[str, Any]:
    try:
        return decode_object(text.encode(), Limits(), _METADATA)
    except BadPayload as error:
        where = "" if error.path == "$" else f"at {error.path}: "
        raise Invalid(f"--metadata {where}{error.problem}", hint=error.hint) from None
