"""Import of GitHub Actions: workflows with `on.schedule` become schedules of a job that runs their commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from rota.core.formats.imported import Imported, Remarks, convert, table
from rota.values.durations import format_duration

_CHECKOUT = "actions/checkout"
_SHELLS = (None, "bash", "sh")
_JOB = {"steps", "runs-on", "name", "env", "timeout-minutes", "defaults"}
_STEP = {"name", "id", "run", "env", "shell", "working-directory", "uses", "with"}
_WORKFLOW = {"name", "run-name", "on", "jobs", "env", "permissions", "concurrency", "defaults"}


def read_workflows(workflows: Iterable[tuple[str, object]], job: str) -> Imported:
    """Convert workflows, each with the name of its file; every cron expression becomes a schedule."""

    def read(name: str, entry: tuple[Mapping[str, Any], object], remarks: Remarks) -> dict[str, Any]:
        workflow, item = entry
        if isinstance(workflow, _Refused):
            raise ValueError(workflow.why)
        times = dict(table(item, "schedule"))
        document = {"name": name, "job": job, "cron": times.pop("cron", ""), **_zone(times)}
        for key in sorted(workflow.keys() - _WORKFLOW):
            remarks.left_out(name, str(key))
        return {**document, **_work(name, workflow, remarks)}

    return convert(_entries(workflows), read)


class _Refused(dict[str, Any]):
    """A file that is no workflow with a schedule, and why."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


def _entries(workflows: Iterable[tuple[str, object]]) -> Iterator[tuple[str, tuple[Mapping[str, Any], object]]]:
    for file, workflow in workflows:
        # YAML 1.1 reads the key `on` as true.
        triggers = workflow.get("on", workflow.get(True)) if isinstance(workflow, Mapping) else None
        items = triggers.get("schedule") if isinstance(triggers, Mapping) else None
        if not isinstance(workflow, Mapping) or not isinstance(items, list):
            yield file, (_Refused("it has no on.schedule"), None)
            continue
        named = {("on" if key is True else key): value for key, value in workflow.items()}
        for number, item in enumerate(items, 1):
            yield (file if len(items) == 1 else f"{file}-{number}"), (named, item)


def _zone(times: dict[str, Any]) -> dict[str, str]:
    zone = times.pop("timezone", None)
    if times:
        raise ValueError(f"its schedule has {min(times)!r}, which rota does not know")
    return {} if zone in (None, "UTC") else {"timezone": zone}


def _work(name: str, workflow: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
    jobs = table(workflow.get("jobs"), "jobs")
    if len(jobs) != 1:
        raise ValueError(f"it has {len(jobs)} jobs ({', '.join(map(str, jobs))}): rota has a pipeline for several")
    ((title, value),) = jobs.items()
    body = table(value, f"jobs.{title}")
    for key in ("strategy", "container", "services", "needs", "if", "uses"):
        if key in body:
            raise ValueError(f"its job {title} has {key!r}, which only GitHub's runners know")
    for key in sorted(body.keys() - _JOB):
        remarks.left_out(name, key)
    defaults = {**table(workflow.get("defaults") or {}, "defaults"), **table(body.get("defaults") or {}, "defaults")}
    environment = _environment(workflow) | _environment(body)
    lines = [line for step in body.get("steps") or [] for line in _step(name, step, defaults.get("run") or {}, remarks)]
    if not lines:
        raise ValueError("none of its steps runs a command")
    payload: dict[str, Any] = {"command": "\n".join(["set -e", *lines])}
    document = {"payload": {**payload, **({"environment": environment} if environment else {})}, "max_attempts": 1}
    if minutes := body.get("timeout-minutes"):
        document["timeout"] = format_duration(timedelta(minutes=minutes))
    remarks.of(name, f"its commands ran on {body.get('runs-on')}; the worker must have what they need")
    return {**document, "overlap": _overlap(workflow.get("concurrency"))}


def _overlap(concurrency: object) -> str:
    """Return what happens while a run is under way: a concurrency group keeps one waiting, or cancels."""
    if concurrency is None:
        return "allow"
    cancels = isinstance(concurrency, Mapping) and concurrency.get("cancel-in-progress")
    return "cancel_previous" if cancels else "queue_one"


def _step(name: str, value: object, defaults: Mapping[str, Any], remarks: Remarks) -> Iterator[str]:
    step = table(value, "step")
    title = str(step.get("name") or step.get("uses") or step.get("run", "")).splitlines()[0]
    if uses := step.get("uses"):
        if not str(uses).startswith(_CHECKOUT):
            raise ValueError(f"step {title!r} uses the action {uses}, which only GitHub's runners have")
        remarks.of(name, "it checks out a repository: start the worker in its folder")
        return
    for key in sorted(step.keys() - _STEP):
        raise ValueError(f"step {title!r} has {key!r}, which only GitHub's runners know")
    shell = step.get("shell", defaults.get("shell"))
    if shell not in _SHELLS:
        raise ValueError(f"step {title!r} needs the shell {shell}")
    command, environment = str(step.get("run", "")).rstrip(), _environment(step)
    if "${{" in f"{command}{environment}":
        raise ValueError(f"step {title!r} has ${{{{ … }}}}, which only GitHub fills in")
    folder = step.get("working-directory", defaults.get("working-directory"))
    inner = [f"cd {shlex.quote(folder)}"] if folder else []
    inner += [f"export {key}={shlex.quote(text)}" for key, text in environment.items()]
    yield from ["(", *inner, command, ")"] if inner else [command]


def _environment(part: Mapping[str, Any]) -> dict[str, str]:
    environment = {str(key): str(value) for key, value in table(part.get("env") or {}, "env").items()}
    for key, value in environment.items():
        if "${{" in value:
            raise ValueError(f"the environment variable {key} has ${{{{ … }}}}, which only GitHub fills in")
    return environment
