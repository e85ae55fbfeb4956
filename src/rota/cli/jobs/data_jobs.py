"""`rota job create|update|delete|restore`: data jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, assert_never

import click
import msgspec

from rota.cli.connect import actor, ask
from rota.cli.options import examples, shared
from rota.cli.terminal.format import Columns, text_cell
from rota.cli.terminal.output import print_json, print_rows
from rota.cli.verbs.looks import sentence
from rota.cli.verbs.verb_command import Consent, verb_command
from rota.client.jobs.data_jobs import DataJobsClient
from rota.core.jobs.job import DataKind, JobDefinition, JobKind
from rota.errors import Invalid
from rota.registry.data_jobs import DATA_KINDS

F = TypeVar("F", bound=Callable[..., Any])

_COLUMNS = Columns(("job", "kind", "version", "does"), cut=("job", "does"))
_OPTIONS = (
    click.option("--url", metavar="URL", help="Make it an HTTP job, with a request to this URL."),
    click.option("--method", metavar="METHOD", help="HTTP method: GET, POST, …  [default: GET]"),
    click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="Header of the request. Repeatable."),
    click.option("--body", metavar="TEXT | JSON | @FILE", help="Body of the request, instead of the run's payload."),
    click.option(
        "--expect-status",
        multiple=True,
        metavar="STATUS",
        help="Statuses that mean success: 200, 2xx, 200-204.  [default: 2xx]",
    ),
    click.option(
        "--retry-on", multiple=True, metavar="STATUS", help="Statuses to retry after.  [default: 408, 425, 429, 5xx]"
    ),
    click.option("--redirects/--no-redirects", default=None, help="Follow redirects.  [default: for GET and HEAD]"),
    click.option("--max-response", metavar="SIZE", help="How much of a response is stored.  [default: 64KB]"),
    click.option("--secret", metavar="TEXT | @FILE", help="Key that signs the request."),
    click.option("--command", is_flag=True, help="Make it a command job: program and arguments follow --."),
    click.option("--env", multiple=True, metavar="NAME=VALUE", help="Environment of the program. Repeatable."),
    click.option("--cwd", metavar="FOLDER", help="Working directory of the program."),
    click.option("--stdin", type=click.Choice(["payload"]), help="What the program reads from stdin."),
    click.option("--retry-exit-code", "retry_exit_codes", type=int, multiple=True, metavar="N", help="Retry after it."),
    click.option("--cpu-limit", metavar="DURATION", help="CPU time of each process of the program."),
    click.option("--memory-limit", metavar="SIZE", help="Memory of each process of the program."),
    click.option("--steps", metavar="JSON | @FILE", help="Steps of an external job: a list of ids or objects."),
    click.option("--pipeline", metavar="JSON | @FILE", help="Make it a pipeline: a list of parts with step and job."),
    click.option("--queue", metavar="NAME", help="Queue of its runs.  [default: default]"),
    click.option("--timeout", metavar="DURATION", help="Limit for each attempt.  [default: 10s for an HTTP job]"),
    click.option("--max-attempts", type=int, metavar="N", help="Attempts of a run; 1 means no retry."),
    click.option("--description", metavar="TEXT", help="Description for people."),
    click.option("--payload-schema", metavar="JSON | @FILE", help="JSON Schema of payloads."),
    click.option("--set", "others", multiple=True, metavar="OPTION=JSON", help="Any other option of a job."),
)


def _definition_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return shared(click.argument("argv", nargs=-1, metavar="[-- PROGRAM ARGUMENT…]")(command))


@click.command(
    epilog=examples(
        "rota job create ping --url https://example.com/health",
        "rota job create tell --url 'https://example.com/orders/{payload.id}' --method POST",
        "rota job create backup --command --timeout 1h -- pg_dump -Fc -f '/backup/{payload.name}' shop",
        'rota job create review --external --payload-schema @review.json --steps \'["look", "decide"]\'',
        'rota job create publish --pipeline \'[{"step": "look", "job": "review"}]\'',
    )
)
@click.argument("name")
@click.option("--external", is_flag=True, help="Make it an external job, whose runs other systems claim.")
@_definition_options
def create(name: str, external: bool, command: bool, database: str | None, as_json: bool, **options: Any) -> None:
    """Create a data job: an HTTP request, a command, external work, or a pipeline of other jobs.

    Its texts may contain {payload.NAME}, {plan_time}, {scope.kind}, {scope.id}, {run_id}, {attempt} and
    {idempotency_key}. Commands run only on workers with ROTA_ENABLE_COMMAND=1.
    """
    settings = _settings(options)

    def is_chosen(kind: DataKind) -> bool:
        match kind:
            case JobKind.HTTP:
                return "url" in settings
            case JobKind.COMMAND:
                return command
            case JobKind.EXTERNAL:
                return external
            case JobKind.PIPELINE:
                return "pipeline" in settings
            case _:
                assert_never(kind)

    kinds = [kind.value for kind in DATA_KINDS if is_chosen(kind)]
    if len(kinds) != 1:
        raise Invalid(
            "give one of --url, --command, --external and --pipeline", hint="rota job create ping --url https://…"
        )
    definition = ask(
        database, lambda client: client.data_jobs.create(name, kinds[0], owner="cli", actor=actor(), **settings)
    )
    _print(definition, as_json=as_json)


@click.command(
    epilog=examples(
        "rota job update ping --url https://example.com/live", "rota job update ping --set priority=5 --body ''"
    )
)
@click.argument("name")
@_definition_options
def update(name: str, command: bool, database: str | None, as_json: bool, **options: Any) -> None:
    """Change a data job, for runs that are enqueued from now on.

    Options that are not given stay as they are. `--set OPTION=null` restores the default.
    """
    settings = _settings(options)
    definition = ask(database, lambda client: client.data_jobs.update(name, actor=actor(), **settings))
    _print(definition, as_json=as_json)


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given, with values as the client takes them."""
    settings = {name: value for name, value in options.items() if value is not None and value != ()}
    for name, read in _READ.items():
        if name in settings:
            settings[name] = read(settings[name])
    for word in settings.pop("others", ()):
        name, equals, text = word.partition("=")
        if not equals:
            raise Invalid(f"--set {word!r} has no =", hint="as in --set priority=5")
        settings[name.strip().replace("-", "_")] = _value(text)
    return settings


