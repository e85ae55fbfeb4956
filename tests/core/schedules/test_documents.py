"""Documents of schedules: they survive a round trip, and errors name the key."""

import json
import tomllib
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from rota.core.calendar.cron_times import FoldMode
from rota.core.calendar.rules import Window
from rota.core.calendar.triggers import Cron, Either, Every, Trigger, after, cron, every, once
from rota.core.formats.toml import schedules_toml
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import Delays, Exponential
from rota.core.schedules.documents import KEYS, document_of, merged, parse
from rota.core.schedules.policies import CatchUp, CatchUpMode, Failure, FailureMode, Overlap, OverlapMode
from rota.core.schedules.schedule import SCHEDULE_OPTIONS, ScheduleDefinition, define
from rota.errors import Invalid, UnknownOption
from rota.values.instants import micros_at
from rota.values.scope import Scope

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
NOW = micros_at(NEW_YEAR)
JOB = JobDefinition(name="report")


def definition_of(document: dict[str, Any]) -> ScheduleDefinition:
    name, job, trigger, options = parse(document)
    return define(JobDefinition(name=job), trigger, options, name=name, now=NOW)


def read(**document: Any) -> ScheduleDefinition:
    return definition_of({"name": "nightly", "job": "report", **document})


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"])
SPANS = st.integers(1, 10**6).map(lambda seconds: timedelta(seconds=seconds))
WHOLE_TIMES = st.integers(0, 10**9).map(lambda seconds: NEW_YEAR + timedelta(seconds=seconds))
BACKOFFS = st.one_of(
    st.lists(SPANS, min_size=1, max_size=3).map(lambda spans: Delays(tuple(spans))),
    st.builds(Exponential, base=SPANS, factor=st.floats(1, 10), cap=SPANS, jitter=st.floats(0, 1)),
)
CRONS = st.builds(
    cron,
    st.sampled_from(["0 9 * * *", "@daily", "H H * * MON-FRI", "30 2 L * ?"]),
    ZONES,
    gap=st.sampled_from(["after", "skip"]),
    fold=st.sampled_from(["first", "last", "both"]),
) | st.builds(cron, st.sampled_from(["*/15 * * * * *", "@hourly"]), ZONES)
EVERYS = st.builds(every, SPANS, anchor=st.none() | WHOLE_TIMES)
ONCES = WHOLE_TIMES.map(once)
UNIONS = st.lists(CRONS | EVERYS | ONCES, min_size=1, max_size=4, unique=True).map(lambda parts: Either(tuple(parts)))
TIMED: st.SearchStrategy[Trigger] = CRONS | EVERYS | ONCES | UNIONS
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("aä\n\"'\\\x7f\t/ ", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab .", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text("abc_ é", min_size=1, max_size=4), JSON, max_size=3)
WINDOWS = st.builds(
    Window,
    st.sampled_from(["09:00", "22:30:15"]),
    st.sampled_from(["17:00", "06:00"]),
    st.lists(st.sampled_from(["mon", "tue", "sun"]), max_size=3).map(tuple),
)
SCOPES = st.builds(Scope, st.sampled_from(["account", "a/b"]), st.sampled_from(["1", "x/y", " "]))
TEXTS = st.text("ab,\"' é", min_size=1, max_size=8).filter(str.strip)
COMMON = {
    "payload": OBJECTS,
    "delay": SPANS,
    "jitter": SPANS,
    "failure": st.sampled_from(["skip", "pause", "run_new"])
    | st.builds(
        lambda threshold, span: Failure(mode=FailureMode.HALF_OPEN, threshold=threshold, cooldown=span),
        st.integers(1, 9),
        SPANS,
    )
    | BACKOFFS.map(lambda backoff: Failure(mode=FailureMode.BACKOFF, backoff=backoff)),
    "max_runs": st.integers(1, 99),
    "start_at": st.just(NEW_YEAR - timedelta(days=1, microseconds=5)),
    "windows": st.lists(WINDOWS, max_size=2),
    "exclude": st.lists(st.sampled_from(["2026-12-25", "2026-12-24/2026-12-31"]), max_size=2, unique=True),
    "timezone": ZONES,
    "enabled": st.booleans(),
    "description": TEXTS,
    "queue": TEXTS,
    "priority": st.integers(-9, 9),
    "timeout": SPANS,
    "max_attempts": st.integers(1, 9),
    "backoff": BACKOFFS | st.just([]),
    "tags": st.lists(TEXTS, max_size=2),
    "metadata": OBJECTS,
}
WITH_TIMES = {
    "scopes": st.lists(SCOPES, max_size=3, unique=True) | st.just("tenants"),
    "catch_up": st.sampled_from(["none", "latest", "all"])
    | st.builds(lambda window, keep: CatchUp(mode=CatchUpMode.ALL, window=window, keep=keep), SPANS, st.integers(1, 9)),
    "overlap": st.sampled_from(["skip", "allow", "queue_one", "queue_all"])
    | st.builds(lambda most: Overlap(mode=OverlapMode.PARALLEL, max_overlap=most), st.none() | st.integers(1, 9)),
}
LIMITS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"max_concurrency": st.integers(1, 9)}, optional={"max_queued": st.integers(0, 9)}),
    st.fixed_dictionaries(
        {"max_concurrency": st.integers(1, 9), "when_full": st.sampled_from(["queue", "skip", "reject"])}
    ),
)


