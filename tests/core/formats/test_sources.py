"""Kubernetes, GitHub Actions, systemd and rq-scheduler: what becomes a schedule, what cannot, and why."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from rota.core.formats.calendar_events import cron_of
from rota.core.formats.cron_jobs import read_cron_jobs
from rota.core.formats.github_workflows import read_workflows
from rota.core.formats.imported import Imported
from rota.core.formats.systemd_timers import read_timers, span, unit
from rota.core.formats.task_queues.celery_beat import read_beat_schedule
from rota.core.formats.task_queues.rq_jobs import read_rq_jobs
from rota.core.formats.task_queues.tasks import Tasks


def cron_job(name: str = "backup", pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "shop:1", "command": ["backup", "--to", "s3 bucket"]}
    template = {"spec": {"containers": [container], "restartPolicy": "Never", **(pod or {})}}
    job = {"template": template, **spec.pop("job", {})}
    spec = {"schedule": "30 2 * * *", "timeZone": "Europe/Berlin", **spec, "jobTemplate": {"spec": job}}
    return {"kind": "CronJob", "metadata": {"name": name, "namespace": spec.pop("namespace", "default")}, "spec": spec}


def test_cron_jobs_of_kubernetes() -> None:
    env = [{"name": "MODE", "value": "full"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {}}}]
    pod = {"containers": [{"image": "shop:1", "command": ["run"], "args": ["x"], "env": env, "workingDir": "/srv"}]}
    jobs = [
        cron_job(concurrencyPolicy="Forbid", startingDeadlineSeconds=300, job={"backoffLimit": 2}),
        cron_job("report", pod, namespace="shop", suspend=True, timeZone=None, concurrencyPolicy="Replace"),
        cron_job("bare", {"containers": [{"image": "shop:1"}]}),
        cron_job("two", {"containers": [{}, {}]}),
        cron_job("wide", job={"parallelism": 3}),
        cron_job("reference", {"containers": [{"command": ["echo", "$(KEY)"]}]}),
        cron_job("never", schedule="0 0 30 2 *"),
    ]
    found = read_cron_jobs([{"kind": "List", "items": jobs}, {"kind": "Service"}, None], "run_command")
    assert found.documents[0] == {
        "name": "backup", "job": "run_command", "cron": "30 2 * * *", "timezone": "Europe/Berlin",
        "payload": {"command": "backup --to 's3 bucket'"}, "overlap": "skip", "max_attempts": 3,
        "catch_up": {"mode": "latest", "window": "5m"},
    }  # fmt: skip
    report = found.documents[1]
    assert (report["name"], report["enabled"], report["overlap"]) == ("shop-report", False, "cancel_previous")
    assert report["payload"] == {"command": "cd /srv && run x", "environment": {"MODE": "full"}}
    assert "timezone" not in report
    assert {one.text: one.why.split()[0] for one in found.unconverted} == {
        "bare": "it", "two": "it", "wide": "parallelism", "reference": "its", "never": "day",
    }  # fmt: skip
    assert "shop-report: environment variable KEY is left out: it comes from a secret or a map" in found.remarks
    assert "backup and 1 more: its image shop:1 must be what the worker runs in" in found.remarks


WORKFLOW = """
name: Nightly
on:
  schedule:
    - cron: "30 2 * * *"
    - cron: "0 8 * * MON"
  push: {}
env: {LEVEL: "2"}
concurrency: {group: nightly, cancel-in-progress: true}
jobs:
  build:
    runs-on: ubuntu-latest
    timeout-minutes: 20
    steps:
      - uses: actions/checkout@v4
      - run: make
      - name: tests
        working-directory: web app
        env: {CI: "1"}
        run: |
          npm ci
          npm test
