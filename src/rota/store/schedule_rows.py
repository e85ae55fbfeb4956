"""A schedule's row as planning and control hold it, locked."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from rota.core.planning import Standing
from rota.core.schedules import ScheduleDefinition
from rota.errors import UnreadableSchedule
from rota.store.database import Row


@lru_cache(maxsize=20_000)
def decoded(text: str) -> ScheduleDefinition:
    """Thousands of schedules may share their text, and each is planned again and again."""
    try:
        return msgspec.json.decode(text, type=ScheduleDefinition)
    except msgspec.DecodeError as error:
        raise UnreadableSchedule(str(error)) from None


def encoded(definition: ScheduleDefinition) -> str:
    return msgspec.json.encode(definition, order="deterministic").decode()


class ScheduleRow(msgspec.Struct, frozen=True, gc=False):
    """In the order of the statements that lock one."""

    id: str
    name: str
    text: str
    revision: int
    enabled: int
    paused_at: int | None
    resume_at: int | None
    job_paused: int
    cursor_at: int
    next_plan: int | None
    awaits: str | None
    fired: int
    tzdata: str
    provider: str | None
    owner: str
    declared: str | None
    cursor_no: int
    open_plan: int | None

    @property
    def definition(self) -> ScheduleDefinition:
        return decoded(self.text)

    @property
    def active(self) -> bool:
        return bool(self.enabled) and self.paused_at is None and not self.job_paused

    @property
    def names(self) -> bool:
        """Whether the plan times of its rule are its own: not after the last run that it may have."""
        return self.active and self.standing.room != 0

    @property
    def standing(self) -> Standing:
        return Standing(self.id, self.name, self.definition, self.cursor_at, self.next_plan, self.fired)


def schedule_row(row: Row) -> ScheduleRow:
    if isinstance(row[0], str):  # ids are text on SQLite
        return ScheduleRow(*row)
    facts = list(row)
    facts[0], facts[10] = str(row[0]), None if row[10] is None else str(row[10])
    return ScheduleRow(*facts)
