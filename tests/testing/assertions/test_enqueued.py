"""Test `assert_enqueued` and `assert_not_enqueued`: inline, and with a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import pytest

from rota import Invalid, Rota
from rota.testing import BlockingHarness, Harness, assert_enqueued, assert_not_enqueued, inline

NOON = datetime(2031, 1, 1, 12, tzinfo=UTC)

app = Rota("sqlite:///unused.db")


@app.job
def welcome(user: str, age: int = 0, tags: list[str] | None = None) -> None: ...


@app.job
def tally(count: int) -> None: ...


@pytest.fixture(params=["inline", "sqlite"], autouse=True)
def everywhere(request: pytest.FixtureRequest) -> Iterator[object]:
    if request.param == "inline":
        with inline(app) as inlined:
            yield inlined
    else:
        with Harness.blocking(app, request.getfixturevalue(f"{request.param}_url")) as harness:
            yield harness


def refused(act: Callable[[], object], *words: str) -> str:
    with pytest.raises(AssertionError) as found:
        act()
    message = str(found.value)
    assert [word for word in words if word not in message] == []
    return message


def test_a_part_of_the_payload_is_enough() -> None:
    welcome.enqueue(user="ada", age=36, tags=["vip"])
    welcome.enqueue(user="bob")
    assert assert_enqueued(welcome, user="ada").payload["age"] == 36
    assert assert_enqueued(welcome, {"user": "ada"}, age=36).payload["user"] == "ada"
    assert assert_enqueued(welcome).payload["user"] == "bob"
    assert_enqueued(welcome, user="ada", tags=ANY)
    assert_not_enqueued(welcome, user="eve")
    assert_not_enqueued(welcome, user="bob", age=36)


def test_the_error_shows_what_was_and_the_nearest_of_it() -> None:
    welcome.enqueue(user="ada", age=36)
    welcome.enqueue(user="bob", age=40)
    message = refused(
        lambda: assert_enqueued(welcome, user="ada", age=37),
        "'welcome' was not enqueued with user='ada', age=37. It was enqueued twice",
        "{'user': 'ada', 'age': 36}: nearest: age is 36, not 37",
        "{'user': 'bob', 'age': 40}: user is 'bob', not 'ada'; age is 40, not 37",
    )
    assert message.count("nearest") == 1
    refused(lambda: assert_not_enqueued(welcome, user="ada"), "'welcome' was enqueued once with user='ada'")
    refused(lambda: assert_enqueued(tally), "'tally' was not enqueued. Other jobs were: 'welcome' twice")


def test_nothing_at_all_is_said_so() -> None:
    assert_not_enqueued(welcome)
    refused(lambda: assert_enqueued(welcome), "'welcome' was not enqueued. No job was enqueued at all")


def test_the_nearest_is_shown_even_if_it_is_old() -> None:
    welcome.enqueue(user="ada", age=1)
    welcome.enqueue_many([{"user": f"user {n}", "age": 5} for n in range(20)])
    message = refused(lambda: assert_enqueued(welcome, user="ada", age=2), "nearest: age is 1, not 2", "… of 21")
    assert len(message.splitlines()) == 1 + 10 + 1 + 1


def test_how_often() -> None:
    welcome.enqueue(user="ada")
    welcome.enqueue(user="ada")
    assert_enqueued(welcome, user="ada", count=2)
    refused(lambda: assert_enqueued(welcome, count=3), "'welcome' was enqueued twice, not 3 times")
    refused(lambda: assert_enqueued(welcome, user="ada", count=1), "was enqueued twice with user='ada', not once")
    refused(lambda: assert_enqueued(welcome, user="eve", count=1), "was not enqueued with user='eve'")


def test_a_value_called_count_is_not_taken_for_how_often() -> None:
    tally.enqueue(count=3)
    with pytest.raises(Invalid, match="is that meant, or how often"):
        assert_enqueued(tally, count=3)
    assert_enqueued(tally, {"count": 3})
    assert_enqueued(tally, {"count": 3}, count=1)
    assert_not_enqueued(tally, count=1)


def test_options_are_looked_for_as_they_are_given() -> None:
    welcome.options(queue="mail", priority=5, delay="10m", key="k", scope=("tenant", "7"), tags=["a", "b"]).enqueue(
        "ada"
    )
    assert_enqueued(welcome.options(queue="mail", delay=timedelta(minutes=10)), user="ada")
    assert_enqueued(welcome.options(scope=("tenant", "7"), priority=5, tags=["b"], key="k"))
    assert_not_enqueued(welcome.options(queue="default"))
    assert_not_enqueued(welcome.options(tags=["b", "c"]))
    refused(
        lambda: assert_enqueued(welcome.options(queue="post", delay="5m"), user="ada"),
        "with user='ada', queue 'post', delay 0:05:00",
        "queue is 'mail', not 'post'; delay is 0:10:00, not 0:05:00",
    )
    refused(lambda: assert_enqueued(welcome.options(scope=("tenant", "8"))), "scope is tenant/7, not tenant/8")


def test_when_it_is_due_and_what_it_is_marked_with() -> None:
    welcome.options(run_at=NOON, metadata={"from": "form", "n": 1}, max_attempts=2).enqueue("ada")
    assert_enqueued(welcome.options(run_at=NOON, metadata={"n": 1}, max_attempts=2))
    assert_not_enqueued(welcome.options(metadata={"n": 2}))
    assert_not_enqueued(welcome.options(run_at=NOON + timedelta(seconds=1)))


def test_what_can_never_be_found_is_refused() -> None:
    with pytest.raises(Invalid, match=r"has no 'usr'.*did you mean 'user'"):
        assert_not_enqueued(welcome, usr="ada")
    with pytest.raises(Invalid, match="timeout cannot be looked for"):
        assert_enqueued(welcome.options(timeout="5m"))


def test_once_it_has_begun_its_first_time_is_not_kept(everywhere: object) -> None:
    welcome.enqueue("ada")
    if not isinstance(everywhere, BlockingHarness):
        return
    everywhere.drain()
    assert_enqueued(welcome, user="ada")
    with pytest.raises(Invalid, match="look before you drain"):
        assert_enqueued(welcome.options(delay="0s"))