def _pairs(separator: str) -> Callable[[tuple[str, ...]], dict[str, str]]:
    def read(words: tuple[str, ...]) -> dict[str, str]:
        pairs = [word.partition(separator) for word in words]
        for name, sign, _ in pairs:
            if not sign:
                raise Invalid(f"{name!r} has no {separator}", hint=f"NAME{separator}VALUE")
        return {name.strip(): value.strip() for name, _, value in pairs}

    return read


def _content(text: str) -> str:
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"cannot read {text[1:]}: {error}") from None


def _body(text: str) -> Any:
    """Parse a body: an object or a list is JSON, anything else is text."""
    content = _content(text)
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content
    return value if isinstance(value, dict | list) else content


def _json(option: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return msgspec.json.decode(_content(text))
        except msgspec.DecodeError as error:
            raise Invalid(f"{option} is not JSON: {error}") from None

    return read


def _value(text: str) -> Any:
    """Parse JSON; return the text itself if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


_READ: dict[str, Callable[[Any], Any]] = {
    "headers": _pairs(":"),
    "env": _pairs("="),
    "body": _body,
    "secret": lambda text: _content(text).strip(),
    "payload_schema": _json("--payload-schema"),
    "steps": _json("--steps"),
    "pipeline": _json("--pipeline"),
    "expect_status": list,
    "retry_on": list,
    "retry_exit_codes": list,
    "argv": list,
}


def facts(definition: JobDefinition) -> list[tuple[str, str | None]]:
    """Return facts about the request or the command of a data job."""
    if definition.http is not None:
        http = definition.http
        lines = "\n".join(f"{name}: {value}" for name, value in http.headers.items())
        statuses = ", ".join(http.expect_status)
        return [("request", _does(definition)), ("headers", lines or None), ("expect_status", statuses)]
    return [("command", _does(definition))] if definition.command is not None else []


def _does(definition: JobDefinition) -> str:
    if definition.http is not None:
        return f"{definition.http.method} {definition.http.url}"
    if definition.pipeline:
        return " → ".join(part.job for part in definition.pipeline)
    return " ".join(definition.command.argv) if definition.command is not None else ""


def _print(definition: JobDefinition, *, as_json: bool) -> None:
    if as_json:
        print_json(definition)
    else:
        cells = (definition.name, definition.kind, definition.version, _does(definition))
        print_rows(_COLUMNS, [[text_cell(cell) for cell in cells]], none="")


async def _nothing(*_: object) -> None:
    """Read nothing: the question names what is deleted."""


def _question(_: None, arguments: Mapping[str, Any]) -> str | None:
    name = arguments["name"]
    return f"delete {name}, disable its schedules and cancel its runs?" if arguments.get("force") else None


delete = verb_command(
    "data_jobs",
    DataJobsClient.delete,
    sentence("job {name} is deleted"),
    "rota job delete ping",
    "rota job delete ping --force --yes",
    words="Delete a data job; its finished runs stay.",
    consent=Consent(_nothing, _question),
)

restore = verb_command("data_jobs", DataJobsClient.restore, sentence("job {name} is restored"), "rota job restore ping")

COMMANDS = (create, update, delete, restore)
