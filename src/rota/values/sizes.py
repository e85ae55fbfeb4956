"""Sizes as people write them (`"512MB"`, `"1.5GB"`); bytes inside.

1 MB is 1024 × 1024 bytes, as in `memory_peak_mb`.
"""

from __future__ import annotations

import re

from rota.errors import Invalid

Size = str | int

_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_WHOLE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMGT]?)I?B", re.IGNORECASE)


def parse_size(value: object, what: str) -> int:
    """Return the size in bytes; a bare number is bytes."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = round(float(match[1]) * _BYTES[f"{match[2].upper()}B"]) if match else 0
    if size <= 0:
        raise Invalid(f"{what} cannot be {value!r:.80}", hint='write "512MB", "2GB", or a number of bytes')
    return size


def format_size(size: int) -> str:
    for unit in ("TB", "GB", "MB", "KB"):
        if size >= _BYTES[unit]:
            return f"{size / _BYTES[unit]:.4g}{unit}"
    return f"{size}B"
