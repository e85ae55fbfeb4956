"""Examples of every answer, for the API's documentation. Tests check them against the shapes."""

from __future__ import annotations

from typing import Any

_AT = "2026-01-31T08:00:00Z"

RUN: dict[str, Any] = {
    "id": "019c1a2b-7d1e-7c3a-9f00-5d1f3c2b1a00", "job": "hello", "job_version": 1, "queue": "default", "priority": 0,
    "scope": {"kind": "global", "id": "global"}, "key": None, "state": "succeeded", "reason": None, "fence": 1,
    "attempt": 1, "max_attempts": 4, "payload": {"name": "Ada"}, "result": "hello, Ada", "error": None,
    "created_at": _AT, "run_at": _AT, "started_at": _AT, "finished_at": _AT, "retry_of": None,
    "worker_id": "web-1@5be1c0ffee00", "tags": ["demo"], "metadata": {},
}  # fmt: skip
ATTEMPT: dict[str, Any] = {
    "no": 1, "fence": 1, "worker_id": "web-1@5be1c0ffee00", "claimed_at": _AT, "lease_until": None, "started_at": _AT,
    "ended_at": _AT, "outcome": "failed", "error": {"type": "Timeout", "message": "no answer"}, "cpu_time_ms": 12,
    "memory_peak_mb": None, "counters": {"pages": 3},
}  # fmt: skip
ERROR_GROUPS: dict[str, Any] = {
    "items": [{
        "fingerprint": "4a193dde06e0", "job": "crawl", "job_count": 1,
        "parts": [{"job": "crawl", "fingerprint": "4a193dde06e0", "count": 17}],
        "type": "Timeout", "message": "no answer after 30s", "count": 17,
        "first_at": _AT, "last_at": _AT, "last_run_id": RUN["id"], "states": {"failed": 15, "timed_out": 2},
        "histogram": [0] * 22 + [5, 12],
    }],
    "since": "2026-01-30T08:00:00Z", "until": _AT, "truncated": False,
}  # fmt: skip
PROGRESS: dict[str, Any] = {"percentage": 40.0, "summary": "page 3 of 9", "at": _AT}
STEP: dict[str, Any] = {"id": "fetch", "name": "fetch", "state": "succeeded", "attempt": 1, "result": {"items": 25}}
EVENT: dict[str, Any] = {
    "seq": 1, "at": _AT, "kind": "run", "subject": RUN["id"], "type": "claimed", "from": "queued", "to": "running",
    "fence": 1, "actor": "web-1@5be1c0ffee00", "details": {},
}  # fmt: skip
LOG_LINE: dict[str, Any] = {
    "at": _AT, "level": "info", "logger": "crawler", "text": "page 3 of 9", "attempt": 1, "fence": 1, "cursor": "1.17",
}  # fmt: skip
EXPLANATION: dict[str, Any] = {
    "verdict": "queued", "words": ["It may be claimed since 12s, and no worker serves queue 'mail'."],
    "facts": {"queue": "mail", "workers": 0},
}  # fmt: skip
JOB_STATUS: dict[str, Any] = {
    "job": "crawl", "state": "scheduled", "running": 0, "waiting": 1, "last_run_at": _AT, "next_at": _AT,
    "paused_at": None, "paused_by": None, "pause_reason": None, "cancelled_at": None, "cancelled_by": None,
    "cancel_reason": None, "live_limit": None,
}  # fmt: skip
JOB_STATS: dict[str, Any] = {
    "job": "crawl", "total": 412, "succeeded": 408, "failed": 3, "timed_out": 1, "cancelled": 0, "expired": 0,
    "skipped": 0, "success_rate": 0.99, "average_duration_ms": 1_204, "p50_duration_ms": 985, "p95_duration_ms": 3_450,
    "first_at": "2026-01-02T08:00:00Z", "last_execution_at": _AT, "next_scheduled_at": _AT,
}  # fmt: skip
LIVE_LIMIT: dict[str, Any] = {
    "max_concurrency": None, "rate": "5/1s", "since": _AT, "by": "token:ada", "reason": "after the outage",
    "until": "2026-01-31T10:00:00Z",
}  # fmt: skip
CANCELLED_STATUS: dict[str, Any] = {
    **JOB_STATUS, "state": "cancelled", "waiting": 0, "next_at": None, "cancelled_at": _AT, "cancelled_by": "ada",
    "cancel_reason": "no longer needed",
}  # fmt: skip
JOB: dict[str, Any] = {
    "name": "ping", "version": 1, "kind": "http", "queue": "default", "priority": 0, "timeout": "10s", "enabled": True,
    "retry": {"max_attempts": 4, "backoff": {"type": "exponential", "base": "1m", "factor": 2.0, "cap": "1h",
                                             "jitter": 0.1}},
    "payload_schema": {"type": "object"}, "http": {"url": "https://example.com/health", "method": "GET"},
    "status": {**JOB_STATUS, "job": "ping"}, "created_at": _AT, "updated_at": _AT,
}  # fmt: skip
SCHEDULE_BODY: dict[str, Any] = {
    "name": "news", "job": "crawl", "every": "30m", "payload": {"url": "https://example.com"}, "overlap": "skip",
}  # fmt: skip
SCHEDULE: dict[str, Any] = {
    "id": "019c1a2b-7d1e-7c3a-9f00-5d1f3c2b1a01", "name": "news", "job": "crawl", "state": "active", "owner": "api",
    "revision": 1, "enabled": True, "paused_at": None, "paused_by": None, "pause_reason": None, "resume_at": None,
    "job_paused": False, "cursor_at": _AT, "next_plan": _AT, "awaits": None, "fired": 3, "tzdata": "2026a",
    "trouble": None, "created_at": _AT,
    "updated_at": _AT, "rule": "every 30 minutes", "timezone": "UTC",
    "definition": {"job": "crawl", "every": "30m", "payload": {"url": "https://example.com"}}, "last": None,
}  # fmt: skip
FIRE: dict[str, Any] = {"plan_time": _AT, "local": "2026-01-31T09:00:00+01:00", "eligible_at": _AT, "marks": []}
SIMULATION: dict[str, Any] = {
    "from_at": _AT, "until_at": "2026-02-01T08:00:00Z", "counts": {"run": 48}, "unlisted": 47,
    "fires": [{**FIRE, "schedule": "news", "zone": "Europe/Berlin"}],
    "schedules": [
        {"kind": "change", "name": "news", "changes": [{"key": "every", "before": "1h", "after": "30m"}],
         "rule": "every 30 minutes", "durations": "median of the last 20 runs, 4.2s", "problems": [], "warnings": []},
    ],
    "events": [{"kind": "run", "plan_time": _AT, "schedule": "news", "started_at": _AT,
                "finished_at": "2026-01-31T08:00:04Z", "attempt": 1}],
}  # fmt: skip
OCCURRENCE: dict[str, Any] = {"kind": "ran", "plan_time": _AT, "run_id": RUN["id"], "state": "succeeded"}
QUEUE: dict[str, Any] = {
    "queue": "mail", "running": 2, "queued": 17, "scheduled": 4, "paused": None, "oldest_at": _AT,
    "live_limit": None,
}  # fmt: skip
WORKER: dict[str, Any] = {
    "id": "web-1@5be1c0ffee00", "name": "web-1", "host": "web-1", "pid": 17, "version": "0.1.0", "state": "working",
    "queues": {"default": 1}, "jobs": ["hello"], "slots": 10, "held": 0, "runs": [], "started_at": _AT, "seen_at": _AT,
    "heartbeat": "10s", "poll": "1s", "asked": None, "asked_by": None,
}  # fmt: skip
TOKEN: dict[str, Any] = {
    "id": "5be1c0ffee00", "name": "ci", "role": "enqueue", "scope": None, "created_at": _AT, "created_by": "cli:ada",
    "expires_at": "2026-05-01T08:00:00Z", "revoked_at": None, "revoked_by": None, "used_at": None,
}  # fmt: skip
IDENTITY: dict[str, Any] = {"actor": "token:ci", "role": "enqueue", "scope": None}
RELATED: dict[str, Any] = {
    "id": RUN["id"], "job": "extract", "state": "succeeded", "result": {"rows": 25}, "on": "success",
    "otherwise": "skip", "inputs": ["pages"],
}  # fmt: skip
FAMILY: dict[str, Any] = {
    "items": [{
        "id": RUN["id"], "job": "extract", "state": "succeeded", "queue": "default",
        "scope": {"kind": "global", "id": "global"}, "schedule": None, "attempt": 1, "worker_id": "web-1@5be1c0ffee00",
        "created_at": _AT, "run_at": _AT, "started_at": _AT, "finished_at": _AT, "percentage": None, "more": False,
    }],
    "links": [{"from": RUN["id"], "to": "019c1a2b-7d1e-7c3a-9f00-5d1f3c2b1a01", "kind": "dependency", "on": "success"}],
    "truncated": False,
}  # fmt: skip
REPLICA: dict[str, Any] = {
    "run_id": RUN["id"], "worker": "gpu-1", "state": "succeeded", "attempt": 1, "error": None, "result": 7,
    "finished_at": _AT, "bound": False, "cleared": False,
}  # fmt: skip
STANDING: dict[str, Any] = {
    "kind": "postgres", "epoch": 3, "held": False, "since": _AT, "accepted_at": _AT, "accepted_by": "cli:ada",
}  # fmt: skip
CHECK: dict[str, Any] = {
    "name": "disk", "level": "warning", "words": "4.2 GB in the file, 12 MB in its WAL, 301 MB of disk space free",
    "hint": "free disk space: without it nothing can be enqueued, claimed or reported", "facts": {"room": 315621376},
}  # fmt: skip
QUOTA: dict[str, Any] = {
    "kind": "tenant", "id": "42", "max_concurrency": 5, "max_queued": 100, "rate": "1000/1h", "owner": "token:ada",
    "paused": False, "reason": None,
}  # fmt: skip
NOTIFICATION: dict[str, Any] = {
    "name": "ops", "on": ["failure"], "to": "https://example.com/hook", "jobs": ["crawl"], "schedules": [],
    "secret": "***", "include_payload": False, "at_most": 60, "owner": "api", "enabled": True, "created_at": _AT,
    "updated_at": _AT,
}  # fmt: skip
EXPECTED: dict[str, Any] = {
    "kind": "job", "subject": "crawl", "expect": {"success_every": "25h"}, "owner": "token:ada", "since": _AT,
    "resting": False, "breaches": [
        {"what": "success_every", "since": _AT, "message": "no run has succeeded for 26h; success_every is 25h",
         "details": {"value": "26h", "limit": "25h"}},
    ],
}  # fmt: skip
ASSIGNMENT: dict[str, Any] = {
    "id": RUN["id"], "fence": 1, "attempt": 1, "max_attempts": 4, "job": "label-images", "job_version": 1,
    "payload": {"image": "cat.png"}, "scope": {"kind": "global", "id": "global"}, "key": None, "plan_time": None,
    "idempotency_key": RUN["id"], "lease_until": _AT, "steps": {},
}  # fmt: skip


