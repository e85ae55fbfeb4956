"""Process limits: what a job may declare, and what is refused."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import pytest

from rota import Context, Invalid
from rota.registry.jobs import declare
from rota.values.sizes import format_size, parse_size


def work() -> None: ...


def declared(**options: Any) -> Any:
    return declare(work, Context, options).definition


def test_by_default_nothing_is_limited() -> None:
    assert (declared().cpu_limit, declared().memory_limit, declared().local_retries) == (None, None, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_limits_are_read() -> None:
    definition = declared(isolation="process", cpu_limit="30s", memory_limit="512MB", local_retries=20)
    assert definition.cpu_limit == timedelta(seconds=30)
    assert definition.memory_limit == 512 * 1024 * 1024
    assert definition.local_retries == 20


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpu_limit": "30s"}, 'cpu_limit needs a process of its own (add isolation="process")'),
        ({"memory_limit": "512MB", "isolation": "thread"}, "memory_limit needs a process of its own"),
        ({"cpu_limit": "0s", "isolation": "process"}, "longer than zero"),
        ({"cpu_limit": 30, "isolation": "process"}, "30"),
        ({"memory_limit": "16MB", "isolation": "process"}, "must be 32MB or more, not 16MB"),
        ({"memory_limit": "much", "isolation": "process"}, "cannot be 'much'"),
        ({"local_retries": 21}, "from 0 to 20, not 21"),
        ({"local_retries": True}, "from 0 to 20"),
        ({"local_retries": "3"}, "from 0 to 20"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid) as refused:
        declared(**options)
    assert words in f"{refused.value.message} ({refused.value.hint})"


def test_a_system_that_cannot_hold_a_process_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(Invalid, match="cpu_limit is not supported"):
        declared(isolation="process", cpu_limit="30s")
    with pytest.raises(Invalid, match="memory_limit needs Linux"):
        declared(isolation="process", memory_limit="512MB")


@pytest.mark.parametrize(
    ("text", "size"),
    [("512MB", 512 << 20), ("1.5 GB", 3 << 29), ("64mib", 64 << 20), ("100B", 100), (1024, 1024), ("2kb", 2048)],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text, "it") == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1e3MB", "0MB", 0, -5, True, 1.5, None, "1PB", "١MB", "9" * 40])
def test_no_sizes(text: object) -> None:
    with pytest.raises(Invalid):
        parse_size(text, "it")


@pytest.mark.parametrize("text", ["1B", "2KB", "512MB", "1.5GB", "3TB"])
def test_sizes_are_written_as_they_are_read(text: str) -> None:
    assert format_size(parse_size(text, "it")) == text
