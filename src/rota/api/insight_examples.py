"""Examples of what people look at, for the API's documentation."""

from __future__ import annotations

from typing import Any

_AT = "2026-01-31T08:00:00Z"

OVERVIEW: dict[str, Any] = {
    "at": _AT,
    "live": {"running": 3, "cancelling": 0, "queued": 17, "scheduled": 4, "waiting": 1, "oldest_queued_at": _AT,
             "capped": False},
    "late": {"runs": 2, "schedules": 1},
    "last_day": {"runs": {"failed": 12, "skipped": 3, "succeeded": 4_821}, "success_rate": 0.9975},
    "workers": {"alive": 2, "stale": 1, "slots": 20, "busy": 3},
    "schedules": {"active": 9, "paused": 1, "job_paused": 0, "disabled": 0, "ended": 2},
    "attention": [
        {"kind": "queue_unserved", "subject": "mail", "since": _AT,
         "text": "no live worker takes from queue mail, where 17 runs wait",
         "hint": "rota worker MODULE:APP --queues mail"},
    ],
    "attention_count": 1,
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
    "lanes": [
        {"name": "nightly", "overlaps": False, "coming": ["2026-01-31T09:00:00Z"],
         "attempts": [
             {"run_id": "019c1a2b-7d1e-7c3a-9f00-5d1f3c2b1a00", "no": 1, "job": "cleanup", "state": "succeeded",
              "worker_id": "web-1@5be1c0ffee00", "started_at": _AT, "ended_at": "2026-01-31T08:00:03Z"},
         ]},
    ],
}  # fmt: skip