@st.composite
def definitions(draw: st.DrawFn) -> ScheduleDefinition:
    follows = draw(st.booleans())
    trigger = after(draw(SPANS)) if follows else draw(TIMED)
    options = draw(st.fixed_dictionaries({}, optional={**COMMON, **({} if follows else WITH_TIMES)}))
    try:
        return define(JOB, trigger, {**options, **draw(LIMITS)}, name="nightly", now=0)
    except Invalid:  # nothing is left of it, or parts of it contradict each other
        reject()


@given(definitions())
@settings(max_examples=400, deadline=None)
def test_what_is_written_is_read_back_the_same(definition: ScheduleDefinition) -> None:
    document = document_of("nightly", definition)
    assert list(document) == [key for key in KEYS if key in document]
    name, job, trigger, options = parse(document)
    assert define(JOB, trigger, options, name=name, now=0) == definition
    assert (name, job) == ("nightly", "report")
    as_json = json.loads(json.dumps(document))
    assert document_of("nightly", definition_at_zero(as_json)) == document
    (as_toml,) = tomllib.loads(schedules_toml("me", [document]))["schedule"]
    assert definition_at_zero(as_toml) == definition


def definition_at_zero(document: dict[str, Any]) -> ScheduleDefinition:
    name, job, trigger, options = parse(document)
    return define(JobDefinition(name=job), trigger, options, name=name, now=0)


def test_defaults_are_left_out() -> None:
    assert document_of("nightly", read(every="60m")) == {"name": "nightly", "job": "report", "every": "1h"}
    full = read(
        cron="0 9 * * *", gap="after", fold="first", timezone="UTC", delay="0s", enabled=True,
        catch_up="latest", overlap={"mode": "skip"}, failure="run_new", max_concurrency=2, when_full="queue",
    )  # fmt: skip
    written = {"name": "nightly", "job": "report", "cron": "0 9 * * *", "max_concurrency": 2}
    assert document_of("nightly", full) == written


def test_the_zone_of_a_document_is_that_of_its_expressions() -> None:
    definition = read(cron="0 9 * * *", timezone="Europe/Berlin", windows=["08:00-10:00"])
    assert definition.rule.trigger == Cron("0 9 * * *", "Europe/Berlin")
    assert definition.rule.timezone == "Europe/Berlin"
    union = read(either=[{"cron": "0 9 * * *"}, {"cron": "0 9 * * *", "timezone": "UTC"}], timezone="Europe/Berlin")
    assert union.rule.trigger == Either((Cron("0 9 * * *", "Europe/Berlin"), Cron("0 9 * * *", "UTC")))
    own = {"expression": "0 9 * * *", "timezone": "America/New_York"}
    apart = read(cron=own, timezone="Europe/Berlin", exclude=["2026-12-25"])
    assert apart.rule.trigger == Cron("0 9 * * *", "America/New_York")
    assert apart.rule.timezone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("number", "unit", "seconds"), [(30, "minutes", 1_800), (6, "hours", 21_600), (1, "days", 86_400)]
)
def test_the_number_of_an_interval_counts_its_unit(number: int, unit: str, seconds: int) -> None:
    trigger = parse({"name": "n", "job": "j", "interval_minutes": number, "interval_type": unit}).trigger
    assert trigger == Every(timedelta(seconds=seconds))
    assert merged({"name": "n", "cron": "0 9 * * *", "gap": "skip"}, {"interval_minutes": number}) == {
        "name": "n",
        "interval_minutes": number,
    }


def test_an_interval_without_a_unit_counts_minutes() -> None:
    assert parse({"name": "n", "job": "j", "interval_minutes": 5}).trigger == every("5m")
    assert parse({"name": "n", "job": "j", "interval_minutes": 5, "interval_type": None}).trigger == every("5m")


def test_an_interval_in_minutes_counts_from_its_anchor() -> None:
    document = {"name": "n", "job": "j", "interval_minutes": 6, "interval_type": "hours"}
    anchor = datetime(2026, 1, 1, 1, tzinfo=UTC)
    assert parse({**document, "anchor": "2026-01-01T01:00:00Z"}).trigger == every("6h", anchor=anchor)


def test_what_decides_nothing_about_folds_is_not_written_and_not_read() -> None:
    stored = define(JobDefinition(name="j"), Cron("*/15 * * * *", fold=FoldMode.LAST), {}, name="n", now=None)
    assert document_of("n", stored) == {"name": "n", "job": "j", "cron": "*/15 * * * *"}
    said = "schedule 'n': cron: fold: means nothing: the minute begins with"
    for trigger in (
        {"cron": "*/15 * * * *", "fold": "last"},
        {"cron": {"expression": "*/15 * * * *", "fold": "first"}},
        {"either": [{"cron": "*/15 * * * *", "fold": "first"}]},
    ):
        with pytest.raises(Invalid, match=said.replace("cron", ".*cron")):
            parse({"name": "n", "job": "j", **trigger})


