"""Test what people hear who try the words of other libraries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rota import Exponential, Invalid, Job, Rota, chain, cron, every, group
from rota.errors import BadDuration, BadPayload, UnknownOption

Crawl = Job[[str, int], str]


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("max_retries", "max_attempts=4 is 3 retries"),
        ("autoretry_for", "retry_on=(ConnectionError,)"),
        ("retry_backoff", "Exponential"),
        ("time_limit", 'timeout="10m"'),
        ("crontab", "schedule=cron("),
        ("queue_name", 'queue="slow"'),
        ("priorty", "did you mean 'priority'"),
    ],
)
def test_an_option_of_a_job(app: Rota, option: str, hint: str) -> None:
    options: Any = {option: 1}
    with pytest.raises(UnknownOption) as raised:
        app.job(**options)(lambda: None)
    assert raised.value.hint is not None
    assert hint in raised.value.hint


@pytest.mark.parametrize(("option", "hint"), [("countdown", 'delay="60s"'), ("eta", "run_at=datetime")])
def test_an_option_of_a_run(crawl: Crawl, option: str, hint: str) -> None:
    options: Any = {option: 60}
    with pytest.raises(UnknownOption) as raised:
        crawl.options(**options)
    assert raised.value.hint is not None
    assert hint in raised.value.hint


@pytest.mark.parametrize(("name", "own"), [("countdown", "delay"), ("eta", "run_at"), ("priority", "priority")])
def test_an_option_among_the_arguments(app: Rota, crawl: Crawl, name: str, own: str) -> None:
    arguments: Any = {name: 60}
    with pytest.raises(BadPayload, match=rf"job\.options\({own}=…\)\.enqueue"):
        crawl.enqueue("a", 1, **arguments)
    assert app.blocking.list() == []


def test_a_bare_number_as_a_delay(crawl: Crawl) -> None:
    number: Any = 60
    with pytest.raises(BadDuration, match='a unit: "60s"'):
        crawl.options(delay=number).enqueue("a", 1)


@pytest.mark.parametrize(("method", "own"), [("delay", "enqueue"), ("apply_async", "enqueue"), ("kicker", "options")])
def test_a_method_of_other_libraries(crawl: Crawl, method: str, own: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{method}'; rota's word is `{own}"):
        getattr(crawl, method)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        getattr(crawl, "nothing")  # noqa: B009
    assert not hasattr(crawl, "__rota__")


@pytest.mark.parametrize(
    ("of", "name", "own"),
    [
        ("handle", "get", "`result(timeout=…)`"),
        ("handle", "ready", "`status()`"),
        ("handle", "revoke", "`cancel()`"),
        ("step", "delay", "`enqueue()`, of a chain or a group"),
        ("chain", "apply_async", "`enqueue()`, of a chain or a group"),
        ("app", "middleware", "`@app.around` for handlers"),
        ("app", "task", "`@app.job`"),
        ("app", "on_startup", "`@app.lifespan`"),
        ("app", "add_periodic_task", "`app.schedule("),
    ],
)
def test_a_name_of_handles_flows_and_apps(app: Rota, crawl: Crawl, of: str, name: str, own: str) -> None:
    objects = {"handle": app.handle("x"), "step": crawl.s("a", 1), "chain": chain(crawl.s("a", 1)), "app": app}
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; rota's word is ") as raised:
        getattr(objects[of], name)
    assert own in str(raised.value)
    assert not hasattr(objects[of], "nothing")


def test_flows_of_celery(crawl: Crawl) -> None:
    step: Any = crawl.s("a", 1)
    with pytest.raises(Invalid, match=r"not joined by \| .*chain\("):
        step | step
    several: Any = [step, step]
    with pytest.raises(Invalid, match=r"is no part of a group .*group\(\*steps\)"):
        group(several)


def test_durations_of_a_backoff_are_texts_as_everywhere() -> None:
    backoff = Exponential(base="10s", cap="10m")
    assert backoff == Exponential(base=timedelta(seconds=10), cap=timedelta(minutes=10))
    wrong: Any = 10
    with pytest.raises(BadDuration, match=r"Exponential\(base=…\): 10 is not a duration.*\"10s\""):
        Exponential(base=wrong)
    with pytest.raises(BadDuration):
        Exponential(cap="soon")


def test_a_schedule_beside_its_job(app: Rota) -> None:
    @app.job(schedule=cron("0 7 * * *"), max_attempts=2)
    def report() -> None: ...

    app.external("label", schedule=every("1h"))
    app.pipeline("both", [{"step": "a", "job": "report"}], schedule=every("2h"))
    assert [(schedule.name, schedule.definition.job) for schedule in app.registry.schedules] == [
        ("report", "report"),
        ("label", "label"),
        ("both", "both"),
    ]
    with pytest.raises(Invalid, match="schedule 'needy'"):

        @app.job(schedule=every("1h"))
        def needy(order: int) -> None: ...
