"""Cron triggers: the times that a cron expression names in a time zone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

from rota.core.calendar.cron_matcher import require_days
from rota.core.calendar.cron_parser import read, require_steps
from rota.core.calendar.cron_times import FoldMode, GapMode, cron_times
from rota.core.calendar.cron_words import cron_words
from rota.core.calendar.notation import text_of
from rota.core.calendar.times import Source
from rota.core.calendar.triggers.kind import Option, TriggerKind, TriggerNotation, mode_of
from rota.core.calendar.zones import zone
from rota.errors import BadTrigger, UnknownOption

GAPS = tuple(mode.value for mode in GapMode)
FOLDS = tuple(mode.value for mode in FoldMode)
_TABLE_KEYS = ("expression", "timezone", "gap", "fold")


class Cron(TriggerKind, frozen=True, tag="cron"):
    """Cron expression in a time zone. `gap` and `fold` apply to expressions that name times of the day: they decide
    what happens when the clocks skip such a time, or repeat it.
    """

    key: ClassVar[str] = "cron"
    details: ClassVar[tuple[str, ...]] = ("gap", "fold")
    options: ClassVar[tuple[Option, ...]] = (
        Option("cron", "EXPR", 'Five fields, six with seconds first, seven with a year: "0 9 * * MON-FRI".'),
    )
    has_zone: ClassVar[bool] = True

    expression: str
    timezone: str = "UTC"
    gap: GapMode = GapMode.AFTER
    fold: FoldMode = FoldMode.FIRST

    def validate(self) -> None:
        read(self.expression)
        zone(self.timezone)
        mode_of(GapMode, "gap", self.gap)
        mode_of(FoldMode, "fold", self.fold)

    def source(self, salt: str) -> Source:
        return cron_times(self.expression, self.timezone, self.gap, self.fold, salt)

    def describe(self, salt: str | None) -> str:
        return cron_words(self.expression, self.timezone, self.gap, self.fold, salt)

    def code(self) -> str:
        return f"cron({self.expression!r})"

    @classmethod
    def parse(cls, notation: TriggerNotation) -> Self:
        values = {key: notation.values[key] for key in cls.details if key in notation.values}
        return notation.at("cron", cls._parsed, notation.values["cron"], {"timezone": notation.zone} | values)

    @classmethod
    def _parsed(cls, value: object, values: dict[str, Any]) -> Self:
        """Read an expression; or a table, if its zone is not that of windows and excluded dates."""
        if isinstance(value, Mapping):
            for key in value:
                if key not in _TABLE_KEYS:
                    raise UnknownOption(str(key), _TABLE_KEYS, where="cron")
            values = values | dict(value)
        else:
            values = {**values, "expression": value}
        for key in _TABLE_KEYS:
            text_of(values.get(key, "-"))
        trigger = cls(
            values.get("expression", ""),
            values["timezone"],
            mode_of(GapMode, "gap", values.get("gap", GapMode.AFTER)),
            mode_of(FoldMode, "fold", values.get("fold", FoldMode.FIRST)),
        )
        trigger.validate()
        require_steps(read(trigger.expression))
        trigger.require_times_of_day(values)
        return trigger

    def document(self, zone: str) -> dict[str, Any]:
        laws = {} if self.gap == GapMode.AFTER else {"gap": str(self.gap)}
        laws |= {} if self.fold == FoldMode.FIRST else {"fold": str(self.fold)}
        if not read(self.expression).is_fixed:
            laws = {}  # schedules of earlier versions may have modes that decide nothing
        if self.timezone == zone:
            return {"cron": self.expression, **laws}
        return {"cron": {"expression": self.expression, "timezone": self.timezone, **laws}}

    def part_document(self, zone: str) -> dict[str, Any]:
        document = self.document(self.timezone)
        return document if self.timezone == zone else {**document, "timezone": self.timezone}

    @property
    def own_zone(self) -> str:
        return self.timezone

    @property
    def differs_by_salt(self) -> bool:
        return "h" in self.expression.lower()

    def require_days(self, salt: str) -> None:
        require_days(read(self.expression, salt))

    def require_times_of_day(self, named: Collection[str]) -> None:
        """Refuse a `gap` or a `fold` that somebody `named`, though it decides nothing. Stored triggers may have one."""
        parsed = read(self.expression)
        if parsed.is_fixed:
            return
        name = "minute" if parsed.minute.text.startswith("*") else "hour"
        for field, mode, actual in (("gap", self.gap, GapMode.SKIP), ("fold", self.fold, FoldMode.BOTH)):
            if field in named and mode != actual:
                why = f"the {name} begins with *, so it fires at each matching time that really passes"
                raise BadTrigger(f"means nothing: {why}", field=field, hint="leave it out, or name times of the day")


def cron(expression: str, tz: str = "UTC", *, gap: str | None = None, fold: str | None = None) -> Cron:
    """Fire at the times of a cron expression of five fields, six with seconds first, or seven with the year last.

    If it names times of the day, `gap` is after (the default) or skip, and `fold` is first (the default), last or both.
    """
    trigger = Cron(
        expression,
        tz,
        GapMode.AFTER if gap is None else mode_of(GapMode, "gap", gap),
        FoldMode.FIRST if fold is None else mode_of(FoldMode, "fold", fold),
    )
    trigger.validate()
    require_steps(read(expression))
    trigger.require_times_of_day([field for field, mode in (("gap", gap), ("fold", fold)) if mode is not None])
    if not read(expression).has_hash:  # else the schedule's name decides on which days
        trigger.require_days("")
    return trigger