def test_an_anchor_at_the_start_is_stored_as_an_instant() -> None:
    document = {"name": "n", "job": "j", "every": "1h", "anchor": "start", "start_at": "2026-01-01T09:30:00Z"}
    name, job, trigger, options = parse(document)
    definition = define(JobDefinition(name=job), trigger, options, name=name, now=None)
    assert definition.rule.trigger == every("1h", anchor=datetime(2026, 1, 1, 9, 30, tzinfo=UTC))
    assert document_of(name, definition) == {**document, "anchor": "2026-01-01T09:30:00Z"}
    assert parse({"name": "n", "job": "j", "every": "1h", "anchor": "epoch"}).trigger == every("1h")


def test_toml_has_instants_and_dates_of_its_own() -> None:
    definition = read(once=NEW_YEAR + timedelta(days=2), exclude=[date(2026, 12, 25)])
    assert document_of("nightly", definition)["once"] == "2026-01-03T00:00:00Z"
    assert definition.rule.exclude == ("2026-12-25",)


def test_scopes_are_texts_or_pairs_or_a_provider() -> None:
    assert read(every="1h", scopes=["account/1/2", ["a/b", "c"]]).scopes == (Scope("account", "1/2"), Scope("a/b", "c"))
    assert read(every="1h", scopes="tenants").provider == "tenants"


@pytest.mark.parametrize(
    ("document", "said", "hint"),
    [
        ({"name": "n"}, "schedule 'n': job is missing", None),
        ({"job": "j"}, "a schedule: name is missing", None),
        ({"name": "n", "job": "j"}, "has no trigger", "cron, every, after, following, once, either"),
        ({"every": "1h", "cron": "* * * * *"}, "has cron and every", None),
        ({"every": "1h", "overlp": "skip"}, "no option 'overlp'", "did you mean 'overlap'?"),
        ({"every": 30}, "every: 30 is not a duration", '"30s"'),
        ({"every": "1h", "gap": "skip"}, "gap means nothing with every", "cron"),
        ({"cron": "0 25 * * *"}, "cron: hour: '25' is out of range", "0 to 23"),
        ({"cron": "0 9 * * *", "timezone": "Europe/Berlim"}, "no time zone is called", "Europe/Berlin"),
        ({"cron": 5}, "cron: must be text, not 5", None),
        ({"cron": {"expresion": "x"}}, "cron has no option 'expresion'", "expression"),
        ({"once": "tomorrow"}, "once: 'tomorrow' is no time", "2026-01-31T08:00:00Z"),
        ({"once": "2026-01-31T08:00:00"}, "has no zone", "Z"),
        ({"once": 5}, "once: 5 is no time", None),
        ({"every": "1h", "scopes": ["account"]}, "scopes: 'account' is no scope", "account/42"),
        ({"every": "1h", "windows": "09:00-17:00"}, "windows: must be a list", '["09:00-17:00"]'),
        ({"every": "1h", "payload": [1]}, "payload: must be a table", None),
        ({"every": "1h", "payload": "{"}, "payload: is no JSON", None),
        ({"every": "1h", "payload": {"a": "\ud800"}}, "payload: {'a': '\\ud800'} contains an unpaired surrogate", None),
        ({"every": "1h", "start_at": "never"}, "start_at: 'never' is no time", None),
        ({"either": "x"}, "either must be a list", None),
        ({"either": [{"after": "5m"}]}, "either, part 1 must have one of cron, every and once", None),
        ({"either": [{"every": "5m", "gap": "skip"}]}, "either, part 1 has no option 'gap'", None),
        ({"either": [{"every": "5m"}, {"cron": "x"}]}, "either, part 2: cron:", None),
        ({"either": []}, "either: triggers: a union has 1 to", None),
        ({"interval_type": "hours"}, "interval_minutes must be a whole number", None),
        ({"interval_minutes": 5, "interval_type": "hour"}, "interval_type cannot be 'hour'", "hours"),
        ({"interval_minutes": "5", "interval_type": "hours"}, "interval_minutes must be a whole number", None),
    ],
)
def test_what_is_wrong_is_told_with_its_key(document: dict[str, Any], said: str, hint: str | None) -> None:
    whole = document if {"name", "job"} & document.keys() else {"name": "n", "job": "j", **document}
    with pytest.raises(Invalid) as caught:
        parse(whole)
    assert said in caught.value.message
    assert (hint or "") in (caught.value.hint or "")


def test_an_unknown_key_is_an_unknown_option_and_a_list_no_document() -> None:
    with pytest.raises(UnknownOption):
        parse({"name": "n", "job": "j", "crn": "x"})
    with pytest.raises(Invalid, match="is a table"):
        parse([])  # type: ignore[arg-type]


def test_null_means_the_default() -> None:
    assert read(every="1h", queue=None, cron=None) == read(every="1h")


def test_every_option_has_a_key() -> None:
    assert set(SCHEDULE_OPTIONS) <= set(KEYS)