"""


def test_workflows_of_github() -> None:
    found = read_workflows([("nightly", yaml.safe_load(WORKFLOW))], "run_command")
    assert not found.unconverted
    first, second = found.documents
    assert (first["name"], first["cron"], second["name"], second["cron"]) == (
        "nightly-1", "30 2 * * *", "nightly-2", "0 8 * * MON",
    )  # fmt: skip
    assert first["payload"] == {
        "command": "set -e\nmake\n(\ncd 'web app'\nexport CI=1\nnpm ci\nnpm test\n)",
        "environment": {"LEVEL": "2"},
    }
    assert (first["timeout"], first["overlap"], first["max_attempts"]) == ("20m", "cancel_previous", 1)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("uses: actions/checkout@v4", "uses: docker/login-action@v3", "uses the action docker/login-action@v3"),
        ("run: make", "run: make ${{ matrix.os }}", "which only GitHub fills in"),
        ("run: make", "run: make\n        if: failure()", "has 'if'"),
        ("run: make", "run: make\n        shell: pwsh", "needs the shell pwsh"),
        ("timeout-minutes: 20", "strategy: {}", "has 'strategy'"),
        ("jobs:", "jobs:\n  other: {}", "it has 2 jobs"),
        ("on:", "off:", "it has no on.schedule"),
        ("- cron:", "- cron: x\n      zone:", "does not know"),
    ],
)
def test_workflows_that_only_github_can_run(old: str, new: str, why: str) -> None:
    found = read_workflows([("nightly", yaml.safe_load(WORKFLOW.replace(old, new)))], "run_command")
    assert not found.documents
    assert why in found.unconverted[0].why


TIMER = (
    "[Unit]\nDescription=Nightly backup\n[Timer]\nOnCalendar=*-*-* 02:30\nRandomizedDelaySec=5min\nPersistent=true\n"
)
SERVICE = """[Service]
Type=oneshot
User=backup
WorkingDirectory=/srv
Environment=A=1 "B=two words"
ExecStart=/bin/sync
ExecStart=-/usr/bin/backup --to \\
  's3 bucket' ; true 100%%
