"""What a test left running on its event loop, of ours."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import rota

_PACKAGE = str(Path(rota.__file__).parent)


def tasks_left() -> list[str]:
    """Tasks that the code of this package began, handlers among them; others may have their own, and keep them."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return [f"task {task.get_name()} still runs {task.get_coro()}" for task in others if _is_ours(task)]


def _is_ours(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and str(code.co_filename).startswith(_PACKAGE)
