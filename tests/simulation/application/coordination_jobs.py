"""Jobs whose runs are done by several workers, by some of them only, by somebody outside, or so many within a span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.engine.handlers.context import Context
    from tests.simulation.world.processes import Process

LABELS = {"engine-2": "gpu,zone=eu", "engine-3": "zone=us"}
"""Of engines, by name."""

EXTERNAL: dict[str, dict[str, Any]] = {
    "label": {"max_attempts": 3, "backoff": "1s", "cancel_grace": "3s"},
    "scan": {"max_attempts": 2, "backoff": "1s", "cancel_grace": "3s", "max_concurrency": 1},
}
REPLICATED: dict[str, dict[str, Any]] = {
    "pair": {"replicas": 2, "max_attempts": 2, "backoff": "1s", "cancel_grace": "3s"},
    "lenient": {"replicas": {"count": 2, "allowed_failures": 1}, "max_attempts": 1, "backoff": "1s"},
    "fleet": {"replicas": {"all": True, "absent_after": "12s"}, "max_attempts": 2, "backoff": "1s"},
    "chosen": {"replicas": {"count": 1, "allowed_failures": 1}, "labels": ["zone"], "max_attempts": 2, "backoff": "1s"},
}
RATED: dict[str, dict[str, Any]] = {
    "rated": {"max_attempts": 3, "backoff": "1s", "limit": {"max": 2, "per": "3s"}},
    "metered": {"max_attempts": 2, "backoff": "1s", "limit": {"max": 1, "per": "2s", "by": ["scope"]}},
    "throttled": {"max_attempts": 3, "backoff": "1s", "limit": [{"max": 3, "per": "5s"}, {"max": 1, "by": ["scope"]}]},
}
JOBS: dict[str, dict[str, Any]] = {
    "asker": {"max_attempts": 3, "backoff": "1s", "cancel_grace": "3s", "max_concurrency": 1},
    "giver": {"max_attempts": 3, "backoff": "1s", "cancel_grace": "3s"},
    "graphic": {"max_attempts": 3, "backoff": "1s", "labels": ["gpu"]},
    "named": {"max_attempts": 3, "backoff": "1s", "only_workers": ["engine-1", "engine-2"], "cancel_grace": "3s"},
    **EXTERNAL,
    **REPLICATED,
    **RATED,
}

HAND_OVER = {"ask": (3, "answer"), "await": (9, "answer"), "give": (4, None), "lend": (30, None)}
"""What handlers do that hand over: for how many seconds, and which step they wait for."""


async def hand_over(process: Process, ctx: Context, word: str) -> None:
    seconds, step = HAND_OVER[word]
    if step is None:
        await ctx.wait_for_external(f"{seconds}s")
    answer = await ctx.wait_for_external(f"{seconds}s", step=str(step))
    process.world.diary.heard[ctx.run_id, ctx.fence] = answer
