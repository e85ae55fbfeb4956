"""Cron expressions in a measured process: how many next and prev a second, beside the libraries; and how right.

role     does                                                                        says
speed    `calls` steps both ways for each expression                                 µs per call, by library
oracle   random expressions near changes of offset, compared with brute force        mismatches, longest_ms
"""

import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from benchmarks.children.protocol import say
from rota import cron
from rota.core.calendar.rules import Rule, Times, compiled
from tests.core.calendar import test_cron_oracle as cases
from tests.simulation.checks.cron_oracle import CronOracle

MICROS = 1_000_000
START = datetime(2026, 2, 11, 13, 7, 31, tzinfo=UTC)
WALK = 10
LIBRARIES = ("rota", "croniter", "cronsim")

# What all three libraries can read and agree about.
EXPRESSIONS = (
    ("* * * * *", "UTC"),
    ("*/5 * * * *", "UTC"),
    ("7,37 * * * *", "UTC"),
    ("0 9 * * *", "UTC"),
    ("30 2 * * *", "Europe/Berlin"),
    ("15 8-18/2 * * 1-5", "Europe/Berlin"),
    ("0 0 1 * *", "America/New_York"),
    ("0 12 * * 0", "Asia/Kathmandu"),
    ("45 23 28-31 * *", "UTC"),
    ("0 4 1,15 1,4,7,10 *", "Europe/Berlin"),
    ("0 0 29 2 *", "UTC"),
    ("0 0 13 * 5", "UTC"),
)
# Far apart, or many steps from one fire to the next.
HARD = ("0 0 29 2 *", "0 0 29 2 1", "0 0 31 1 MON#5", "59 59 23 31 12 ?", "0 0 L-30 * *", "0 0 30 2,4 SUN#5")

Step = Callable[[], object]


def run(role: str, parameters: dict[str, Any]) -> None:
    say(ready=True)
    input()
    roles: dict[str, Callable[..., None]] = {"speed": _speed, "oracle": _oracle}
    roles[role](**parameters)


def _speed(calls: int) -> None:
    """Libraries take turns at every expression. Short walks, since some fires are years apart; parsing is not timed."""
    micros: dict[str, list[float]] = {f"{name}_{way}": [] for name in LIBRARIES for way in ("next", "prev")}
    for expression, zone in EXPRESSIONS:
        for way in ("next", "prev"):
            for name in LIBRARIES:
                walks = max(5, (calls if name == "rota" else calls // 10) // WALK)
                seconds = sum(_walk(_stepper(name, expression, zone, way)) for _ in range(walks))
                micros[f"{name}_{way}"].append(seconds / walks / WALK * 1e6)
    say(micros=micros)


def _walk(step: Step) -> float:
    step()
    begin = time.perf_counter()
    for _ in range(WALK):
        step()
    return time.perf_counter() - begin


def _stepper(name: str, expression: str, zone: str, way: str) -> Step:
    if name == "rota":
        return _through(compiled(Rule(cron(expression, zone)), ""), way)
    start = START.astimezone(ZoneInfo(zone))
    if name == "croniter":
        found = croniter(expression, start)
        step: Step = found.get_next if way == "next" else found.get_prev
        return step
    later: Iterator[datetime] = CronSim(expression, start, reverse=way == "prev")
    return later.__next__


def _through(times: Times, way: str) -> Step:
    find = times.next if way == "next" else times.prev
    at = int(START.timestamp()) * MICROS

    def step() -> None:
        nonlocal at
        at = find(at) or at

    return step


def _oracle(count: int, seed: int) -> None:
    draw = random.Random(seed)
    mismatches, longest = [], 0.0
    for _ in range(count):
        place = draw.randrange(len(cases.PLACES))
        zone, day = cases.PLACES[place]
        text = cases.expression(draw, datetime.fromisoformat(day))
        gap, fold = draw.choice(["after", "after", "skip"]), draw.choice(["first", "first", "last", "both"])
        walk = cases.walk_of(place)
        fires = CronOracle(text, gap, fold).fires(walk)
        times = compiled(Rule(cron(text, zone, gap=gap, fold=fold)), "")
        try:
            cases.check_case(draw, times, fires, walk)
        except AssertionError:
            mismatches.append(f"{text} {zone} gap={gap} fold={fold}")
        longest = max(longest, _longest(times, draw.randint(walk.first, walk.last)))
    for text in HARD:
        longest = max(longest, _longest(compiled(Rule(cron(text, "Europe/Berlin")), ""), int(START.timestamp())))
    say(cases=count, mismatches=mismatches, longest_ms=longest * 1e3)


def _longest(times: Times, at: int) -> float:
    """Seconds of the slower way; of three tries the best, since the machine interrupts."""
    return max(min(_timed(call, at * MICROS) for _ in range(3)) for call in (times.next, times.prev))


def _timed(call: Callable[[int], int | None], at: int) -> float:
    begin = time.perf_counter()
    call(at)
    return time.perf_counter() - begin