ATTENTION: dict[str, Any] = {
    "kind": "queue_unserved", "subject": "mail", "severity": "problem", "scope": None, "since": _AT,
    "text": "no live worker takes from queue mail, where 17 runs wait", "hint": "rota worker MODULE:APP --queues mail",
    "action": None, "weight": 17, "snoozed_until": None, "snoozed_by": None, "snooze_reason": None,
}  # fmt: skip
OVERVIEW: dict[str, Any] = {
    "at": _AT,
    "live": {"running": 3, "cancelling": 0, "queued": 17, "scheduled": 4, "waiting": 1, "oldest_queued_at": _AT,
             "capped": False},
    "late": {"runs": 2, "schedules": 1},
    "last_day": {"runs": {"failed": 12, "skipped": 3, "succeeded": 4_821}, "success_rate": 0.9975},
    "workers": {"alive": 2, "stale": 1, "slots": 20, "busy": 3},
    "schedules": {"active": 9, "paused": 1, "job_paused": 0, "disabled": 0, "ended": 2},
    "attention": [ATTENTION], "attention_count": 1, "attention_counts": {"queue_unserved": 1}, "snoozed": 0,
    "next_fires": [
        {"schedule": "nightly", "job": "cleanup", "at": "2026-01-31T09:00:00Z", "zone": "Europe/Berlin",
         "rule": "every day at 10:00, Europe/Berlin"},
    ],
}  # fmt: skip
SERIES: dict[str, Any] = {
    "from": "2026-01-30T08:00:00Z", "to": _AT, "step": "15m",
    "buckets": [
        {"at": "2026-01-30T08:00:00Z", "runs": {"failed": 1, "succeeded": 240}, "duration_p50_ms": 84,
         "duration_p95_ms": 1_250, "lag_p50_ms": 9, "lag_p95_ms": 48, "queued": 17, "running": 3},
    ],
}  # fmt: skip
TIMELINE: dict[str, Any] = {
    "from": "2026-01-31T07:00:00Z", "to": "2026-01-31T09:00:00Z", "by": "schedule", "truncated": False,
    "complete_from": None,
    "lanes": [
        {"name": "nightly", "overlaps": False, "coming": ["2026-01-31T09:00:00Z"],
         "gaps": [{"kind": "skipped", "from": _AT, "to": _AT, "count": 1, "reason": "the previous run was still active",
                   "run_id": None}],
         "attempts": [
             {"run_id": "019c1a2b-7d1e-7c3a-9f00-5d1f3c2b1a00", "no": 1, "job": "cleanup", "state": "succeeded",
              "worker_id": "web-1@5be1c0ffee00", "started_at": _AT, "ended_at": "2026-01-31T08:00:03Z"},
         ]},
    ],
}  # fmt: skip
UPCOMING: dict[str, Any] = {
    "from": _AT, "to": "2026-01-31T09:00:00Z", "total": 61, "truncated": False,
    "items": [
        {"at": "2026-01-31T08:00:40Z", "job": "crawl", "queue": "default", "schedule": None, "run_id": RUN["id"],
         "attempt": 2, "rule": None, "zone": None, "scopes": 1, "more": 0},
        {"at": "2026-01-31T08:01:00Z", "job": "poll", "queue": None, "schedule": "poll-feeds", "run_id": None,
         "attempt": 0, "rule": "every minute", "zone": "UTC", "scopes": 1, "more": 59},
    ],
}  # fmt: skip
EXECUTION: dict[str, Any] = {
    "id": f"{RUN['id']}:1", "run_id": RUN["id"], "job_id": "crawl", "execution_number": 42, "status": "completed",
    "outcome": "succeeded", "started_at": _AT, "completed_at": "2026-01-31T08:00:03Z", "duration_ms": 3_000,
    "retry_attempt": 0, "error_message": None, "cpu_time_ms": 12, "memory_peak_mb": None, "counters": {"pages": 3},
    "metadata": {},
}  # fmt: skip

