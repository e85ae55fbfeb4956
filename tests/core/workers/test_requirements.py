"""Requirements: what people write, which worker meets it, and that the same needs are the same text."""

from __future__ import annotations

import msgspec
import pytest

from rota.core.workers.requirements import (
    REPLICA,
    MetRequirements,
    Requirements,
    labels_of,
    meets,
    merged,
    met_by,
    requirement_id,
    requirements_of,
    version_of,
)
from rota.errors import Invalid


class Able(msgspec.Struct, frozen=True):
    name: str = "gpu-1"
    labels: tuple[str, ...] = ()
    app_version: str = "1.4"


def test_the_same_needs_are_one_need_in_whatever_order_they_are_written() -> None:
    one = requirements_of({"only_workers": ["b", "a"], "labels": ["zone=eu", "gpu"]})
    other = requirements_of({"labels": ("gpu", "zone=eu", "gpu"), "only_workers": ("a", "b")})
    assert requirement_id(one) == requirement_id(other)
    assert requirement_id(one) != requirement_id(requirements_of({"only_workers": ["a"]}))


@pytest.mark.parametrize(
    ("requirements", "worker", "met"),
    [
        (Requirements(), Able(), True),
        (Requirements(only_workers=("gpu-1", "gpu-2")), Able(), True),
        (Requirements(only_workers=("gpu-2",)), Able(), False),
        (Requirements(labels=("gpu",)), Able(labels=("gpu",)), True),
        (Requirements(labels=("gpu", "zone=eu")), Able(labels=("gpu",)), False),
        (Requirements(labels=("zone=eu",)), Able(labels=("zone=us",)), False),
        (Requirements(labels=("zone",)), Able(labels=("zone=us",)), True),
        (Requirements(labels=("zone=eu",)), Able(labels=("zone",)), False),
        (Requirements(min_worker_version="1.4"), Able(app_version="1.4.0"), True),
        (Requirements(min_worker_version="1.9"), Able(app_version="1.10"), True),
        (Requirements(min_worker_version="1.10"), Able(app_version="1.9.9"), False),
        (Requirements(min_worker_version="1.4"), Able(app_version="nobody knows"), False),
    ],
)
def test_a_worker_meets_needs(requirements: Requirements, worker: Able, met: bool) -> None:
    assert meets(worker, requirements) is met


def test_versions_are_numbers() -> None:
    assert version_of("1.10") > version_of("1.9") > version_of("1")
    assert version_of("v2.0.0") == version_of("2")
    assert version_of("1.4rc1") == version_of("1.4")


def test_what_a_run_says_comes_before_what_its_job_says() -> None:
    job = Requirements(only_workers=("a",), labels=("gpu",), min_worker_version="2")
    assert merged(Requirements(only_workers=("b",)), job) == Requirements(("b",), ("gpu",), "2")
    assert merged(Requirements(anyone=True), job) == Requirements((), ("gpu",), "2")
    assert merged(Requirements(), job) == job


def test_labels_come_as_a_list_or_in_one_text() -> None:
    assert labels_of("gpu, zone=eu,") == labels_of(["zone=eu", "gpu"]) == ("gpu", "zone=eu")
    assert labels_of("") == ()


@pytest.mark.parametrize(
    "options",
    [
        {"only_workers": "gpu-1"},
        {"only_workers": [1]},
        {"labels": ["=eu"]},
        {"labels": 7},
        {"min_worker_version": "newest"},
        {"min_worker_version": 1.4},
        {"only_workers": [str(number) for number in range(101)]},
    ],
)
def test_what_is_no_need_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        requirements_of(options)


def test_a_worker_asks_for_what_it_meets() -> None:
    known = {
        "n1": Requirements(only_workers=("gpu-1",)),
        "n2": Requirements(only_workers=("other",)),
        "n3": Requirements(labels=("gpu",)),
    }
    worker = Able(labels=("gpu",))
    assert met_by(worker, known) == MetRequirements(("n3",), ("n1",))
    assert met_by(worker, {**known, REPLICA: Requirements()}) == MetRequirements(
        ("n3",), ("n1", "@gpu-1"), ("*", "*n1", "*n3")
    )


def test_needs_say_what_they_are() -> None:
    assert str(Requirements(("a", "b"), ("gpu",), "1.4")) == "only a or b, label gpu, version 1.4 or newer"
