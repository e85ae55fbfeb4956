"""The files for operators are true: commands parse, settings exist, probes are served, and the times fit."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import click
import httpx2
import pytest
import yaml

from rota import Rota
from rota.api import probes
from rota.api.monitoring.health import PROBES
from rota.cli import root
from rota.cli.options import SHORT_FORMS
from rota.config import SETTINGS, Config, load_config
from rota.engine.observability.meters import Meters
from rota.server import BEYOND_GRACE
from rota.values.durations import parse_duration

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc")
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
READMES = [*sorted(DEPLOY.rglob("README.md")), *sorted((ROOT / "examples").rglob("README.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_OURS = {"ROTA_DB_PASSWORD"}  # of compose.yaml itself
POD = "10.1.2.3"


def documents(pattern: str) -> list[Any]:
    return [one for path in sorted(DEPLOY.glob(pattern)) for one in yaml.safe_load_all(path.read_text())]


def of_kind(kind: str) -> list[Any]:
    return [one for one in documents("kubernetes/*.yaml") if one["kind"] == kind]


def pods() -> list[Any]:
    return [one["spec"]["template"]["spec"] for one in (*of_kind("Deployment"), *of_kind("Job"))]


def containers() -> list[Any]:
    return [container for pod in pods() for container in pod["containers"]]


def services() -> dict[str, Any]:
    (compose,) = documents("compose/compose.yaml")
    return {name: one for name, one in compose["services"].items() if name != "postgres"}


def unit(path: Path) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path)
    return dict(parser["Service"])


def environment_file() -> dict[str, str]:
    lines = (DEPLOY / "systemd" / "rota.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def settings_of(container: Any) -> dict[str, str]:
    return {one["name"]: one["value"].replace("$(POD_IP)", POD) for one in container["env"] if "value" in one}


def commands() -> Iterator[list[str]]:
    """Everything that calls `rota`, without it."""
    for words in [*(one["command"] for one in containers()), *(one["command"] for one in services().values())]:
        assert words[0] == "rota"
        yield words[1:]
    for path in UNITS:
        for name, line in unit(path).items():
            if name.startswith("Exec"):
                yield shlex.split(line)[1:]
    for page in READMES:
        for line in "".join(CONSOLE.findall(page.read_text())).splitlines():
            if found := re.search(r"(?:^|-- |server |manage\.py )rota (.*)", line):
                yield shlex.split(found[1])


def parse(words: list[str]) -> None:
    group: click.Group = root
    while isinstance(found := group.commands[SHORT_FORMS.get(words[0], words[0])], click.Group):
        group, words = found, words[1:]
    found.make_context(words[0], words[1:])


def test_every_command_is_one_of_rotas() -> None:
    seen = [*commands()]
    assert ["migrate"] in seen
    for words in seen:
        parse([words[0], "shop.jobs", *words[1:]] if words == ["worker"] else words)  # `manage.py rota worker`
    with pytest.raises(click.UsageError):
        parse(["worker", "jobs:app", "--metric-port", "9200"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_setting_and_metric_exists(path: Path) -> None:
    text = path.read_text()
    known = {f"ROTA_{name.upper()}" for name in SETTINGS} | NOT_OURS
    assert set(re.findall(r"\bROTA_[A-Z_]*[A-Z]\b", text)) - known == set()
    families = {family.name for family in Meters().metrics.families.values()}
    named = {name.removesuffix("_bucket") for name in re.findall(r"\brota_[a-z]+_[a-z_]+", text)}
    assert named - families == set()


def given() -> Iterator[Mapping[str, str]]:
    yield environment_file()
    yield from map(settings_of, containers())
    yield from (one["environment"] for one in services().values())


def test_every_value_is_accepted() -> None:
    for environment in given():
        config = load_config(environment=environment)
        assert config.auth or config.host == Config().host  # else it would refuse to listen


def test_there_is_time_for_an_orderly_end() -> None:
    for pod in (one["spec"]["template"]["spec"] for one in of_kind("Deployment")):
        (container,) = pod["containers"]
        before = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
        assert_enough(pod["terminationGracePeriodSeconds"] - int(before[1]), settings_of(container))
    for service in services().values():
        assert_enough(parse_duration(service["stop_grace_period"]).total_seconds(), service["environment"])
    for path in UNITS:
        assert_enough(parse_duration(unit(path)["TimeoutStopSec"]).total_seconds(), environment_file())


def assert_enough(seconds: float, environment: Mapping[str, str]) -> None:
    grace = parse_duration(environment["ROTA_SHUTDOWN_GRACE"]).total_seconds()
    assert seconds > grace + BEYOND_GRACE


def test_probes_ask_what_is_served_where_it_is_served() -> None:
    served = {route.path for route in PROBES}
    for deployment in of_kind("Deployment"):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        (port,) = container["ports"]
        words = container["command"]
        listens = int(words[words.index("--metrics-port") + 1]) if "--metrics-port" in words else Config().port
        assert port["containerPort"] == listens
        asked = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
        assert {name: one["path"] for name, one in asked.items()} == {
            "livenessProbe": "/healthz",
            "readinessProbe": "/readyz",
        }
        assert {one["port"] for one in asked.values()} == {port["name"]}
    (monitor,) = of_kind("PodMonitor")
    asked_for = {(one["port"], one["path"]) for one in monitor["spec"]["podMetricsEndpoints"]}
    assert asked_for == {("http", "/metrics"), ("metrics", "/metrics")}
    in_text = {path for file in FILES for path in re.findall(r"/(?:healthz|readyz|metrics)\b", file.read_text())}
    assert in_text == served


async def test_a_kubelet_is_answered_and_metrics_need_a_token(sqlite_url: str) -> None:
    (worker,) = [one for one in containers() if one["name"] == "worker"]
    config = load_config({"database_url": sqlite_url}, environment=settings_of(worker))
    app = Rota(config=config)
    transport = httpx2.ASGITransport(app=probes(app), client=("10.1.2.1", 40_000))
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{POD}:9200") as kubelet:
        assert (await kubelet.get("/healthz")).status_code == 200
        assert (await kubelet.get("/readyz")).status_code == 200
        assert (await kubelet.get("/metrics")).status_code == 401
    await app.aclose()


def test_what_is_referred_to_is_there() -> None:
    (secret,) = of_kind("Secret")
    (kustomization,) = of_kind("Kustomization")
    assert [name for name in kustomization["resources"] if not (DEPLOY / "kubernetes" / name).exists()] == []
    keys = re.findall(r"name: rota, key: ([\w-]+)", "".join(path.read_text() for path in DEPLOY.glob("kubernetes/*")))
    assert set(keys) == set(secret["stringData"])
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in of_kind("Deployment")]
    for one in (*of_kind("Deployment"), *of_kind("PodDisruptionBudget")):
        assert labels.count(one["spec"]["selector"]["matchLabels"]) == 1
    (service,) = of_kind("Service")
    assert labels.count(service["spec"]["selector"]) == 1
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "compose" / "Dockerfile").read_text(), re.MULTILINE)
    assert [name for names in copied for name in names.split() if not (ROOT / name).exists()] == []


def test_units_are_what_systemd_takes(tmp_path: Path) -> None:
    for path in UNITS:
        service = unit(path)
        assert (service["Type"], service["KillMode"], service["Restart"]) == ("notify", "mixed", "on-failure")
        text = path.read_text().replace("/opt/rota/venv/bin/rota", str(Path(sys.executable).with_name("rota")))
        (tmp_path / path.name.replace("@", "@1")).write_text(text)
    if shutil.which("systemd-analyze") is None:
        return
    verify = ["systemd-analyze", "verify", *sorted(map(str, tmp_path.iterdir()))]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line] == []


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
