"""Workers as values: which are alive, what operators may request, and which workers a name matches."""

from datetime import timedelta
from typing import Any

import pytest

from rota.core.workers.worker import (
    SILENCE,
    OperatorRequest,
    Presence,
    WorkerSettings,
    WorkerState,
    also_asked,
    checked_settings,
    matching,
    presence,
    read_asked,
    require_heartbeat_within,
    require_one_to_resume,
    uneven,
    weights_of,
    write_asked,
)
from rota.errors import AmbiguousWorker, Conflict, Invalid, UnknownWorker

SECOND = 1_000_000
LEASE = timedelta(seconds=30)
WORKERS = [("web-1@aa11", "web-1"), ("web-2@bb22", "web-2"), ("crawl@cc33", "crawl"), ("crawl@cd44", "crawl")]


@pytest.mark.parametrize(
    ("quiet", "expected"),
    [
        (0, Presence.ALIVE),
        (30 * SECOND, Presence.ALIVE),
        (30 * SECOND + 1, Presence.STALE),
        (SILENCE // timedelta(microseconds=1), Presence.STALE),
        (SILENCE // timedelta(microseconds=1) + 1, Presence.SILENT),
    ],
)
def test_who_is_alive(quiet: int, expected: Presence) -> None:
    assert presence(1_000, 1_000 + quiet, LEASE) is expected


def test_a_longer_lease_tolerates_a_longer_silence() -> None:
    assert presence(0, 50 * SECOND, timedelta(minutes=1)) is Presence.ALIVE
    assert presence(0, 50 * SECOND) is Presence.STALE


def test_queues_are_names_or_have_weights() -> None:
    assert weights_of(["b", "a", "b"]) == {"b": 1, "a": 1}
    assert weights_of({"critical": 4, "default": 1}) == {"critical": 4, "default": 1}
    assert uneven({"a": 3, "b": 3}) == {}
    assert uneven({"a": 3, "b": 1}) == {"a": 3, "b": 1}


@pytest.mark.parametrize("queues", [[], {}, {"a": 0}, {"a": 1_001}, {"a": True}, {"a": 1.5}, {"": 1}, "mail", ["a\n"]])
def test_queues_that_are_refused(queues: Any) -> None:
    with pytest.raises(Invalid):
        weights_of(queues)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"slots": 0},
        {"slots": 10_001},
        {"slots": True},
        {"queues": []},
        {"heartbeat": "99ms"},
        {"heartbeat": "soon"},
        {"poll": "0s"},
    ],
)
def test_settings_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        checked_settings(**given)


def test_settings_that_are_taken() -> None:
    settings = checked_settings(slots=10_000, queues=["a"], heartbeat="100ms", poll="10ms")
    assert settings.queues == {"a": 1}
    require_heartbeat_within(timedelta(milliseconds=300), settings)
    with pytest.raises(Invalid, match="3 × heartbeat"):
        require_heartbeat_within(timedelta(milliseconds=299), settings)
    with pytest.raises(Invalid):
        require_heartbeat_within(None, checked_settings(heartbeat="11s"))


def test_what_is_asked_adds_up() -> None:
    asked = also_asked(OperatorRequest(), settings=WorkerSettings(slots=5))
    asked = also_asked(asked, WorkerState.DRAINING)
    asked = also_asked(asked, settings=WorkerSettings(poll=LEASE))
    assert asked == OperatorRequest(WorkerState.DRAINING, WorkerSettings(slots=5, poll=LEASE))
    assert also_asked(asked, WorkerState.DRAINING) == asked
    assert also_asked(asked, WorkerState.WORKING).settings == asked.settings
    assert read_asked(write_asked(asked)) == asked
    assert read_asked(None) == OperatorRequest()


def test_a_stop_is_not_taken_back() -> None:
    stopping = OperatorRequest(WorkerState.STOPPING)
    assert also_asked(stopping, WorkerState.DRAINING) == also_asked(stopping, WorkerState.WORKING) == stopping
    require_one_to_resume([("a", stopping), ("b", OperatorRequest(WorkerState.DRAINING))])
    with pytest.raises(Conflict, match="worker a was asked to stop"):
        require_one_to_resume([("a", stopping)])


def test_who_is_meant() -> None:
    assert matching("crawl", WORKERS) == ["crawl@cc33", "crawl@cd44"]
    assert matching("crawl@cd44", WORKERS) == ["crawl@cd44"]
    assert matching("crawl@cd", WORKERS) == ["crawl@cd44"]
    assert matching("web-1", WORKERS) == ["web-1@aa11"]
    with pytest.raises(AmbiguousWorker, match="web-1@aa11, web-2@bb22"):
        matching("web", WORKERS)
    with pytest.raises(UnknownWorker, match="did you mean 'crawl'"):
        matching("crwal", WORKERS)
    with pytest.raises(UnknownWorker):
        matching("", WORKERS)


def test_a_name_wins_over_the_beginning_of_another_ones_id() -> None:
    assert matching("web", [("web@1", "web"), ("web-2@1", "web-2")]) == ["web@1"]
