"""Log formatters: text for people, or one JSON object per line with the fields of the run."""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime

import msgspec

from rota.engine.handlers.current_run import run_fields
from rota.observability.tracing import trace_fields

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OURS = frozenset({"time", "level", "logger", "exception"})
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class JsonLines(logging.Formatter):
    """Formatter of JSON lines: `time`, `level`, `logger`, `message`, then the fields of `extra` and of the run."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **run_fields(),
            **trace_fields(),
            **{name: value for name, value in vars(record).items() if name not in _USUAL | _OURS},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _one_line(line)


def _one_line(line: dict[str, object]) -> str:
    """Encode `line`; fall back to ASCII representations for values that JSON cannot hold."""
    try:
        text = msgspec.json.encode(line, enc_hook=str).decode()
    except Exception:
        safe = {str(name): ascii(value) for name, value in line.items()}
        text = msgspec.json.encode(safe).decode()
    return text


class _Visible(logging.Formatter):
    """Formatter that escapes control characters: text from a handler must not control the terminal it is read on."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).translate(_CONTROLS)


def text_lines() -> logging.Formatter:
    form = _Visible("%(asctime)s.%(msecs)03dZ %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    form.converter = time.gmtime
    return form


set_up: tuple[str, str] | None = None
"""Level and format of this process's log, if it was set up here; child processes use the same."""


def log_to_stderr(level: str, log_format: str) -> None:
    global set_up  # noqa: PLW0603  # as logging itself, it is the whole process's
    set_up = (level, log_format)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else text_lines())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    # Its "Started server process" under the name "uvicorn.error" looks like an error.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.root.level))