OF_SHAPES: dict[str, dict[str, Any]] = {
    "Backfill": {
        "schedule": "news", "count": 2, "retried": 0, "already": 46, "known": 0, "pending": 0, "dry_run": False,
        "runs": [RUN["id"]], "plan_times": ["2026-01-30T08:00:00Z", "2026-01-30T08:30:00Z"],
    },
    "CancelledJob": {"job": "crawl", "cancelled": 3, "status": CANCELLED_STATUS, "schedules": ["nightly"]},
    "Difference": {
        "kind": "change", "name": "news", "changes": [{"key": "every", "before": "30m", "after": "1h"}],
        "fires_before": ["2026-01-31T08:30:00Z"], "fires_after": ["2026-01-31T09:00:00Z"],
    },
    "Executions": {"executions": [EXECUTION], "total": 42, "limit": 50, "offset": 0},
    "JobStats": {
        "job": "crawl", "total": 4_836, "succeeded": 4_821, "failed": 12, "timed_out": 0, "cancelled": 0, "expired": 0,
        "skipped": 3, "success_rate": 0.9975, "average_duration_ms": 97, "p50_duration_ms": 84,
        "p95_duration_ms": 1_250,
        "first_at": "2025-11-01T08:00:00Z", "last_execution_at": _AT, "next_scheduled_at": "2026-01-31T08:30:00Z",
    },
    "SchedulerMetrics": {
        "jobs": {"scheduled": 9, "running": 1, "paused": 1},
        "executions": {"total": 4_836, "average_duration_ms": 97, "success_rate": 0.9975}, "last_check_at": _AT,
        "last_metrics_update": _AT, "stale_locks_cleared": 0,
    },
    "Verification": {"schedule": "news", "plan_times": 1_488},
}  # fmt: skip
"""Examples of answers by the names of their shapes, for operations that give none of their own."""
