"""Payloads given on the command line: JSON text, `@FILE`, or `-` for standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rota.errors import BadPayload, Invalid
from rota.values import json
from rota.values.json import Limits

_FILE = 'it must contain one JSON object with a key for each argument: {"name": "x"}'
_PAYLOAD = """use single quotes, and a key for each argument: '{"name": "x"}'"""
_KINDS = {
    list: "an array", str: "a string", int: "a number", float: "a number", bool: "true or false", type(None): "null",
}  # fmt: skip


def arguments_of(source: str, limits: Limits) -> dict[str, Any]:
    return decode_object(_content(source), limits, _FILE if source == "-" or source.startswith("@") else _PAYLOAD)


def _content(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    if not source.startswith("@"):
        return source.encode()
    try:
        return Path(source[1:]).read_bytes()
    except OSError as error:
        raise Invalid(f"cannot read {source[1:]}: {error.strerror}") from None


def decode_object(text: bytes, limits: Limits, example: str) -> dict[str, Any]:
    try:
        value = json.decode(text, limits)
    except BadPayload as error:
        if not error.problem.startswith("is not JSON"):
            raise
        raise BadPayload("$", error.problem.replace("JSON is malformed: ", ""), hint=example) from None
    if not isinstance(value, dict):
        raise BadPayload("$", f"must be an object, not {_KINDS[type(value)]}", hint=example)
    return value
