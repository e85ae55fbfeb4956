"""Replicas: a run that each of several workers must do, and what follows from how far they are."""

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
    """By `count` different workers, or by `all` that are alive when it is due; each must succeed.

    `allowed_failures`: so many may fail, and others do it in their place. `absent_after`: one whose worker was not
    heard of for so long waits for it no more; it has failed if it is one of `all`, others may do it otherwise.
    """

    count: int | None = None
    all: bool = False
    allowed_failures: int = 0
    absent_after: timedelta = _ABSENT_AFTER

    def __post_init__(self) -> None:
        if (self.count is None) is not self.all:
            raise Invalid("replicas: give a count, or all", hint='replicas=3, or replicas="all"')
        if self.count is not None and not 1 <= self.count <= _MOST:
            raise Invalid(f"replicas.count must be 1 to {_MOST}, not {self.count}")
        if self.allowed_failures < 0:
            raise Invalid(f"replicas.allowed_failures must be a whole number from 0 up, not {self.allowed_failures}")
        if self.absent_after <= timedelta(0):
            raise Invalid("replicas.absent_after must be longer than nothing")


ReplicasOption = int | str | dict[str, Any] | Replicas | None


def replicas_of(value: ReplicasOption) -> Replicas | None:
    """What people write: a number, "all", or all of it in a dict."""
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
    """One of them, a run of its own. `worker` is the name of whose it is, None while anybody may have it; `cleared`:
    it was published again, and counts no more."""

    run_id: str
    worker: str | None
    state: RunState
    attempt: int = 0
    error: str | None = None
    result: Any = None
    finished_at: datetime | None = None
    bound: bool = False
    cleared: bool = False

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
        """However it ended, if it did not succeed."""
        return not self.lives and not self.succeeded


class Wait(msgspec.Struct, frozen=True):
    pass


class More(msgspec.Struct, frozen=True):
    """Others are to do it: so many whoever they are, or just these."""

    count: int = 0
    workers: tuple[str, ...] = ()


class Stop(msgspec.Struct, frozen=True):
    """These replicas are needless."""

    run_ids: tuple[str, ...]


class Finish(msgspec.Struct, frozen=True):
    state: RunState


Decision = Wait | More | Stop | Finish


def wanted(policy: Replicas, replicas: Sequence[Replica]) -> int:
    return policy.count or len(_names(replicas))


def _names(replicas: Sequence[Replica]) -> set[str]:
    """Whose they are; one that is nobody's of `all` is not wanted any more."""
    return {one.worker for one in replicas if one.worker is not None}


def decide(policy: Replicas, replicas: Sequence[Replica], *, cancelling: bool, stoppable: bool = True) -> Decision:
    """Running and succeeded ones are never more than are wanted, failed ones not more than are allowed.

    Beyond that it fails, once the others are stopped. One of `all` of which nobody is to do it any more is cancelled.
    `stoppable`: its job lets running ones be cancelled.
    """
    counted = [one for one in replicas if one.counts]
    live = [one for one in replicas if one.lives]
    succeeded = sum(one.succeeded for one in counted)
    failed = sum(one.failed for one in counted)
    if cancelling or failed > policy.allowed_failures:
        if live:
            needless = tuple(one.run_id for one in live if _may_stop(one, stoppable))
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
    """How far it is, in hundredths of a percent, and in words."""
    whole = wanted(policy, replicas)
    counted = [one for one in replicas if one.counts]
    done = sum(one.succeeded for one in counted)
    failed = sum(one.failed for one in counted)
    words = f"{done} of {whole} workers done" + (f", {failed} failed" if failed else "")
    over = done + failed if policy.all else done
    return (10_000 * over // whole if whole else 0), words


def result_of(replicas: Sequence[Replica]) -> str:
    """What each of them said. As much of it as is useful: the whole result of each is with its run."""
    told: dict[str, dict[str, Any]] = {"replicas": {}, "failed": {}}
    size = left_out = 0
    for one in replicas:
        if not one.counts or one.lives:
            continue
        kind, said = ("replicas", one.result) if one.succeeded else ("failed", one.error or one.state.value)
        size += len(msgspec.json.encode(said)) + len(one.worker or one.run_id) + 4
        if size > _LONGEST_RESULT:
            left_out += 1
        else:
            told[kind][one.worker or one.run_id] = said
    whole: dict[str, Any] = {name: said for name, said in told.items() if said or name == "replicas"}
    return msgspec.json.encode({**whole, "left_out": left_out} if left_out else whole).decode()
