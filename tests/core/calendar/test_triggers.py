"""Triggers: what people write becomes a value, and what makes no sense is refused."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from rota.core.calendar.cron_times import FoldMode, GapMode
from rota.core.calendar.triggers import (
    KINDS,
    After,
    Cron,
    Either,
    Every,
    Once,
    Trigger,
    TriggerKind,
    after,
    cron,
    every,
    once,
    validate,
)
from rota.errors import BadDuration, BadTrigger

SECOND = timedelta(seconds=1)
NINE = datetime(2026, 1, 1, 9, tzinfo=UTC)
NINE_MICROS = 1_767_258_000_000_000
TAIPEI = timezone(timedelta(hours=8))


@pytest.mark.parametrize(
    ("made", "meant"),
    [
        (cron("0 9 * * *"), Cron("0 9 * * *", "UTC", GapMode.AFTER, FoldMode.FIRST)),
        (
            cron("0 9 * * *", "Asia/Taipei", gap="skip", fold="both"),
            Cron("0 9 * * *", "Asia/Taipei", GapMode.SKIP, FoldMode.BOTH),
        ),
        (every("15m"), Every(timedelta(minutes=15))),
        (every(timedelta(seconds=1)), Every(SECOND)),
        (every("1d", anchor=NINE), Every(timedelta(days=1), NINE_MICROS)),
        (every("1d", anchor=NINE.astimezone(TAIPEI)), Every(timedelta(days=1), NINE_MICROS)),
        (every("1d", anchor="epoch"), Every(timedelta(days=1))),
        (after("30m"), After(timedelta(minutes=30))),
        (once(NINE), Once(NINE_MICROS)),
        (once(datetime(1970, 1, 1, tzinfo=UTC)), Once(0)),
    ],
)
def test_what_people_write(made: Trigger, meant: Trigger) -> None:
    assert made == meant
    assert hash(made) == hash(meant)


def test_an_anchor_at_the_start_is_where_its_schedule_starts() -> None:
    hourly, half_past = every("1h", anchor="start"), NINE_MICROS + 1_800_000_000
    assert hourly.started(half_past) == Every(timedelta(hours=1), half_past)
    assert hourly.started(half_past - 1) == Every(timedelta(hours=1), half_past), "times are whole seconds"
    assert (hourly | once(NINE)).started(0) == Either((Every(timedelta(hours=1), 0), Once(NINE_MICROS)))
    assert every("1h", anchor=NINE).started(half_past) == every("1h", anchor=NINE)
    with pytest.raises(BadTrigger, match=r"anchor: there is no start_at \(say start_at, from which it counts\)"):
        hourly.started(None)
    with pytest.raises(BadTrigger, match="anchor: is not within the years"):
        hourly.started(-2_000_000)
    with pytest.raises(BadTrigger, match="anchor: cannot be 'begin'"):
        every("1h", anchor="begin")


@pytest.mark.parametrize("interval", ["0s", "500ms", "1.5s", "999ms", timedelta(microseconds=1), timedelta(0)])
@pytest.mark.parametrize("make", [every, after])
def test_intervals_that_make_no_sense(make: type[Every], interval: str) -> None:
    with pytest.raises(BadTrigger) as refused:
        make(interval)  # type: ignore[arg-type]
    assert refused.value.field == "interval"
    assert refused.value.hint


@pytest.mark.parametrize("interval", ["-5s", "", "soon", 5, None, timedelta(days=-1), "40000d"])
def test_intervals_that_are_no_durations(interval: str) -> None:
    with pytest.raises(BadDuration):
        every(interval)
    with pytest.raises(BadDuration):
        after(interval)


@pytest.mark.parametrize(
    "moment",
    [
        NINE.replace(tzinfo=None), NINE.replace(microsecond=1), datetime(1969, 12, 31, tzinfo=UTC), "2026-01-01", 5,
        None, datetime(2400, 1, 1, tzinfo=UTC),
    ],
)  # fmt: skip
def test_instants_that_make_no_sense(moment: datetime) -> None:
    with pytest.raises(BadTrigger, match="at: "):
        once(moment)
    if moment is not None:
        with pytest.raises(BadTrigger, match="anchor: "):
            every("1m", anchor=moment)


@pytest.mark.parametrize(
    ("choices", "field", "hint"),
    [
        ({"gap": "afer"}, "gap", "did you mean 'after'"),
        ({"gap": "first"}, "gap", "known: after, skip"),
        ({"fold": "fist"}, "fold", "did you mean 'first'"),
        ({"fold": "x" * 1_000_000}, "fold", "known: both, first, last"),
        ({"gap": 5}, "gap", "known"),
        ({"tz": "Mars/Olympus"}, "timezone", "as in"),
    ],
)
def test_choices_that_there_are_not(choices: dict[str, str], field: str, hint: str) -> None:
    with pytest.raises(BadTrigger, match=hint) as refused:
        cron("0 9 * * *", **choices)
    assert refused.value.field == field
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("expression", "field", "word", "begins"),
    [
        ("*/15 * * * *", "fold", "last", "the minute begins"),
        ("*/15 2 * * *", "gap", "after", "the minute begins"),
        ("0 * * * *", "fold", "first", "the hour begins"),
        ("0 0 */2 * * *", "fold", "last", "the hour begins"),
    ],
)
def test_what_decides_nothing_about_gaps_and_folds(expression: str, field: str, word: str, begins: str) -> None:
    with pytest.raises(BadTrigger, match=f"{field}: means nothing: {begins}") as refused:
        cron(expression, **{field: word})
    assert refused.value.field == field
    assert cron(expression) == Cron(expression)
    assert cron(expression, gap="skip", fold="both") == Cron(expression, "UTC", GapMode.SKIP, FoldMode.BOTH), (
        "what it does anyway"
    )
    validate(Cron(expression, fold=FoldMode.LAST))  # as it may be stored


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("0 0 30 2 *", r"day of month: 30 never comes in February \(it has 29 days at most\)"),
        ("0 0 31,L-30 4,jun ?", r"day of month: 31,L-30 never comes in April and June \(they have 30 days at most\)"),
        ("0 0 */28 * MON#2", r"day of week: MON#2 never meets \*/28"),
        ("0 0 15w * */6", r"day of week: \*/6 never meets 15W"),
    ],
)
def test_days_that_never_come(expression: str, said: str) -> None:
    validate(Cron(expression))  # as a part of a union, it may be stored
    with pytest.raises(BadTrigger, match=said):
        cron(expression)


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 30 2 MON", "0 0 H(30-31) 2 *", "0 0 ? 2 MON#5"])
def test_days_that_come_now_and_then(expression: str) -> None:
    assert cron(expression) == Cron(expression)


class TestUnion:
    def test_it_is_flat_and_without_doubles(self) -> None:
        one, two, three = cron("0 9 * * *"), every("1h"), once(NINE)
        assert one | two == Either((one, two))
        assert (one | two) | three == one | (two | three) == Either((one, two, three))
        assert one | one == Either((one,))
        assert (one | two) | (two | one) == Either((one, two))

    def test_after_is_not_in_it(self) -> None:
        with pytest.raises(BadTrigger, match="after cannot be in a union"):
            after("1m") | every("1m")
        with pytest.raises(BadTrigger, match="after cannot be in a union"):
            every("1m") | after("1m")

    def test_only_triggers_are_in_it(self) -> None:
        with pytest.raises(TypeError):
            every("1m") | "5s"  # type: ignore[operator]

    @pytest.mark.parametrize(
        "union",
        [
            Either(()),
            Either((After(SECOND),)),  # type: ignore[arg-type]
            Either((Either((Once(0),)),)),  # type: ignore[arg-type]
            Either((Cron("x"),)),
            Either(tuple(Once(second * 1_000_000) for second in range(101))),
        ],
    )
    def test_it_is_checked_like_its_parts(self, union: Either) -> None:
        with pytest.raises(BadTrigger):
            validate(union)


@pytest.mark.parametrize(
    "trigger",
    [
        cron("0 9 * * MON", "Asia/Taipei", gap="skip", fold="last"), every("90m"), every("1h", anchor=NINE),
        after("30s"), once(NINE), cron("H * * * *") | every("1h") | once(NINE),
    ],
)  # fmt: skip
def test_a_trigger_survives_json(trigger: Trigger) -> None:
    text = msgspec.json.encode(trigger)
    again: Trigger = msgspec.json.decode(text, type=Trigger)
    assert again == trigger
    validate(again)
    assert msgspec.json.decode(text)["type"] in ("cron", "every", "after", "once", "either")


@pytest.mark.parametrize(
    "trigger",
    [
        Cron("61 * * * *"), Cron("0 9 * * *", "Nowhere"),
        Cron("0 9 * * *", gap="x"), Cron("0 9 * * *", fold="x"),  # type: ignore[arg-type]
        Every(timedelta(0)), Every(-SECOND), Every(SECOND / 2), Every(SECOND, -1), Every(SECOND, 5),
        After(SECOND * 1.5), Every(SECOND, True), Once(-1), Once(1), Once(10**20), "cron", None, 5,
    ],
)  # fmt: skip
def test_what_came_in_as_json_is_checked_alike(trigger: Trigger) -> None:
    with pytest.raises(BadTrigger):
        validate(trigger)


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"either","triggers":[{"type":"after","interval":"PT1S"}]}',
        b'{"type":"either","triggers":[{"type":"either","triggers":[]}]}',
        b'{"type":"sometimes"}',
        b'{"interval":"PT1S"}',
        b'{"type":"once","at":"now"}',
    ],
)
def test_json_of_another_shape_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Trigger)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_provides_all_that_depends_on_it(kind: type[TriggerKind]) -> None:
    for name in ("validate", "source", "describe", "parse", "document"):
        assert getattr(kind, name) is not getattr(TriggerKind, name), f"{kind.__name__} has no {name}"
    assert kind.__struct_config__.tag == kind.key
    assert {option.key for option in kind.options} <= {kind.key, *kind.details}


def test_no_two_kinds_share_a_key() -> None:
    keys = [key for kind in KINDS for key in (kind.key, *kind.details, *kind.other_keys)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("method", ["validate", "source", "describe", "parse", "document"])
def test_a_kind_has_all_that_its_base_leaves_open(kind: type[TriggerKind], method: str) -> None:
    assert any(method in vars(own) for own in kind.__mro__[: kind.__mro__.index(TriggerKind)])
