"""Rules in plain English."""

import random
import re
from datetime import UTC, datetime, timedelta

import pytest

from rota.core.calendar.cron_times import FoldMode
from rota.core.calendar.describe import describe
from rota.core.calendar.rules import Rule, Window
from rota.core.calendar.triggers import Cron, Either, Trigger, after, cron, every, once
from rota.values.instants import micros_at

NINE = datetime(2026, 1, 1, 9, tzinfo=UTC)
NINE_MICROS = micros_at(NINE)
OFFICE = Window("09:00", "17:00", ("mon", "tue", "wed", "thu", "fri"))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * * *", "every second"),
        ("*/5 * * * * *", "every 5 seconds"),
        ("* * * * *", "every minute"),
        ("*/1 * * * *", "every minute"),
        ("*/30 * * * *", "every 30 minutes, UTC"),
        ("0,30 * * * *", "at minute 0 and 30 of every hour, UTC"),
        ("7/20 * * * *", "at minute 7, 27 and 47 of every hour, UTC"),
        ("*/7 * * * *", "at every 7th minute from 0 to 56 of every hour, UTC"),
        ("*/40 * * * *", "at minute 0 and 40 of every hour, UTC"),
        ("15 * * * *", "at minute 15 of every hour, UTC"),
        ("@hourly", "every hour, UTC"),
        ("0 */2 * * *", "at minute 0 of every 2nd hour from 0 to 22, UTC"),
        ("*/20 */3 * * *", "every 20 minutes of every 3rd hour from 0 to 21, UTC"),
        ("*/5 9-17 * * 1-5", "every 5 minutes of hours 9 to 17, weekdays, UTC"),
        ("30 * * * * *", "at second 30 of every minute, UTC"),
        ("*/7 * * * * *", "at every 7th second from 0 to 56 of every minute, UTC"),
        ("30 * 9 * * *", "at second 30 of every minute of hour 9, UTC"),
        ("*/10 0 * * * *", "every 10 seconds of minute 0 of every hour, UTC"),
        ("* * 9 * * *", "every second of hour 9, UTC"),
        ("*/5 * * * * MON", "every 5 seconds, Mondays, UTC"),
        ("30 0 9 * * *", "every day at 09:00:30, UTC"),
        ("@daily", "every day at 00:00, UTC"),
        ("@weekly", "Sundays at 00:00, UTC"),
        ("@monthly", "on day 1 of the month at 00:00, UTC"),
        ("@yearly", "on day 1 of January at 00:00, UTC"),
        ("0 9,17 * * *", "every day at 09:00 and 17:00, UTC"),
        ("0,30 9,17 * * *", "every day at 09:00, 09:30, 17:00 and 17:30, UTC"),
        ("0 9 * * 1-5", "weekdays at 09:00, UTC"),
        ("0 9 * * 0,6", "weekends at 09:00, UTC"),
        ("0 9 * * mon,wed,fri", "Mondays, Wednesdays and Fridays at 09:00, UTC"),
        ("0 9 * * 6-7", "weekends at 09:00, UTC"),
        ("0 9 ? * MON#3", "on the 3rd Monday of the month at 09:00, UTC"),
        ("0 9 ? * 5L", "on the last Friday of the month at 09:00, UTC"),
        ("0 0 * * MON,FRI#1", "Mondays or on the 1st Friday of the month at 00:00, UTC"),
        ("0 0 L * *", "on the last day of the month at 00:00, UTC"),
        ("0 0 L-1 * *", "on the day before the last of the month at 00:00, UTC"),
        ("0 0 L-3 * *", "on the day 3 days before the last of the month at 00:00, UTC"),
        ("0 0 LW * *", "on the last weekday of the month at 00:00, UTC"),
        ("0 0 15W * *", "on the weekday nearest day 15 of the month at 00:00, UTC"),
        ("0 0 1,15,L * *", "on day 1 and 15 of the month or the last day of the month at 00:00, UTC"),
        ("0 0 1-7 * ?", "on days 1 to 7 of the month at 00:00, UTC"),
        ("0 0 25 12 *", "on day 25 of December at 00:00, UTC"),
        ("0 0 1 1,4,7,10 *", "on day 1 of January, April, July and October at 00:00, UTC"),
        ("0 0 * 6-8 *", "every day in June to August at 00:00, UTC"),
        ("0 9 * 6 1-5", "weekdays in June at 09:00, UTC"),
        ("0 9 * 1 MON#1", "on the 1st Monday of the month in January at 09:00, UTC"),
        ("0 0 13 * FRI", "on day 13 of the month or Fridays at 00:00, UTC"),
        ("0 0 13 6 FRI", "on day 13 of June or Fridays in June at 00:00, UTC"),
        ("0 0 */2 * MON", "on every 2nd day from 1 to 31 of the month, but only Mondays at 00:00, UTC"),
        ("0 0 13 * +FRI", "on day 13 of the month, but only Fridays at 00:00, UTC"),
        ("0 9 ? * FRI#L", "on the last Friday of the month at 09:00, UTC"),
        ("0 0 9 1 1 ? 2027", "on day 1 of January at 09:00 in 2027, UTC"),
        ("0 * * * * ? 2027-2030", "every minute in 2027 to 2030, UTC"),
        ("0 0 9 * * ? 2027,2029", "every day at 09:00 in 2027 and 2029, UTC"),
        ("0 0 9 * * ? *", "every day at 09:00, UTC"),
        ("0 0 1-31 * FRI", "every day at 00:00, UTC"),
        ("0 0 1-31 6 FRI", "every day in June at 00:00, UTC"),
        ("H H * * *", "every day at a time of its own, UTC"),
        ("H H * * 1-5", "weekdays at a time of its own, UTC"),
        ("H * * * *", "every hour at a minute of its own, UTC"),
        ("H/15 * * * *", 'at the times of cron "H/15 * * * *", with H of its own, UTC'),
        ("H H H * *", 'at the times of cron "H H H * *", with H of its own, UTC'),
    ],
)
def test_cron(expression: str, words: str) -> None:
    assert describe(Rule(cron(expression))) == words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(cron("0 9 * * 1-5", "Asia/Taipei")), "weekdays at 09:00, Asia/Taipei"),
        (Rule(every("1s")), "every second"),
        (Rule(every("30m")), "every 30 minutes"),
        (Rule(every("1h")), "every hour"),
        (Rule(every("90m")), "every 1 hour 30 minutes"),
        (Rule(every("1d")), "every 24 hours"),
        (Rule(every("14d")), "every 14 days"),
        (Rule(every("1d", anchor=NINE)), "every 24 hours, counted from 2026-01-01 09:00:00 UTC"),
        (Rule(after("30m")), "30 minutes after the last run ended"),
        (Rule(after("1m")), "1 minute after the last run ended"),
        (Rule(once(NINE)), "once at 2026-01-01 09:00:00 UTC"),
        (Rule(every("1h") | once(NINE)), "every hour or once at 2026-01-01 09:00:00 UTC"),
        (Rule(cron("0 9 * * *", "Asia/Taipei") | cron("0 9 * * *")),
         "every day at 09:00, Asia/Taipei or every day at 09:00, UTC"),
        (Rule(cron("0 2 * * *", "Europe/Berlin", gap="skip")),
         "every day at 02:00, Europe/Berlin (left out when clocks skip it)"),
        (Rule(cron("0 2 * * *", "Europe/Berlin", gap="skip", fold="both")),
         "every day at 02:00, Europe/Berlin (left out when clocks skip it and twice when clocks repeat it)"),
        (Rule(cron("0 2 * * *", "Europe/Berlin", fold="last")),
         "every day at 02:00, Europe/Berlin (on the second pass when clocks repeat it)"),
        (Rule(Cron("0 * * * *", "Europe/Berlin", fold=FoldMode.LAST)), "every hour, Europe/Berlin"),
        (Rule(cron("*/5 * * * *", "Asia/Taipei"), windows=(OFFICE,), timezone="Asia/Taipei"),
         "every 5 minutes, Asia/Taipei; only 09:00-17:00 mon-fri"),
        (Rule(every("5m"), windows=(OFFICE, Window("22:00", "02:00", ("sat", "mon")))),
         "every 5 minutes; only 09:00-17:00 mon-fri or 22:00-02:00 mon,sat (UTC)"),
        (Rule(cron("0 9 * * *"), exclude=("2026-12-25",)), "every day at 09:00, UTC; not on 2026-12-25"),
        (Rule(every("1h"), exclude=("2026-12-25", "2026-12-24/2026-12-31"), timezone="Asia/Taipei"),
         "every hour; not on 2026-12-25 and 2026-12-24 to 2026-12-31 (Asia/Taipei)"),
        (Rule(cron("0 9 * * *"), exclude=tuple(f"2026-01-0{day}" for day in range(1, 8))),
         "every day at 09:00, UTC; not on 2026-01-01, 2026-01-02, 2026-01-03, 2026-01-04 and 3 more"),
        (Rule(every("1h"), NINE_MICROS, NINE_MICROS + 1_500_000),
         "every hour; from 2026-01-01 09:00:00 UTC until 2026-01-01 09:00:01.5 UTC"),
        (Rule(every("1h"), end_at=NINE_MICROS), "every hour; until 2026-01-01 09:00:00 UTC"),
        (Rule(cron("0 9 * * *"), NINE_MICROS, None, (Window("09:00", "24:00"),), ("2026-12-25",)),
         "every day at 09:00, UTC; from 2026-01-01 09:00:00 UTC; only 09:00-24:00; not on 2026-12-25"),
    ],
)  # fmt: skip
def test_rules(rule: Rule, words: str) -> None:
    assert describe(rule) == words


def test_with_the_salt_the_values_of_h_are_said() -> None:
    assert re.fullmatch(r"every day at \d\d:\d\d, UTC", describe(Rule(cron("H H * * *")), "nightly"))


def test_any_expression_has_words() -> None:
    draw = random.Random(3)
    fields = (
        ("*", "0", "*/7", "5-9", "H"),
        ("*", "3", "*/2", "9-17", "H"),
        ("*", "?", "L", "LW", "3W", "1,L-2", "*/3"),
        ("*", "2", "1-3", "jan,dec"),
        ("*", "?", "MON", "1-5", "FRI#2", "5L", "0,3L"),
    )
    for _ in range(500):
        trigger: Trigger = Either(
            (
                cron(" ".join(draw.choice(choices) for choices in fields)),
                every(timedelta(seconds=draw.randint(1, 10**6))),
            )
        )
        words = describe(Rule(trigger), draw.choice([None, "salt"]))
        assert "  " not in words
        assert " or every " in words
