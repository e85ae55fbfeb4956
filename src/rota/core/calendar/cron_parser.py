"""Parser of cron expressions: returns the set of values of each field, or an error that names the field."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from rota.errors import BadTrigger, did_you_mean

LONGEST = 256
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_FIELDS = "minute hour day-of-month month day-of-week; or with seconds first; or with seconds first and the year last"
_EVERY = 'an interval is a trigger of its own: every("5m"), every = "5m" in a file, --every 5m'
_DIGITS = re.compile(r"[0-9]{1,4}")
_HASHED = re.compile(r"h(?:\(([^()]*)\))?(?:/(.*))?")
_FROM_LAST = re.compile(r"l(?:-([0-9]{1,2}))?")
_NEAR = re.compile(r"([0-9]{1,2})w")
_NTH = re.compile(r"([a-z0-9]{1,4})#(.*)")
_LAST_WEEKDAY = re.compile(r"([a-z0-9]{1,4}?)l")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of field: its name, and the values that it may have."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    spread_high: int = 0  # `H` stays within the days that every month has
    unit: str = ""  # of an interval that is no step of this field

    @property
    def values(self) -> str:
        """Describe the values, for hints."""
        named = f" or {self.names[0].upper()} to {self.names[-1].upper()}" if self.names else ""
        return f"values are {self.low} to {self.high}{named}"

    def number_of(self, word: str) -> int | None:
        if word in self.names:
            return self.names.index(word) + self.low
        return int(word) if _DIGITS.fullmatch(word) else None


SECOND = Kind("second", 0, 59, unit="s")
MINUTE = Kind("minute", 0, 59, unit="m")
HOUR = Kind("hour", 0, 23, unit="h")
DAY_OF_MONTH = Kind("day of month", 1, 31, spread_high=28, unit="d")
MONTH = Kind("month", 1, 12, MONTHS)
DAY_OF_WEEK = Kind("day of week", 0, 7, WEEKDAYS, spread_high=6)
KINDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
YEAR = Kind("year", 1970, 2399)


class Field(msgspec.Struct, gc=False):
    """One field: its values as bits, and beside them the days that depend on the month.

    Neither fields nor expressions can form cycles: the garbage collector need not track thousands of them.
    """

    text: str
    bits: int = 0
    from_last: tuple[int, ...] = ()  # L, L-3
    near: tuple[int, ...] = ()  # 15W; LW is 0
    nth: tuple[tuple[int, int], ...] = ()  # MON#3; 5L and FRI#L are the 0th
    wide: str = ""  # an item whose step is beyond its range, which matches one value only

    @property
    def is_open(self) -> bool:
        return self.text[0] in "*?"

    @property
    def is_every(self) -> bool:
        return self.text == "*"

    @property
    def values(self) -> list[int]:
        return [value for value in range(self.bits.bit_length()) if self.bits >> value & 1]


class Expression(msgspec.Struct, frozen=True, gc=False):
    """A parsed cron expression; shared, so nobody changes its fields."""

    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    has_hash: bool
    year: Field | None = None  # None: every year

    @property
    def is_fixed(self) -> bool:
        """Return whether it names times of the day, so that a gap or a fold needs a decision."""
        return not (self.minute.text.startswith("*") or self.hour.text.startswith("*"))

    @property
    def either_day(self) -> bool:
        """Return whether day of month and day of week are alternatives: they are when both are restricted, unless a +
        before the day of week asks for both.
        """
        return not (self.day.is_open or self.weekday.is_open or self.weekday.text[0] == "+")


def read(text: str, salt: str = "") -> Expression:
    """Parse an expression; `salt` decides what `H` stands for."""
    if not isinstance(text, str):
        raise BadTrigger("a cron expression is text", field="expression", hint='as in "0 9 * * MON-FRI"')
    if len(text) > LONGEST:
        raise BadTrigger(f"is longer than {LONGEST} characters", field="expression")
    return _read(text, salt)


@lru_cache(maxsize=4_096)
def _read(text: str, salt: str) -> Expression:
    words = _words(text)
    if len(words) == 5:
        words.insert(0, "0")
    year = _field(YEAR, words.pop(), salt) if len(words) == 7 else None
    second, minute, hour, day, month, weekday = map(_field, KINDS, words, [salt] * len(KINDS))
    has_hash = any(_has_hash(word) for word in words)
    return Expression(second, minute, hour, day, month, weekday, has_hash, None if year and year.is_every else year)


def require_steps(expression: Expression) -> None:
    """Refuse a step beyond the range of its field. Schedules that are stored already may have one, and keep it."""
    fields = (
        expression.second, expression.minute, expression.hour, expression.day, expression.month, expression.weekday,
        expression.year,
    )  # fmt: skip
    for kind, field in zip((*KINDS, YEAR), fields, strict=True):
        if field is not None and field.wide:
            problem = f"{field.wide!a} has a step beyond its range, so that it matches one value only"
            raise BadTrigger(problem, field=kind.name, hint=_interval_hint(kind, field.wide.rpartition("/")[2]))


def _interval_hint(kind: Kind, step: str) -> str:
    if kind.unit:
        return f'for an interval of {step}{kind.unit} use every("{step}{kind.unit}"), --every {step}{kind.unit}'
    return f"{kind.values}: name the one that you mean"


def _words(text: str) -> list[str]:
    if not text.isascii():
        raise BadTrigger(f"{text!a} has characters that are not ASCII", field="expression", hint="write digits 0 to 9")
    words = text.lower().split()
    if words and words[0] == "@every":
        raise BadTrigger("'@every' is no cron expression", field="expression", hint=_EVERY)
    if len(words) == 1 and words[0].startswith("@"):
        known = NICKNAMES.get(words[0])
        if known is None:
            raise BadTrigger(f"there is no {text.strip()!a}", field="expression", hint=_nickname_hint(words[0]))
        words = known.split()
    if len(words) not in (5, 6, 7):
        raise BadTrigger(f"{text!a} has {len(words)} fields instead of 5, 6 or 7", field="expression", hint=_FIELDS)
    return words


def _nickname_hint(word: str) -> str:
    if word == "@reboot":
        return "a schedule has times; run what is needed at a start from the program itself"
    return did_you_mean(word, NICKNAMES) or "known: " + ", ".join(NICKNAMES)


def _has_hash(word: str) -> bool:
    return any(item.startswith("h") for item in word.split(","))


def _field(kind: Kind, word: str, salt: str) -> Field:
    field = Field(word)
    both = kind is DAY_OF_WEEK and word.startswith("+")
    position = int(both)
    for item in word[position:].split(","):
        try:
            _add(kind, item, field, salt)
        except _Wrong as wrong:
            where = f" at character {position + 1}" if "," in word else ""
            raise BadTrigger(f"{item!a}{where} {wrong.problem}", field=kind.name, hint=wrong.hint) from None
        position += len(item) + 1
    if kind is DAY_OF_WEEK:
        field.bits = (field.bits | field.bits >> 7) & 0b111_1111  # 7 is Sunday too
    return field


class _Wrong(Exception):
    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def _add(kind: Kind, item: str, field: Field, salt: str) -> None:
    if not item:
        raise _Wrong("is an empty item of a list", "remove the extra comma, or write a value")
    if item == "?":
        _add_any(kind, field)
    elif item.startswith("h") and kind is not YEAR:
        field.bits |= _spread(kind, item, field, salt)
    elif not (_add_special_day(item, field) if kind is DAY_OF_MONTH else False) and not (
        _add_special_weekday(item, field) if kind is DAY_OF_WEEK else False
    ):
        field.bits |= _plain(kind, item, field)


def _add_any(kind: Kind, field: Field) -> None:
    if kind not in (DAY_OF_MONTH, DAY_OF_WEEK):
        raise _Wrong("is only for days", "write * for every value")
    if field.text != "?":
        raise _Wrong("stands alone", "write * or leave it out")
    field.bits = _run(kind.low, kind.high, 1)


def _plain(kind: Kind, item: str, field: Field) -> int:
    """Parse `*`, `5` or `1-5`, each with or without `/step`."""
    span, slash, step_text = item.partition("/")
    step = _step(step_text) if slash else 1
    top = 6 if kind is DAY_OF_WEEK else kind.high
    if step > top - kind.low + 1:
        field.wide = item
    if span == "*":
        return _run(kind.low, top, step)
    first, dash, last = span.partition("-")
    low = _number(kind, first)
    if not dash:
        return _run(low if low <= top else 0, top, step) if slash else 1 << low  # 7/2 is 0/2
    high = 7 if kind is DAY_OF_WEEK and last == "sun" and low > 0 else _number(kind, last)
    if high < low:
        raise _Wrong("is a reversed range", _unrolled(kind, first, last))
    if slash and step > high - low + 1:
        field.wide = item
    return _run(low, high, step)


def _unrolled(kind: Kind, first: str, last: str) -> str:
    if kind is DAY_OF_WEEK and last == "0":
        return f"write {first}-7: Sunday is 0 and 7"
    if kind is DAY_OF_WEEK and first == "7":
        return f"write 0-{last}: Sunday is 0 and 7"
    return f"write two ranges: {first}-{6 if kind is DAY_OF_WEEK else kind.high},{kind.low}-{last}"


def _number(kind: Kind, word: str) -> int:
    number = kind.number_of(word)
    if number is None:
        near = did_you_mean(word, kind.names, few=0) if len(word) < 20 else None
        raise _Wrong("is not understood", near or kind.values)
    if not kind.low <= number <= kind.high:
        raise _Wrong("is out of range", kind.values)
    return number


def _step(text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise _Wrong("has a step that is no number", "as in */15")
    if int(text) == 0:
        raise _Wrong("has a step of 0", "the smallest step is 1")
    return int(text)


def _run(low: int, high: int, step: int) -> int:
    bits = 0
    for value in range(low, high + 1, step):
        bits |= 1 << value
    return bits


def _spread(kind: Kind, item: str, field: Field, salt: str) -> int:
    """Parse `H`, `H/15`, `H(0-29)`, `H(0-29)/10`: a value, or a phase, that differs from salt to salt."""
    shape = _HASHED.fullmatch(item)
    if shape is None:
        raise _Wrong("is not understood", "as in H, H/15, H(0-29) or H(0-29)/10")
    low, high = kind.low, kind.spread_high or kind.high
    if shape[1] is not None:
        first, dash, last = shape[1].partition("-")
        low, high = _number(kind, first), _number(kind, last if dash else "")
    if high < low:
        raise _Wrong("is a reversed range")
    seed = f"{salt}\0{kind.name}".encode(errors="surrogatepass")
    drawn = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest())
    if shape[2] is None:
        return 1 << low + drawn % (high - low + 1)
    step = _step(shape[2])
    if step > high - low + 1:
        field.wide = item
    return _run(low + drawn % min(step, high - low + 1), high, step)


def _add_special_day(item: str, field: Field) -> bool:
    """Add `L`, `L-3`, `LW` or `15W` to the field; return False if `item` is none of them."""
    if item == "lw":
        field.near += (0,)
    elif shape := _FROM_LAST.fullmatch(item):
        if int(shape[1] or 0) > 30:
            raise _Wrong("is out of range", "L-30 is the first of a month of 31 days")
        field.from_last += (int(shape[1] or 0),)
    elif shape := _NEAR.fullmatch(item):
        field.near += (_number(DAY_OF_MONTH, shape[1]),)
    else:
        return False
    return True


def _add_special_weekday(item: str, field: Field) -> bool:
    """Add `5L` or `MON#3` to the field; return False if `item` is neither."""
    if item == "l":
        raise _Wrong("needs a day of the week", "5L is the last Friday of the month")
    if shape := _NTH.fullmatch(item):
        if shape[2] not in ("1", "2", "3", "4", "5", "l"):
            raise _Wrong("is out of range", "MON#1 to MON#5 are the Mondays of a month, MON#L is the last")
        field.nth += ((_number(DAY_OF_WEEK, shape[1]) % 7, int(shape[2].replace("l", "0"))),)
    elif (shape := _LAST_WEEKDAY.fullmatch(item)) and DAY_OF_WEEK.number_of(shape[1]) is not None:
        field.nth += ((_number(DAY_OF_WEEK, shape[1]) % 7, 0),)
    else:
        return False
    return True
