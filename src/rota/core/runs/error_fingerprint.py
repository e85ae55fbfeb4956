"""Which errors are the same one, met again: by their type, what stays of their message, and where they were raised."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePath

import msgspec

from rota.core.runs.run import RunError

_LENGTH = 12
_LONGEST = 400
_FRAME = re.compile(r'File "([^"\n]+)", line \d+, in (\S+)')
_OURS = (PurePath(__file__).parents[2], PurePath(hashlib.__file__).parent)
_FOREIGN = re.compile(r"[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python\d|^<", re.IGNORECASE)
"""Installed packages and the standard library, also those of other machines; and what no file holds. `_OURS`: rota
itself, and the standard library here."""

_QUOTED = re.compile(r"""(?<!\w)(?:'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»)(?!\w)""")
_ADDRESS = re.compile(r"(?<![\w.+-])(?:[a-z][a-z0-9+.-]*://[^\s<>]+|[\w.+-]+@[\w.:-]+)", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w/])(?:[a-z]:)?(?:[\\/][^\s\\/:;,()<>]+)+", re.IGNORECASE)
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_ID = re.compile(r"\b(?:0x[0-9a-f]+|(?=[a-z_]*\d)\w{8,})\b", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+(?:[.,:_]\d+)*")
_SEPARATOR = re.compile(r"[\\/]")
_SPACE = re.compile(r"\s+")
_LONGEST_PART = 20
_TEMPORARY = ("tmp", "temp")


def stored_error(error: RunError, *, telling: str | None = None) -> str:
    """As it is stored, with its fingerprint. `telling`: what of it tells it apart, if not its whole message."""
    return msgspec.json.encode(msgspec.structs.replace(error, fingerprint=fingerprint_of(error, telling))).decode()


def fingerprint_of(error: RunError, telling: str | None = None) -> str:
    said = lasting(error.message if telling is None else telling)
    parts = (error.type, error.code or "", said, _place_in(error.traceback or ""))
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:_LENGTH]


def lasting(message: str) -> str:
    """What it says without what differs from one time to the next."""
    text = message[: 4 * _LONGEST]
    text = _ADDRESS.sub("<address>", _QUOTED.sub("<text>", text))
    text = _ID.sub("<id>", _UUID.sub("<id>", _PATH.sub(_lasting_path, text)))
    return _SPACE.sub(" ", _NUMBER.sub("<n>", text)).strip()[:_LONGEST]


def _lasting_path(found: re.Match[str]) -> str:
    """Names of folders stay, but for those that are made up: with a number in them, long, or below a temporary one."""
    parts = _SEPARATOR.split(found[0])
    for place, part in enumerate(parts):
        made_up = any(sign.isdigit() for sign in part) or len(part) > _LONGEST_PART
        if made_up or (place and parts[place - 1].lower() in _TEMPORARY) or (part.startswith("tmp") and part != "tmp"):
            parts[place] = "*"
    return "/".join(parts)


def _place_in(traceback: str) -> str:
    """The innermost frame of the handler's own code. Lines move with every edit of a file, and are left out."""
    for file, function in reversed(_FRAME.findall(traceback)):
        if not (_FOREIGN.search(file) or any(PurePath(file).is_relative_to(folder) for folder in _OURS)):
            return f"{_SEPARATOR.split(file)[-1]}:{function}"
    return ""