TimeoutStartSec=1h 30min
Nice=10
"""


def test_timers_of_systemd() -> None:
    files = {"backup.timer": TIMER, "backup.service": SERVICE}
    found = read_timers(files.items(), "run_command", "Europe/Berlin")
    assert found.documents == (
        {
            "name": "backup", "job": "run_command", "cron": "30 2 * * *", "timezone": "Europe/Berlin",
            "payload": {
                "command": "cd /srv && /bin/sync && { /usr/bin/backup --to 's3 bucket' ';' true 100% || true; }",
                "environment": {"A": "1", "B": "two words"}, "user": "backup",
            },
            "timeout": "1h30m", "jitter": "5m", "description": "Nightly backup",
        },
    )  # fmt: skip
    assert found.remarks == ("backup: Nice is left out: it is systemd's to enforce",)
    (lazy,) = read_timers({**files, "backup.timer": "[Timer]\nOnCalendar=daily\n"}.items(), "j", None).documents
    assert (lazy["cron"], lazy["catch_up"]) == ("0 0 * * *", "none")
    several = "[Timer]\nOnCalendar=daily\nOnCalendar=\nOnCalendar=hourly\nOnCalendar=Sat 4:00 UTC\n"
    (both,) = read_timers({**files, "backup.timer": several}.items(), "j", None).documents
    assert both["either"] == [{"cron": "0 * * * *"}, {"cron": "0 4 * * SAT"}]


@pytest.mark.parametrize(
    ("timer", "service", "rule"),
    [
        ("OnUnitInactiveSec=10min", "", {"after": "10m"}),
        ("OnBootSec=5min\nOnUnitActiveSec=1h", "", {"every": "1h"}),
        ("OnBootSec=5min", "", "names no time that comes again"),
        ("OnUnitActiveSec=1h\nOnCalendar=daily", "", "OnCalendar and OnUnitActiveSec"),
        ("OnCalendar=*-*-~07/1 Mon", "", "is not understood"),
        ("OnCalendar=daily\nUnit=other.service", "", "other.service that it starts is not there"),
        ("OnCalendar=daily", "ExecStartPre=x", "has ExecStartPre"),
        ("OnCalendar=daily", "ExecStart=/bin/x $HOME", "has variables"),
        ("OnCalendar=daily", "ExecStart=/bin/x %i", "has a specifier"),
        ("OnCalendar=daily", "ExecStart=!/bin/x", "begins with '!'"),
        ("OnUnitActiveSec=1 fortnight", "", "time span '1 fortnight' is not understood"),
    ],
)
def test_what_timers_may_be(timer: str, service: str, rule: dict[str, str] | str) -> None:
    files = {"x.timer": f"[Timer]\n{timer}\n", "x.service": f"[Service]\nExecStart=/bin/true\n{service}\n"}
    found = read_timers(files.items(), "run_command", "UTC")
    if isinstance(rule, str):
        assert rule in found.unconverted[0].why
    else:
        assert {key: found.documents[0][key] for key in rule} == rule


@pytest.mark.parametrize(
    ("event", "cron"),
    [
        ("Mon..Fri *-*-* 07:30:00 Europe/Berlin", ("30 7 * * MON,TUE,WED,THU,FRI", "Europe/Berlin")),
        ("*:0/5", ("0-59/5 * * * *", None)),
        ("*-*~01 03:00", ("0 3 L * *", None)),
        ("*-02~03 1:2:3", ("3 2 1 L-2 2 *", None)),
        ("Mon *-*-01..07 04:00", ("0 4 1-7 * +MON", None)),
        ("2030..2032-01-01 00:00", ("0 0 0 1 1 * 2030-2032", None)),
        ("quarterly", ("0 0 1 1,4,7,10 *", None)),
        ("12-24 18:00", ("0 18 24 12 *", None)),
        ("Wed 17:48 UTC", ("48 17 * * WED", "UTC")),
    ],
)
def test_calendar_events(event: str, cron: tuple[str, str | None]) -> None:
    assert cron_of(event) == cron


def test_units_and_spans() -> None:
    assert unit("[A]\n# c\nx = 1\nx=2\ny=\n") == {"A": {"x": ["1", "2"], "y": []}}
    assert span("1h 30min 5").total_seconds() == 5405


RQ: list[dict[str, Any]] = [
    {"id": "a", "func_name": "shop.bill", "kwargs": {"who": "all"}, "origin": "mail", "timeout": 180,
     "meta": {"cron_string": "30 7 * * 1-5"}},
    {"id": "b", "func_name": "shop.sync", "scheduled_at": "2026-01-01T09:20:00Z",
     "meta": {"interval": 90, "repeat": 5}},
    {"id": "c", "func_name": "shop.sync", "scheduled_at": "2030-01-01T00:00:00Z"},
    {"id": "d", "func_name": "shop.sync", "meta": {"cron_string": "0 0 * * *", "use_local_timezone": True}},
    {"id": "e", "func_name": "shop.sync"},
    {"id": "f", "func_name": "shop.bill", "args": ["ada"], "meta": {"interval": 90}},
]  # fmt: skip


def test_jobs_of_rq_scheduler() -> None:
    found = read_rq_jobs(RQ, Tasks(), None)
    assert found.documents == (
        {"name": "a", "job": "bill", "payload": {"who": "all"}, "cron": "30 7 * * 1-5", "queue": "mail",
         "timeout": "3m"},
        {"name": "b", "job": "sync", "every": "1m30s", "anchor": "2026-01-01T09:20:00Z",
         "start_at": "2026-01-01T09:20:00Z", "max_runs": 5},
        {"name": "c", "job": "sync", "once": "2030-01-01T00:00:00Z"},
    )  # fmt: skip
    assert {one.text: one.why.split(":")[0] for one in found.unconverted} == {
        "d": "it uses the local time of its machine",
        "e": "it has neither cron_string, interval nor scheduled_at",
        "f": "it passes arguments by position, payloads have names",
    }
    local = read_rq_jobs(RQ[3:4], Tasks(), "Asia/Tokyo")
    both = [{"id": "b", "func_name": "shop.sync", "meta": {"cron_string": "0 0 13 * 5"}}]  # on Fridays that are a 13th
    assert read_rq_jobs(both, Tasks(), None).documents[0]["cron"] == "0 0 13 * +5"
    assert local.documents[0]["timezone"] == "Asia/Tokyo"


def spoiled(value: Any) -> Iterator[Any]:
    """Return copies of a document, in each of which one value is of another kind."""
    yield from (None, 5, "x", [], {}, [5], {5: 5, "a": 5})
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for changed in spoiled(part):
            if isinstance(value, dict):
                yield {**value, key: changed}
            else:
                yield [*value[:key], changed, *value[key + 1 :]]


@pytest.mark.parametrize(
    ("read", "document"),
    [
        (lambda one: read_cron_jobs([one], "j"), cron_job(concurrencyPolicy="Forbid", job={"backoffLimit": 2})),
        (lambda one: read_workflows([("w", one)], "j"), yaml.safe_load(WORKFLOW)),
        (lambda one: read_rq_jobs([one], Tasks(), None), RQ[0]),
        (
            lambda one: read_beat_schedule({"b": one}, Tasks(), "UTC"),
            {"task": "a.b", "schedule": 5.0, "options": {"queue": "q"}},
        ),
    ],
)
def test_a_source_may_hold_anything(read: Callable[[Any], Imported], document: Any) -> None:
    """A part of another kind is a reason why an entry is not taken, or makes no difference; it is no crash."""
    for one in spoiled(document):
        found = read(one)
        assert all(isinstance(problem.why, str) and problem.why for problem in found.unconverted)
