"""Triggers of schedules, as scripts write them."""

from __future__ import annotations

from typing import Any

from rota.core.calendar.triggers import Trigger, after, cron, every


def trigger_of(words: dict[str, Any]) -> Trigger:
    if "every" in words:
        return every(words["every"])
    if "after" in words:
        return after(words["after"])
    return cron(words["cron"], words.get("tz", "UTC"))
