"""`rota cron`: describe a cron expression and list its next times, without a database."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from rota.cli.options import examples, instant_of
from rota.cli.schedules.schedule_format import print_fires
from rota.cli.terminal.format import rfc3339
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.core.calendar.describe import describe
from rota.core.calendar.rules import Rule, check
from rota.core.calendar.triggers import FOLDS, GAPS
from rota.core.calendar.triggers import cron as cron_trigger
from rota.core.schedules.plan_times import Fire, upcoming
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import Invalid
from rota.values.instants import micros_at

_MOST = 10_000


@click.command(
    epilog=examples(
        "rota cron '0 9 * * MON-FRI' --tz Europe/Berlin",
        "rota cron '30 2 * * *' --tz America/New_York --after 2026-03-07T00:00:00Z -n 3",
        "rota cron '*/15 * * * *' --json | jq -r '.fires[]'",
    )
)
@click.argument("expression", metavar="EXPR")
@click.option(
    "--tz",
    "--timezone",
    "timezone",
    default="UTC",
    show_default=True,
    metavar="ZONE",
    help="Time zone of the expression.",
)
@click.option("--after", type=instant_of, metavar="TIME", help="Only times after this one.  [default: now]")
@click.option(
    "-n", "--count", type=click.IntRange(1, _MOST), default=10, show_default=True, metavar="N", help="Number of times."
)
@click.option("--gap", type=click.Choice(GAPS), help="What to do when clocks skip the time.  [default: after]")
@click.option("--fold", type=click.Choice(FOLDS), help="What to do when clocks repeat the time.  [default: first]")
@click.option("--salt", default="", metavar="NAME", help="The schedule's name, which decides what H stands for.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def cron(
    expression: str, timezone: str, after: datetime | None, count: int, salt: str, as_json: bool, **law: str | None
) -> None:
    """Describe a cron expression, and list its next times."""
    rule = Rule(cron_trigger(expression, timezone, **law), timezone=timezone)
    now = datetime.now(UTC)
    fires = fires_of(rule, salt, after or now, count)
    description = describe(rule, salt or None)
    if as_json:
        times = [rfc3339(fire.plan_time) for fire in fires]
        print_json({"expression": expression, "timezone": timezone, "description": description, "fires": times})
        return
    if on_terminal():
        emit(f"{description}\n")
    print_fires(fires, now, none="no further times")


def fires_of(rule: Rule, salt: str, after: datetime, count: int) -> list[Fire]:
    start = micros_at(after)
    if start < 0:
        raise Invalid(f"{rfc3339(after)} is before 1970", hint="cron times begin in 1970")
    check(rule, salt, start)
    return upcoming(ScheduleDefinition(job="", rule=rule), salt, start, count)
