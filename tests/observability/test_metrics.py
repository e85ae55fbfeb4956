"""Test instruments and their text, parsed by Prometheus' own client."""

import math
import threading
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from rota.observability.metrics import MOST_SERIES, OTHER, Metrics, number


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_text_has_what_was_counted() -> None:
    metrics = Metrics()
    metrics.counter("rota_runs_total", "Runs.", "status")("failed").add(3)
    metrics.gauge("rota_workers", "Workers.")().set(2.5)
    seconds = metrics.histogram("rota_lag_seconds", "Lag.", bounds=(0.1, 1), unit=1e-6)()
    for micros in (50_000, 100_000, 700_000, 5_000_000):
        seconds.observe(micros)
    assert metrics.text().splitlines() == [
        "# HELP rota_runs_total Runs.",
        "# TYPE rota_runs_total counter",
        'rota_runs_total{status="failed"} 3',
        "# HELP rota_workers Workers.",
        "# TYPE rota_workers gauge",
        "rota_workers 2.5",
        "# HELP rota_lag_seconds Lag.",
        "# TYPE rota_lag_seconds histogram",
        'rota_lag_seconds_bucket{le="0.1"} 2',
        'rota_lag_seconds_bucket{le="1"} 3',
        'rota_lag_seconds_bucket{le="+Inf"} 4',
        "rota_lag_seconds_sum 5.85",
        "rota_lag_seconds_count 4",
    ]
    read = parsed(metrics.text())
    assert read["rota_runs_total", (("status", "failed"),)] == 3
    assert read["rota_lag_seconds_bucket", (("le", "1"),)] == 3


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_label_comes_back_as_it_was(label: str) -> None:
    metrics = Metrics()
    metrics.gauge("rota_queue_runs", 'a\\b\n"c"', "queue", "state")(label, "queued").set(7)
    (family,) = text_string_to_metric_families(metrics.text())
    assert family.documentation == 'a\\b\n"c"'
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"queue": label, "state": "queued"}, 7)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3.0, "3"), (0.25, "0.25"), (1e300, str(int(1e300))), (math.inf, "+Inf"), (-math.inf, "-Inf")],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text
    assert float(number(value)) == value
    assert number(math.nan) == "NaN"


def test_too_many_labels_are_counted_together() -> None:
    queues = Metrics().counter("rota_x_total", "X.", "queue", "state")
    for place in range(MOST_SERIES + 50):
        queues(f"queue {place}", "queued").add()
    assert len(list(queues.lines())) == 2 + MOST_SERIES + 1
    assert queues(OTHER, OTHER).value == 50
    assert queues("queue 7", "queued").value == 1


@given(st.lists(st.lists(st.floats(0, 100))))
def test_a_batch_is_the_same_as_one_after_another(batches: list[list[float]]) -> None:
    metrics = Metrics()
    histograms = metrics.histogram("rota_x_seconds", "X.", "how", bounds=(0.5, 1, 20))
    together, alone = histograms("together"), histograms("alone")
    for batch in batches:
        together.observe_all(batch)
        for value in batch:
            alone.observe(value)
    assert counts_of(together.samples()) == counts_of(alone.samples())
    assert together.count == sum(map(len, batches))


@given(st.lists(st.integers(0, 100), min_size=1), st.integers(0, 100))
def test_ages_are_what_is_between_then_and_now(times: list[int], now: int) -> None:
    ages = Metrics().histogram("rota_x_seconds", "X.", "how", bounds=(0, 1, 20))
    ages("since").observe_since(times, now)
    for time in times:
        ages("alone").observe(max(0, now - time))
    assert counts_of(ages("since").samples()) == counts_of(ages("alone").samples())


def counts_of(samples: Iterable[tuple[str, tuple[tuple[str, str], ...], float]]) -> list[float]:
    return [round(value, 6) for _, _, value in samples]


def test_threads_do_not_lose_what_they_count() -> None:
    counter = Metrics().counter("rota_x_total", "X.")()

    def count() -> None:
        for _ in range(50_000):
            counter.add()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 200_000


def test_what_cannot_be_a_metric_is_refused() -> None:
    metrics = Metrics()
    metrics.counter("rota_x_total", "X.")
    with pytest.raises(ValueError, match="already"):
        metrics.gauge("rota_x_total", "X.")
    with pytest.raises(ValueError, match="cannot be"):
        metrics.gauge("rota-x", "X.")
    with pytest.raises(ValueError, match="labels"):
        metrics.gauge("rota_y", "Y.", "a")("1", "2")
