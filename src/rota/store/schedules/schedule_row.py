"""A schedule's row as planning and changes hold it, locked."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from rota.core.planning.tick import ScheduleState
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import UnreadableSchedule
from rota.store.databases.database import Row


@lru_cache(maxsize=20_000)
def decoded(text: str) -> ScheduleDefinition:
    """Decode a definition. Cached, because thousands of schedules may share their text, and each is planned often."""
    try:
        return msgspec.json.decode(text, type=ScheduleDefinition)
    except msgspec.DecodeError as error:
        raise UnreadableSchedule(str(error)) from None


def readable(text: str) -> ScheduleDefinition | None:
    """Decode a definition. None if a newer rota has written it, so that lists go on without it."""
    try:
        return decoded(text)
    except UnreadableSchedule:
        return None


def encoded(definition: ScheduleDefinition) -> str:
    return msgspec.json.encode(definition, order="deterministic").decode()


class ScheduleRow(msgspec.Struct, frozen=True, gc=False):
    """A schedule's row: its definition, then how far it is planned.

    The fields are in the order of `{schedule_row}` in the statements. `has_lanes`: its lanes hold more than the open
    run tells. `rowid`: where SQLite keeps its cursor, if it was read.
    """

    cursor_no: int
    id: str
    name: str
    text: str
    revision: int
    enabled: int
    paused_at: int | None
    resume_at: int | None
    job_paused: int
    owner: str
    declared: str | None
    has_lanes: int
    cursor_at: int
    next_plan: int | None
    open_plan: int | None
    fired: int
    tzdata: str
    provider: str | None
    awaits: str | None
    rowid: int | None = None

    @property
    def definition(self) -> ScheduleDefinition:
        return decoded(self.text)

    @property
    def active(self) -> bool:
        return bool(self.enabled) and self.paused_at is None and not self.job_paused

    @property
    def names(self) -> bool:
        """Return whether the rule's plan times belong to the schedule: not after the last run that it may have."""
        return self.active and self.standing.room != 0

    @property
    def standing(self) -> ScheduleState:
        return ScheduleState(self.id, self.name, self.definition, self.cursor_at, self.next_plan, self.fired)


def schedule_row(row: Row) -> ScheduleRow:
    """Build the row from the columns of `{schedule_row}`. On PostgreSQL, ids are UUIDs and not texts."""
    cursor_no, id, *facts, awaits = row
    return ScheduleRow(*(cursor_no, str(id), *facts, None if awaits is None else str(awaits)))
