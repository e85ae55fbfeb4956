"""Alert rules, dashboard and autoscaling ask for metrics and labels that rota has."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "rota.rules.yaml"
SELECTOR = re.compile(r"(rota_[a-z_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')
GROUPED = re.compile(r"by \(([^)]*)\)")
SUFFIXES = ("_bucket", "_sum", "_count")
OF_PROMETHEUS = {"le", "instance"}


def metrics() -> dict[str, set[str]]:
    """Return the labels of each metric, from the reference, which is written from the program."""
    rows = re.findall(
        r"^\| `(rota_\w+)` \| \w+ \| ([^|]*)\|", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE
    )
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def expressions() -> Iterator[tuple[str, str]]:
    for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"]
    for panel in json.loads((DEPLOY / "grafana" / "rota.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    scaled = yaml.safe_load((DEPLOY / "kubernetes" / "keda.yaml").read_text())
    for trigger in scaled["spec"]["triggers"]:
        yield "keda", trigger["metadata"]["query"]


def problems(expression: str, known: dict[str, set[str]]) -> list[str]:
    """Return metrics and labels of an expression that do not exist."""
    found: list[str] = []
    labels: set[str] = set()
    for name, matchers in SELECTOR.findall(expression):
        metric = next((name.removesuffix(end) for end in SUFFIXES if name.removesuffix(end) in known), name)
        if metric not in known:
            found.append(name)
            continue
        labels |= known[metric]
        found += [f"{name}: {label}" for label, _, _ in MATCHER.findall(matchers) if label not in known[metric]]
    grouped = {label.strip() for group in GROUPED.findall(expression) for label in group.split(",")}
    return found + sorted(grouped - labels - OF_PROMETHEUS)


def test_every_metric_and_label_exists() -> None:
    known = metrics()
    assert {title: wrong for title, one in expressions() if (wrong := problems(one, known))} == {}
    assert len(list(expressions())) > 25
    assert problems('sum by (qeue) (rota_runs_total{state="x"}) + rota_nothing', known) == [
        "rota_runs_total: state", "rota_nothing", "qeue",
    ]  # fmt: skip


def test_every_value_that_is_matched_exists() -> None:
    """A state, outcome or loop that was renamed would silence an alert."""
    sources = "".join(path.read_text() for path in (ROOT / "src" / "rota").rglob("*.py"))
    for _, expression in expressions():
        for _, matchers in SELECTOR.findall(expression):
            for label, _, value in MATCHER.findall(matchers):
                for word in value.split("|"):
                    assert f'"{word}"' in sources, f"{label}={word}"


def test_every_alert_is_tested_with_something_wrong() -> None:
    tests = yaml.safe_load(RULES.with_name("rota.rules.test.yaml").read_text())["tests"]
    alerts = {rule["alert"] for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]}
    firing = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one["exp_alerts"]}
    assert firing == alerts
    named = set(re.findall(r"`(Rota\w+)`", RULES.with_name("README.md").read_text()))
    assert named == alerts


def test_what_is_scaled_exists() -> None:
    scaled = yaml.safe_load((DEPLOY / "kubernetes" / "keda.yaml").read_text())
    workers: list[Any] = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "worker.yaml").read_text()))
    assert scaled["spec"]["scaleTargetRef"]["name"] in [one["metadata"]["name"] for one in workers]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_the_rules_fire_when_something_is_wrong() -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", "rota.rules.test.yaml"],
        cwd=RULES.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
