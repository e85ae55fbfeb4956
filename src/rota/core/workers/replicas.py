"""Replicas: a run that several workers must each execute, and what follows from their states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.core.states import RunState
from rota.errors import Invalid, UnknownOption
from rota.values.durations import Duration, parse_duration

ALL = "all"
_MOST = 1_000
_LONGEST_RESULT = 65_536
_ABSENT_AFTER = timedelta(minutes=5)


class Replicas(msgspec.Struct, frozen=True, omit_defaults=True):
    """Replicas on `count` different workers, or on `all` that are alive when the run is due; each must succeed.

    `allowed_failures`: so many may fail, and other workers replace them. `absent_after`: a replica stops waiting for a
    worker that was silent for so long; with `all` it has failed, otherwise another worker may have it.
    """

    count: int | None = None
    all: bool = False
    """Whether all workers execute it that are alive when the run is due."""
    allowed_failures: int = 0
    """How many replicas may fail; other workers replace them."""
    absent_after: timedelta = _ABSENT_AFTER
    """How long a worker may be silent before its replica stops waiting for it."""

    def __post_init__(self) -> None:
        if (self.count is None) is not self.all:
            raise Invalid("replicas: give a count, or all", hint='replicas=3, or replicas="all"')
        if self.count is not None and not 1 <= self.count <= _MOST:
            raise Invalid(f"replicas.count must be 1 to {_MOST}, not {self.count}")
        if self.allowed_failures < 0:
            raise Invalid(f"replicas.allowed_failures must be a whole number from 0 up, not {self.allowed_failures}")
        if self.absent_after <= timedelta(0):
            raise Invalid("replicas.absent_after must be longer than zero")


def require_workers(replicas: Replicas | None, only_workers: Sequence[str]) -> None:
    """Refuse more replicas than workers are named: a name gets one replica of a run, so it could never end."""
    if replicas is not None and only_workers and (replicas.count or 0) > len(only_workers):
        named = ", ".join(only_workers)
        problem = f"replicas={replicas.count} need as many workers, and only_workers names {len(only_workers)}: {named}"
        raise Invalid(problem, hint="name more workers, or ask for fewer replicas")


def require_able(replicas: Replicas, only_workers: Sequence[str], own: Sequence[Replica]) -> None:
    """Refuse a restriction of a run to workers that are too few for its replicas, as far as those have come.

    What has succeeded on other workers counts; a worker on which it failed gets no second replica.
    """
    counted = [replica for replica in own if replica.counts]
    missing = (replicas.count or 0) - sum(replica.succeeded for replica in counted)
    able = {*only_workers} - {replica.worker for replica in counted if not replica.lives}
    if len(able) == len(only_workers) and missing == replicas.count:
        require_workers(replicas, only_workers)
    elif only_workers and missing > len(able):
        problem = f"{missing} of its {replicas.count} replicas have not succeeded, and {len(able)} of these workers can"
        raise Invalid(f"{problem} execute one", hint="name more workers that have not executed one yet")


ReplicasOption = int | str | dict[str, Any] | Replicas | None


def replicas_of(value: ReplicasOption) -> Replicas | None:
    """Parse the `replicas` option: a number, "all", or a dict of its fields."""
    if value is None or isinstance(value, Replicas):
        return value
    if value == ALL:
        return Replicas(all=True)
    if isinstance(value, int) and not isinstance(value, bool):
        return Replicas(count=value)
    if not isinstance(value, dict):
        raise Invalid(f"replicas cannot be {value!r:.80}", hint='3, "all", or {"count": 3, "allowed_failures": 1}')
    for name in value:
        if name not in Replicas.__struct_fields__:
            raise UnknownOption(str(name), Replicas.__struct_fields__, where="replicas")
    absent: Duration = value.get("absent_after", _ABSENT_AFTER)
    try:
        return msgspec.convert({**value, "absent_after": parse_duration(absent)}, Replicas, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid(f"replicas: {error}", hint="count or all, allowed_failures, absent_after") from None


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """Replica, a run of its own."""

    run_id: str
    worker: str | None
    """Name of its worker; null while any may have it."""
    state: RunState
    attempt: int = 0
    error: str | None = None
    """Error in one line."""
    result: Any = None
    finished_at: datetime | None = None
    bound: bool = False
    """True if only this worker may have it."""
    cleared: bool = False
    """True if the run was enqueued again, and this replica no longer counts."""

    @property
    def counts(self) -> bool:
        return not self.cleared

    @property
    def lives(self) -> bool:
        return not self.state.is_final

    @property
    def succeeded(self) -> bool:
        return self.state is RunState.SUCCEEDED

    @property
    def failed(self) -> bool:
        """Return whether it ended in any other way than success."""
        return not self.lives and not self.succeeded


class Wait(msgspec.Struct, frozen=True):
    pass


class More(msgspec.Struct, frozen=True):
    """Decision to add replicas: `count` for any workers, or one for each of `workers`."""

    count: int = 0
    workers: tuple[str, ...] = ()


class Stop(msgspec.Struct, frozen=True):
    """Decision to cancel these replicas."""

    run_ids: tuple[str, ...]


class Finish(msgspec.Struct, frozen=True):
    state: RunState


Decision = Wait | More | Stop | Finish


def wanted(policy: Replicas, replicas: Sequence[Replica]) -> int:
    """Return how many replicas must succeed."""
    return policy.count or len(_names(replicas))


def _names(replicas: Sequence[Replica]) -> set[str]:
    """Return the names of their workers; a replica of `all` without a worker is no longer needed."""
    return {replica.worker for replica in replicas if replica.worker is not None}


def decide(policy: Replicas, replicas: Sequence[Replica], *, cancelling: bool, stoppable: bool = True) -> Decision:
    """Decide the next step of a run with replicas.

    There are never more running and succeeded replicas than required, nor more failed ones than allowed: beyond that
    the run fails, once the others have stopped. A run for `all` workers none of which is left is cancelled.
    `stoppable`: its job supports cancellation of running replicas.
    """
    counted = [replica for replica in replicas if replica.counts]
    live = [replica for replica in replicas if replica.lives]
    succeeded = sum(replica.succeeded for replica in counted)
    failed = sum(replica.failed for replica in counted)
    if cancelling or failed > policy.allowed_failures:
        if live:
            needless = tuple(replica.run_id for replica in live if _may_stop(replica, stoppable))
            return Stop(needless) if needless else Wait()
        if not cancelling:
            return Finish(RunState.FAILED)
        return Finish(RunState.SUCCEEDED if succeeded >= wanted(policy, replicas) else RunState.CANCELLED)
    if policy.count is None:
        missing = _names(replicas) - _names(counted)
        if missing:
            return More(workers=tuple(sorted(missing)))
        if live:
            return Wait()
        return Finish(RunState.SUCCEEDED if counted else RunState.CANCELLED)
    if succeeded >= policy.count:
        return Finish(RunState.SUCCEEDED)
    lacking = policy.count - succeeded - len(live)
    return More(count=lacking) if lacking > 0 else Wait()


def _may_stop(replica: Replica, stoppable: bool) -> bool:
    if replica.state is RunState.CANCELLING:
        return False
    return stoppable or replica.state in (RunState.QUEUED, RunState.SCHEDULED)


def done_share(policy: Replicas, replicas: Sequence[Replica]) -> tuple[int, str]:
    """Return the progress in hundredths of a percent, and in words."""
    whole = wanted(policy, replicas)
    counted = [replica for replica in replicas if replica.counts]
    done = sum(replica.succeeded for replica in counted)
    failed = sum(replica.failed for replica in counted)
    words = f"{done} of {whole} workers done" + (f", {failed} failed" if failed else "")
    over = done + failed if policy.all else done
    return (10_000 * over // whole if whole else 0), words


def result_of(replicas: Sequence[Replica]) -> str:
    """Combine the results of the replicas, up to a size; the whole result of each is with its run."""
    groups: dict[str, dict[str, Any]] = {"replicas": {}, "failed": {}}
    size = left_out = 0
    for replica in replicas:
        if not replica.counts or replica.lives:
            continue
        kind, content = (
            ("replicas", replica.result) if replica.succeeded else ("failed", replica.error or replica.state.value)
        )
        size += len(msgspec.json.encode(content)) + len(replica.worker or replica.run_id) + 4
        if size > _LONGEST_RESULT:
            left_out += 1
        else:
            groups[kind][replica.worker or replica.run_id] = content
    whole: dict[str, Any] = {name: content for name, content in groups.items() if content or name == "replicas"}
    return msgspec.json.encode({**whole, "left_out": left_out} if left_out else whole).decode()
