"""Kinds of triggers, one module each: the part of a schedule's rule that names its times."""

from __future__ import annotations

from typing import get_args

from rota.core.calendar.triggers.after import After, after
from rota.core.calendar.triggers.cron import FOLDS, GAPS, Cron, cron
from rota.core.calendar.triggers.every import Every, every
from rota.core.calendar.triggers.job_end import ENDS, Following, following
from rota.core.calendar.triggers.kind import TriggerKind, TriggerNotation
from rota.core.calendar.triggers.once import Once, once
from rota.core.calendar.triggers.union import Either
from rota.errors import BadTrigger

__all__ = [
    "ENDS",
    "FOLDS",
    "GAPS",
    "KINDS",
    "After",
    "Cron",
    "Either",
    "Every",
    "Following",
    "Once",
    "Trigger",
    "TriggerKind",
    "TriggerNotation",
    "after",
    "cron",
    "every",
    "following",
    "once",
    "validate",
]

Trigger = Cron | Every | After | Following | Once | Either
"""The registry: a kind that is not in it is not stored, read, or offered."""

KINDS: tuple[type[TriggerKind], ...] = get_args(Trigger)


def validate(trigger: object) -> None:
    """Refuse what is no trigger, or makes no sense."""
    if not isinstance(trigger, TriggerKind):
        hint = "use cron, every, after, following or once"
        raise BadTrigger(f"{type(trigger).__name__} is no trigger", hint=hint)
    trigger.validate()
