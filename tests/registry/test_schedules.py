"""Schedules declared in code: validated at once, unique by name."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rota import Rota, every, once
from rota.core.calendar.triggers import Cron
from rota.errors import BadTrigger, Invalid, UnknownJob


def app_with_job() -> Rota:
    app = Rota("sqlite:///unused.db")

    @app.job
    def work(n: int = 0) -> None: ...

    return app


@pytest.mark.parametrize("year", [1999, 2019, 2027, 2050])
def test_once_may_be_any_time(year: int) -> None:
    app_with_job().schedule("s", "work", once(datetime(year, 1, 2, tzinfo=UTC)))


def test_what_never_fires_is_refused_by_name() -> None:
    with pytest.raises(BadTrigger, match=r"schedule 'february'.*30 never comes in February"):
        app_with_job().schedule("february", "work", Cron("0 0 30 2 *"))


def test_a_mistake_names_its_schedule() -> None:
    with pytest.raises(Invalid, match=r"schedule 'late'.*keep must be"):
        app_with_job().schedule("late", "work", every("1m"), catch_up={"mode": "all", "keep": 0})
    with pytest.raises(Invalid, match=r"schedule 'typed'.*\$\.n"):
        app_with_job().schedule("typed", "work", every("1m"), payload={"n": "x"})


@pytest.mark.parametrize("job", [None, 7, print])
def test_what_is_no_job_is_refused(job: Any) -> None:
    with pytest.raises(Invalid, match=r"schedule 's': .* is no job \(pass a function that @app.job declares"):
        app_with_job().schedule("s", job, every("1m"))


def test_no_trigger_is_refused() -> None:
    with pytest.raises(BadTrigger, match="NoneType is no trigger"):
        app_with_job().schedule("s", "work", None)  # type: ignore[arg-type]


def test_an_empty_list_of_scopes_is_refused() -> None:
    """A provider that returns none makes no run; a list without any would make a global one."""
    with pytest.raises(Invalid, match=r"schedule 's': scopes is an empty list \(leave it out"):
        app_with_job().schedule("s", "work", every("1m"), scopes=[])


@pytest.mark.parametrize("provider", [lambda now, other: [], lambda other: [], lambda now, /: []])
def test_a_provider_that_cannot_be_called_is_refused(provider: Any) -> None:
    with pytest.raises(Invalid, match=r"scope provider 'tenants' cannot be called: .* \(it takes nothing, or `now`"):
        app_with_job().scopes("tenants")(provider)


def test_an_unknown_job_is_refused() -> None:
    with pytest.raises(UnknownJob, match="'wrok'"):
        app_with_job().schedule("s", "wrok", every("1m"))


def test_who_is_told_of_it_is_a_notification_of_its_own() -> None:
    app = app_with_job()
    app.schedule("news", "work", every("1m"), notify={"to": "mailto:me@example.com", "on": ["missed"]})
    ((name, made),) = app.registry.notifications
    assert (name, made.schedules, made.jobs, made.on) == ("schedule:news", ("news",), (), ("missed",))
    with pytest.raises(Invalid, match="schedule:late"):
        app.schedule("late", "work", every("1m"), notify="me")


# Fingerprints of `every("5m")` with these options, as the program before modes were enums wrote them, and
# the present one on Python 3.14.
OF_OLDER_PROGRAMS: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({}, "79785b2e18f18b43515fcbcf1637f884"),
    "newer Python": ({}, "a19b11a8ada3553d5cfad7b861a77411"),
    "literal": ({"overlap": "skip", "catch_up": "latest", "failure": "run_new"}, "79785b2e18f18b43515fcbcf1637f884"),
    "read": ({"overlap": "skip", "catch_up": "latest", "failure": "run_new"}, "8c0b39c52af400ae322c69dcf4133651"),
    "options": (
        {"overlap": {"mode": "skip"}, "catch_up": {"mode": "latest", "window": "6h"}},
        "94354ce1dfa460019ae18d6597c81349",
    ),
    "other": ({"overlap": "queue_all"}, "caf3e5db99d701a18b07a3b07f26422f"),
}


@pytest.mark.parametrize(("options", "older"), OF_OLDER_PROGRAMS.values(), ids=OF_OLDER_PROGRAMS.keys())
def test_an_upgrade_is_no_change_of_a_declaration(options: dict[str, Any], older: str) -> None:
    """Else a restart with the new version would undo what an operator edited."""
    app = Rota("sqlite:///none.db")

    @app.job
    def work() -> None: ...

    app.schedule("news", work, every("5m"), **options)
    (schedule,) = app.registry.schedules
    assert schedule.is_applied(older)
    assert not schedule.is_applied(older[::-1])
