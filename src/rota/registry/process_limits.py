"""Limits of one attempt that a job may declare: CPU time and memory of its process, retries inside it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, assert_never

from rota.core.jobs.job import Isolation, isolation_of
from rota.errors import Invalid
from rota.values.durations import parse_duration
from rota.values.sizes import format_size, parse_size

_SMALLEST = 32 << 20  # an empty Python process takes nearly as much
_MOST_LOCAL_RETRIES = 20


def cpu_limit(options: Mapping[str, Any]) -> timedelta | None:
    if options.get("cpu_limit") is None:
        return None
    _only_in_a_process(options, "cpu_limit")
    if importlib.util.find_spec("resource") is None:
        raise Invalid("cpu_limit is not supported: this system cannot limit a process")
    span = parse_duration(options["cpu_limit"], "cpu_limit")
    if span <= timedelta(0):
        raise Invalid("a cpu_limit must be longer than zero", hint="leave it out for no limit")
    return span


def memory_limit(options: Mapping[str, Any]) -> int | None:
    if options.get("memory_limit") is None:
        return None
    _only_in_a_process(options, "memory_limit")
    if sys.platform != "linux":
        raise Invalid(f"memory_limit needs Linux; {sys.platform} does not enforce it")
    size = parse_size(options["memory_limit"], "memory_limit")
    if size < _SMALLEST:
        hint = "it counts the whole process, the interpreter and its imports included"
        raise Invalid(f"a memory_limit must be {format_size(_SMALLEST)} or more, not {format_size(size)}", hint=hint)
    return size


def _only_in_a_process(options: Mapping[str, Any], option: str) -> None:
    isolation = isolation_of(options.get("isolation", Isolation.THREAD))
    match isolation:
        case Isolation.PROCESS:
            pass
        case Isolation.THREAD:
            raise Invalid(f"{option} needs a process of its own", hint='add isolation="process"')
        case _:
            assert_never(isolation)


def local_retries(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_LOCAL_RETRIES:
        raise Invalid(f"local_retries must be a whole number from 0 to {_MOST_LOCAL_RETRIES}, not {value!r:.80}")
    return value
