"""Filters of runs as conditions on `rota_run_now`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

import msgspec

from rota.core.runs.payload import checked_values
from rota.core.runs.run import RunFilter
from rota.core.states import FINAL_STATES, RunState
from rota.errors import Invalid
from rota.values.clock import Clock, HostClock
from rota.values.durations import in_micros
from rota.values.instants import micros_at


def _anywhere(condition: str, *tables: str) -> str:
    return f"({' or '.join(f'id in (select run_id from {table} where {condition})' for table in tables)})"


_LIVE_CONDITIONS = {
    RunState.SCHEDULED: "hold in ({open_later}, {blocked}, {limited_later}, {parent}, {restricted_later})",
    RunState.QUEUED: "hold in ({open}, {limited}, {restricted})",
    RunState.RUNNING: "id in (select run_id from rota_lease where cancel_at is null)",
    RunState.CANCELLING: _anywhere("cancel_at is not null", "rota_lease", "rota_outside", "rota_conduct"),
    RunState.WAITING: _anywhere("cancel_at is null", "rota_outside", "rota_conduct"),
}
_SAME = {"job": "job", "queue": "queue", "key": "key", "parent": "parent_id"}
_RETRIED = "exists (select 1 from rota_run again where again.retry_of = rota_run_now.id)"
_BY_WORKER = "(worker_id = :worker or strpos(worker_id, :worker_named) = 1)"
"""By its id; or by a name, which stands before the @ of an id. Not with `like`, which SQLite answers in any case."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SKEW = in_micros(timedelta(days=1))
"""Ids tell the time of the host that made them, `created_at` that of the database: so far apart, at most."""


class Selection(msgspec.Struct, frozen=True):
    conditions: tuple[str, ...]
    values: dict[str, object]

    @property
    def where(self) -> str:
        return f"where {' and '.join(self.conditions)}" if self.conditions else ""

    def narrowed(self, condition: str, **values: object) -> Self:
        return type(self)((*self.conditions, condition), {**self.values, **values})


def selection_of(query: RunFilter, clock: Clock) -> Selection:
    conditions: list[str] = []
    values: dict[str, object] = {}
    if query.states:
        conditions.append("(" + " or ".join(_state_condition(state) for state in query.states) + ")")
    for name, column in _SAME.items():
        value = getattr(query, name)
        if value is not None:
            conditions.append(f"{column} = :{name}")
            values[name] = value
    if query.worker is not None:
        conditions.append(_BY_WORKER)
        values.update(worker=query.worker, worker_named=f"{query.worker}@")
    if query.schedule is not None:
        conditions.append("schedule_id in (select id from rota_schedule where name = :schedule)")
        values["schedule"] = query.schedule
    if query.scope is not None:
        conditions.append("scope_kind = :scope_kind and scope_id = :scope_id")
        values.update(scope_kind=query.scope.kind, scope_id=query.scope.id)
    if query.tag is not None:
        conditions.append("strpos(tags, :tag) > 0")
        values["tag"] = _quoted(query.tag)
    if query.retried is not None:
        conditions.append(_RETRIED if query.retried else f"not {_RETRIED}")
    selection = _with_error(query, Selection(tuple(conditions), values))
    return _created_within(query, clock, _with_values(query, selection))


def _with_error(query: RunFilter, selection: Selection) -> Selection:
    if query.error is not None:
        selection = selection.narrowed("strpos({error_said}, :error) > 0", error=query.error)
    if query.fingerprint is not None:
        # Only ends are in the index by fingerprint. It is enough if live runs, unless they were asked for, are left
        # out.
        live = any(state not in FINAL_STATES for state in query.states)
        condition = "{error_print} = :fingerprint" + ("" if live else " and final_state is not null")
        selection = selection.narrowed(condition, fingerprint=query.fingerprint)
    return selection


def _with_values(query: RunFilter, selection: Selection) -> Selection:
    """Names and values are bound, never a part of the statement. Payloads that do not hold the text of the value
    anywhere need not be read: that is most of them, and reading JSON is dear."""
    for letter, (path, text) in zip(_LETTERS, checked_values(query.payload).items(), strict=False):
        field, bound = "{payload_json}", {}
        for name, key in zip(_LETTERS, path, strict=False):
            field = f"({field} -> ({{name_opens}} || cast(:name_{letter}_{name} as text) || {{name_closes}}))"
            bound[f"name_{letter}_{name}"] = key
        value = f"case when json_typeof({field}) in ('string', 'text') then {field} {{plainly}} "
        value += f"when json_typeof({field}) not in ('object', 'array') then cast({field} as text) end"
        selection = selection.narrowed(f"(strpos(payload, :said_{letter}) > 0 and {value} = :value_{letter})", **bound)
        json_text = msgspec.json.encode(text).decode()[1:-1]
        selection.values.update({f"said_{letter}": json_text, f"value_{letter}": text})
    return selection


def _quoted(tag: str) -> str:
    try:
        return msgspec.json.encode(tag).decode()
    except UnicodeError:
        raise Invalid(f"no run has such a tag: {tag!r:.80}") from None


def _state_condition(state: RunState) -> str:
    return f"final_state = '{state.value}'" if state in FINAL_STATES else _LIVE_CONDITIONS[state]


def _created_within(query: RunFilter, clock: Clock, selection: Selection) -> Selection:
    """Exactly by `created_at`; so that not the whole table is looked through, roughly by id before."""
    ids_tell_time = isinstance(clock, HostClock)  # a clock moved by hand has nothing to do with them
    if query.created_after is not None:
        since = _micros(query.created_after)
        selection = selection.narrowed("created_at >= :created_after", created_after=since)
        if ids_tell_time:
            selection = selection.narrowed("id >= :first_id", first_id=first_id_of(since - _SKEW))
    if query.created_before is not None:
        until = _micros(query.created_before)
        selection = selection.narrowed("created_at < :created_before", created_before=until)
        if ids_tell_time:
            selection = selection.narrowed("id < :last_id", last_id=first_id_of(until + _SKEW))
    return selection


def _micros(at: datetime) -> int:
    if at.tzinfo is None:
        raise Invalid(f"{at.isoformat()} has no zone", hint="give an aware datetime: datetime.now(UTC)")
    return micros_at(at)


def micros_of(run_id: str) -> int:
    """Return the time at which an id was made, in µs."""
    return int(run_id[:8] + run_id[9:13], 16) * 1_000


def first_id_of(micros: int) -> str:
    """No UUIDv7 made then or later is smaller."""
    return str(UUID(int=max(micros, 0) // 1_000 << 80))
