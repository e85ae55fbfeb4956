"""Notifications that an application declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rota.core.alerts.notifications import Notification, checked_notification
from rota.errors import Conflict
from rota.values.names import checked_name


class Notifications:
    """Declared notifications by name; nothing is stored before the engine starts."""

    def __init__(self) -> None:
        self._declared: dict[str, Notification] = {}

    def __iter__(self) -> Iterator[tuple[str, Notification]]:
        return iter(self._declared.items())

    def of_job(self, job: str, notify: str | Mapping[str, Any]) -> None:
        """Declare `@app.job(notify=…)`: a target, or a dict of options. The newest version's replaces earlier ones."""
        self._declared.pop(f"job:{job}", None)
        self.declare(f"job:{job}", {**_options(notify), "jobs": [job]})

    def of_schedule(self, schedule: str, notify: str | Mapping[str, Any]) -> None:
        """Declare `app.schedule(…, notify=…)`: a target, or a dict of options."""
        self.declare(f"schedule:{schedule}", {**_options(notify), "schedules": [schedule]})

    def declare(self, name: str, options: Mapping[str, Any]) -> None:
        name = checked_name(name, "notification name")
        if name in self._declared:
            raise Conflict(f"notification {name!r} is declared twice", hint="give one of them another name")
        self._declared[name] = checked_notification(name, options)


def _options(notify: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"to": notify} if isinstance(notify, str) else dict(notify)
