"""Unique keys: which enqueues are the same work, and what the second one gets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import assert_never

import msgspec

from rota.errors import Invalid, did_you_mean
from rota.values.scope import Scope


class OnConflict(StrEnum):
    """Answer to an enqueue while another run holds its unique key."""

    EXISTING = "existing"
    REPLACE = "replace"
    REJECT = "reject"


ON_CONFLICT = tuple(mode.value for mode in OnConflict)
_BY_WORD = {mode.value: mode for mode in OnConflict}
CLEARED = ("failed", "succeeded")


class Unique(msgspec.Struct, frozen=True):
    """Uniqueness by `fields` of the payload (none: all of it), until the run is final or for `period` after creation.

    `clear`: replicas of the existing run that have failed, or succeeded, are run again.
    """

    fields: tuple[str, ...] = ()
    period: timedelta | None = None
    on_conflict: str = "existing"
    clear: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for outcome in self.clear:
            if outcome not in CLEARED:
                raise Invalid(f"unique.clear cannot be {outcome!r}", hint=did_you_mean(outcome, CLEARED))


class PartKey(msgspec.Struct, frozen=True):
    """Idempotency key of one run in a request for `of` runs; with another `of` it is another request."""

    name: str
    of: int = 1


class KeyHold(msgspec.Struct, frozen=True, gc=False):
    """Key that a new run wants to hold.

    It is held while the holder is not final, and until `period` (µs) after its creation; with `once` also for ever
    after a success. With a `fingerprint` the key identifies a request: the same key with other content is an error.
    `label` is the key as its owner wrote it.
    """

    key: str
    on_conflict: OnConflict = OnConflict.EXISTING
    period: int | None = None
    once: bool = False
    fingerprint: str | None = None
    label: str | None = None
    clear: tuple[str, ...] = ()


def on_conflict_of(word: str) -> OnConflict:
    """Return the mode that a stored `unique` names.

    A word of a newer program counts as `existing`: no run is lost, and none is made twice.
    """
    return _BY_WORD.get(word, OnConflict.EXISTING)


def replaces(mode: OnConflict) -> bool:
    """Return whether a new run takes the place of the one that holds its key."""
    match mode:
        case OnConflict.REPLACE:
            return True
        case OnConflict.EXISTING | OnConflict.REJECT:
            return False
        case _:
            assert_never(mode)


def checked_mode(unique: Unique) -> Unique:
    """Check the mode of a `unique` that somebody declares.

    `Unique` itself is stored, and does not check it: a newer program's word must not make it unreadable.
    """
    if unique.on_conflict not in ON_CONFLICT:
        hint = did_you_mean(unique.on_conflict, ON_CONFLICT)
        raise Invalid(f"unique.on_conflict cannot be {unique.on_conflict!r}", hint=hint)
    mode = on_conflict_of(unique.on_conflict)
    match mode:
        case OnConflict.EXISTING:
            return unique
        case OnConflict.REPLACE | OnConflict.REJECT:
            if unique.clear:
                hint = "leave one of them out"
                raise Invalid(f"unique.clear means nothing if on_conflict is {unique.on_conflict!r}", hint=hint)
            return unique
        case _:
            assert_never(mode)


def unique_key(job: str, scope: Scope, key: str) -> str:
    return "u:" + _digest([job, scope.kind, scope.id, "key", key])


def unique_fields(job: str, scope: Scope, fields: Sequence[str]) -> Callable[[str], str]:
    """Return what makes the key of a payload from the chosen fields, or all; the order of names does not matter."""
    digest = _digest_with([job, scope.kind, scope.id, "fields"], [])

    def key(payload: str) -> str:
        content = msgspec.json.decode(payload)
        if fields:
            content = {name: content.get(name) for name in fields}
        return "u:" + digest(content)

    return key


def once_key(job: str, scope: Scope) -> str:
    return "o:" + _digest([job, scope.kind, scope.id])


def idempotency_key(key: str, within: Scope | None = None) -> str:
    """Return the stored key; that of a caller restricted to one scope is local to it and never collides."""
    return "i:" + _digest([key] if within is None else [key, within.kind, within.id])


def fingerprint(*content: object) -> str:
    return _digest(list(content))


def fingerprint_with(before: Sequence[object], after: Sequence[object]) -> Callable[[object], str]:
    """Return what computes `fingerprint(*before, content, *after)`."""
    return _digest_with(before, after)


_encode = msgspec.json.Encoder(order="deterministic").encode


def _digest(content: object) -> str:
    return hashlib.sha256(_encode(content)).hexdigest()[:40]


def _digest_with(before: Sequence[object], after: Sequence[object]) -> Callable[[object], str]:
    """Return what computes `_digest([*before, content, *after])`: a bulk encodes once what its runs have in common."""
    head = _encode(before)[:-1] + b","
    tail = b"," + _encode(after)[1:] if after else b"]"

    def digest(content: object) -> str:
        return hashlib.sha256(b"%b%b%b" % (head, _encode(content), tail)).hexdigest()[:40]

    return digest
