"""Import of Kubernetes: CronJobs become schedules of a job that runs their container's command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from rota.core.formats.imported import Imported, Remarks, convert, table
from rota.values.durations import format_duration

_OVERLAP = {"Allow": "allow", "Forbid": "skip", "Replace": "cancel_previous"}
_BACKOFF_LIMIT = 6
_SPEC = {
    "schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend", "jobTemplate",
    "successfulJobsHistoryLimit", "failedJobsHistoryLimit",
}  # fmt: skip
_JOB = {"template", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "parallelism", "completions"}
_CONTAINER = {"name", "image", "imagePullPolicy", "command", "args", "env", "resources", "workingDir"}
_POD = {"containers", "initContainers", "restartPolicy", "volumes", "serviceAccountName", "serviceAccount"}
_DEFAULTED = {
    "terminationMessagePath", "terminationMessagePolicy", "dnsPolicy", "schedulerName", "securityContext",
    "terminationGracePeriodSeconds", "completionMode", "podReplacementPolicy", "manualSelector",
}  # fmt: skip
"""Keys that the server fills in, which mean nothing here."""
_ZONE = "has no timeZone: its cluster's controller decides, which is UTC nearly always"
_REFERENCE = re.compile(r"\$\(")


def read_cron_jobs(documents: Iterable[object], job: str) -> Imported:
    """Convert CronJobs among the documents of a file, or of `kubectl get cronjobs -A -o yaml`."""

    def read(name: str, found: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
        spec = table(found.get("spec"), "spec")
        for key in sorted(spec.keys() - _SPEC):
            remarks.left_out(name, key)
        inner = table(table(spec.get("jobTemplate"), "jobTemplate").get("spec"), "jobTemplate.spec")
        document: dict[str, Any] = {
            "name": name,
            "job": job,
            "cron": str(spec.get("schedule", "")),
            **_zone(name, spec, remarks),
        }
        document["payload"] = _payload(name, inner, remarks)
        document["overlap"] = _overlap(spec.get("concurrencyPolicy") or "Allow")
        if (deadline := spec.get("startingDeadlineSeconds")) is not None:
            document["catch_up"] = {"mode": "latest", "window": format_duration(timedelta(seconds=deadline))}
        limit = inner.get("backoffLimit")
        document["max_attempts"] = (_BACKOFF_LIMIT if limit is None else limit) + 1
        if (longest := inner.get("activeDeadlineSeconds")) is not None:
            document["timeout"] = format_duration(timedelta(seconds=longest))
            remarks.of(name, "activeDeadlineSeconds is for all tries together, `timeout` for each attempt")
        return {**document, "enabled": False} if spec.get("suspend") else document

    return convert([(_name(found), found) for found in _cron_jobs(documents)], read)


def _cron_jobs(documents: Iterable[object]) -> Iterator[Mapping[str, Any]]:
    for document in documents:
        if isinstance(document, Mapping) and document.get("kind") in ("List", "CronJobList"):
            items = [item for item in document.get("items") or () if isinstance(item, Mapping)]
            yield from _cron_jobs([{"kind": "CronJob", **item} for item in items])
        elif isinstance(document, Mapping) and document.get("kind") == "CronJob":
            yield document


def _name(found: Mapping[str, Any]) -> str:
    metadata = found.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    name, namespace = str(metadata.get("name", "")), metadata.get("namespace")
    return name if namespace in (None, "default") else f"{namespace}-{name}"


def _zone(name: str, spec: Mapping[str, Any], remarks: Remarks) -> dict[str, str]:
    if not spec.get("timeZone"):
        remarks.of(name, _ZONE)
        return {}
    return {} if spec["timeZone"] in ("UTC", "Etc/UTC") else {"timezone": spec["timeZone"]}


def _overlap(policy: str) -> str:
    if policy not in _OVERLAP:
        raise ValueError(f"its concurrencyPolicy cannot be {policy!r}")
    return _OVERLAP[policy]


def _payload(name: str, job: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
    for key in sorted(job.keys() - _JOB - _DEFAULTED):
        remarks.left_out(name, key)
    for key in ("parallelism", "completions"):
        if job.get(key) not in (None, 1):
            raise ValueError(f"{key} is {job[key]}: a run is one pod's work; rota has replicas for several workers")
    pod = table(table(job.get("template"), "template").get("spec"), "template.spec")
    containers = pod.get("containers") or []
    if pod.get("initContainers") or len(containers) != 1:
        raise ValueError(f"it has {len(containers)} containers and {len(pod.get('initContainers') or [])} initial ones")
    for key in sorted(pod.keys() - {"containers", "initContainers", "restartPolicy"} - _DEFAULTED):
        remarks.left_out(name, key, "belongs to its pod")
    container = table(containers[0], "container")
    for key in sorted(container.keys() - _CONTAINER - _DEFAULTED):
        remarks.left_out(name, key, "belongs to its container")
    if container.get("resources"):
        remarks.left_out(name, "resources", "belongs to its container")
    remarks.of(name, f"its image {container.get('image')} must be what the worker runs in")
    return {"command": _command(container), **_environment(name, container.get("env") or [], remarks)}


def _command(container: Mapping[str, Any]) -> str:
    words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
    if not container.get("command"):
        raise ValueError("it names no command: the entry point of its image is not known here")
    if any(_REFERENCE.search(word) for word in words):
        raise ValueError("its command refers to variables as $(NAME), which Kubernetes fills in")
    folder = container.get("workingDir")
    return (f"cd {shlex.quote(folder)} && " if folder else "") + shlex.join(words)


def _environment(name: str, variables: Iterable[Mapping[str, Any]], remarks: Remarks) -> dict[str, Any]:
    environment = {}
    for variable in variables:
        if "valueFrom" in variable:
            remarks.left_out(name, f"environment variable {variable['name']}", "comes from a secret or a map")
        else:
            environment[str(variable["name"])] = str(variable.get("value", ""))
    return {"environment": environment} if environment else {}
