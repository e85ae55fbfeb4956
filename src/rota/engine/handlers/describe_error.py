"""Exceptions of handlers, in words that can be stored."""

from __future__ import annotations

import traceback
from typing import Any

from rota.core.progress.control_flow import Signal
from rota.core.runs.run import RunError

OWN = ("rota.engine.", "rota.registry.")
"""Modules whose frames around a handler's own tell nobody anything."""
_LONGEST_MESSAGE = 2_000
_LONGEST_TRACEBACK = 8_000


def error_of(error: BaseException) -> RunError:
    """Describe an exception, limited in length and safe to store whatever its text contains."""
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be shown)"
    if isinstance(error, Signal) and error.code is not None:  # rota's own: a traceback would not help
        kind = error.code.title().replace("_", "")
        return RunError(type=kind, message=_storable(message)[:_LONGEST_MESSAGE], code=error.code)
    frames = "".join(traceback.format_exception(type(error), error, _own_frames(error)))
    return RunError(
        type=type(error).__qualname__,
        message=_storable(message)[:_LONGEST_MESSAGE],
        traceback=_storable(frames)[-_LONGEST_TRACEBACK:],
    )


def _own_frames(error: BaseException) -> Any:
    """Return the traceback without the worker's frames at its head."""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_globals.get("__name__", "").startswith(OWN):
        frames = frames.tb_next
    return frames or error.__traceback__


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "�")
