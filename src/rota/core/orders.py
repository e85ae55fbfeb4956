"""What a caller wants done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Order(msgspec.Struct, frozen=True):
    """One run that a caller wants: a job's name, its arguments, and options for this run."""

    job: str
    arguments: dict[str, Any]
    options: Mapping[str, Any] = {}
