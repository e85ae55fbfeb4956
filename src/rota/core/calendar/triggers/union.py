"""Unions: the times of several triggers, each counted once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, get_args

from rota.core.calendar.notation import text_of
from rota.core.calendar.phrases import listed
from rota.core.calendar.times import Source, Union
from rota.core.calendar.triggers.cron import Cron
from rota.core.calendar.triggers.every import Every
from rota.core.calendar.triggers.kind import TriggerKind, TriggerNotation
from rota.core.calendar.triggers.once import Once
from rota.errors import BadTrigger, Invalid, UnknownOption

Part = Cron | Every | Once
"""The kinds that may be part of a union: those that have times of their own."""

_PARTS: dict[str, type[TriggerKind]] = {kind.key: kind for kind in get_args(Part)}
_MOST_TRIGGERS = 100


class Either(TriggerKind, frozen=True, tag="either"):
    """Times of any of its triggers. It is flat: a union is not part of another one."""

    key: ClassVar[str] = "either"

    triggers: tuple[Part, ...]

    def validate(self) -> None:
        if not 0 < len(self.triggers) <= _MOST_TRIGGERS:
            raise BadTrigger(f"a union has 1 to {_MOST_TRIGGERS} triggers, not {len(self.triggers)}", field="triggers")
        for part in self.triggers:
            if type(part) not in get_args(Part):
                name = type(part).__name__.lower()
                raise BadTrigger(f"{name} cannot be in a union", field="triggers", hint=f"join {listed(_PARTS)}")
            part.validate()

    def source(self, salt: str) -> Source:
        return Union([part.source(salt) for part in self.triggers])

    def describe(self, salt: str | None) -> str:
        return " or ".join(part.describe(salt) for part in self.triggers)

    @classmethod
    def parse(cls, notation: TriggerNotation) -> Self:
        parts = notation.values["either"]
        if not isinstance(parts, list | tuple):
            hint = 'either = [{cron = "…"}, {every = "…"}]'
            raise Invalid(f"{notation.where}: either must be a list, not {parts!r:.80}", hint=hint)
        triggers = [
            _parsed_part(part, notation.zone, f"{notation.where}: either, part {number}")
            for number, part in enumerate(parts, 1)
        ]
        union = cls(tuple(triggers))
        notation.at("either", union.validate)
        return union

    def document(self, zone: str) -> dict[str, Any]:
        return {"either": [part.part_document(zone) for part in self.triggers]}

    def started(self, start_at: int | None) -> Self:
        return type(self)(tuple(part.started(start_at) for part in self.triggers))

    @property
    def parts(self) -> tuple[TriggerKind, ...]:
        return self.triggers

    @property
    def differs_by_salt(self) -> bool:
        return any(part.differs_by_salt for part in self.triggers)

    def require_days(self, salt: str) -> None:
        for part in self.triggers:
            part.require_days(salt)


def joined(first: TriggerKind, second: TriggerKind) -> Either:
    """Return the union of two triggers, each of which may be a union; doubles are left out."""
    parts = dict.fromkeys((*first.parts, *second.parts))
    union = Either(tuple(parts))  # type: ignore[arg-type]  # kinds that cannot be part of it are refused next
    union.validate()
    return union


def _parsed_part(part: object, zone: str, where: str) -> Part:
    keys = [key for key in _PARTS if isinstance(part, Mapping) and key in part]
    if not isinstance(part, Mapping) or len(keys) != 1:
        raise Invalid(f"{where} must have one of {listed(_PARTS)}, not {part!r:.80}")
    kind = _PARTS[keys[0]]
    known = (kind.key, *(("timezone",) if kind.has_zone else ()), *kind.details)
    for key in part:
        if key not in known:
            raise UnknownOption(str(key), known, where=where)
    notation = TriggerNotation(part, zone, where)
    zone = notation.at("timezone", text_of, part.get("timezone", zone))
    return kind.parse(notation._replace(zone=zone))  # type: ignore[return-value]  # `_PARTS` has nothing else
