"""Names and labels of metrics by the conventions of Prometheus, as `promtool check metrics` reads them.

The rules are those of its linter (promlint): https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rota.core.states import RunState
from rota.engine.observability.meters import Meters
from rota.observability.metrics import Family

UNITS = {
    "milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "weeks", "kilobytes", "megabytes",
    "gigabytes", "bits", "percent", "millis", "micros", "ms", "us", "s", "sec", "secs", "min", "mins", "kb", "mb", "gb",
}  # fmt: skip
"""Units that are not base units, and abbreviations."""
TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}
ABOUT_RUNS = (
    "rota_runs_enqueued_total", "rota_runs_total", "rota_attempts_total", "rota_task_failure_retry_total",
    "rota_handed_over_total", "rota_task_timeout_total", "rota_cancel_requests_total", "rota_leases_lost_total",
    "rota_leases_reaped_total", "rota_plan_times_total", "rota_task_overlap_skipped_total",
    "rota_concurrency_skipped_total",
)  # fmt: skip

FAMILIES = list(Meters().metrics.families.values())


def problems(family: Family) -> list[str]:  # type: ignore[type-arg]
    """Return what promtool would say of this metric."""
    name, words, labels = family.name, family.name.split("_"), family.labels
    reserved = [label for label in labels if label in ("le", "quantile", "instance") or label.startswith("__")]
    rules = {
        "no help text": not family.about.strip(),
        "counters end in _total, others do not": (family.kind == "counter") != name.endswith("_total"),
        "the ending is reserved": name.endswith(("_sum", "_count", "_bucket")),
        "not a base unit": not UNITS.isdisjoint(words),
        "the name has the type in it": not TYPES.isdisjoint(words),
        "no unit": family.kind == "histogram" and not name.endswith(("_seconds", "_bytes")),
        "not lower case, after the name of the application": not re.fullmatch(r"rota(_[a-z0-9]+)+", name),
        "a label twice": len(set(labels)) < len(labels),
        "a label is reserved": bool(reserved),
    }
    return [rule for rule, is_broken in rules.items() if is_broken]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_names_follow_the_conventions(family: Family) -> None:  # type: ignore[type-arg]
    assert problems(family) == []


@pytest.mark.parametrize(
    ("family", "problem"),
    [
        (("rota_runs", "Runs.", "counter", ()), "_total"),
        (("rota_workers_total", "Workers.", "gauge", ()), "_total"),
        (("rota_lag_ms", "Lag.", "gauge", ()), "base unit"),
        (("rota_lag", "Lag.", "histogram", ()), "unit"),
        (("rota_runs_total", "", "counter", ()), "help"),
        (("rota_runs_total", "Runs.", "counter", ("le",)), "reserved"),
        (("rota_runs_total", "Runs.", "counter", ("job", "job")), "twice"),
        (("runs_total", "Runs.", "counter", ()), "application"),
    ],
)
def test_each_rule_finds_what_breaks_it(family: tuple[str, str, str, tuple[str, ...]], problem: str) -> None:
    name, about, kind, labels = family
    made = Meters().metrics
    made.families.clear()
    broken = (
        made.histogram(name, about, *labels, bounds=(1,))
        if kind == "histogram"
        else getattr(made, kind)(name, about, *labels)
    )
    assert any(problem in words for words in problems(broken))


def test_counters_of_runs_and_plan_times_have_job_and_queue() -> None:
    labelled = {family.name for family in FAMILIES if {"job", "queue"} <= {*family.labels}}
    assert labelled == {*ABOUT_RUNS}


def test_a_series_begins_at_zero_when_its_job_is_first_seen() -> None:
    """A series that begins with its first failure has no increase, and no alert."""
    meters = Meters()
    meters.of["work", "default"].enqueued.add()
    runs = [family for family in text_string_to_metric_families(meters.text(None)) if family.name == "rota_runs"]
    failed = {sample.labels["status"]: sample.value for sample in runs[0].samples}
    assert failed == {state.value: 0 for state in RunState if state.is_final}
