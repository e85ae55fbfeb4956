"""Fingerprint of an error: a hash of its type, code, the stable part of its message, and where it was raised."""

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
"""Frames of installed packages and the standard library, also those of other machines, and of code without a file.
`_OURS`: rota itself, and the standard library of this machine."""

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
    """Return the error as JSON with its fingerprint. `telling`: text to hash instead of the whole message."""
    return msgspec.json.encode(msgspec.structs.replace(error, fingerprint=fingerprint_of(error, telling))).decode()


def fingerprint_of(error: RunError, telling: str | None = None) -> str:
    message = lasting(error.message if telling is None else telling)
    parts = (error.type, error.code or "", message, _place_in(error.traceback or ""))
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:_LENGTH]


def lasting(message: str) -> str:
    """Replace the parts of a message that differ from one time to the next (ids, numbers, paths) by placeholders."""
    text = message[: 4 * _LONGEST]
    text = _ADDRESS.sub("<address>", _QUOTED.sub("<text>", text))
    text = _ID.sub("<id>", _UUID.sub("<id>", _PATH.sub(_lasting_path, text)))
    return _SPACE.sub(" ", _NUMBER.sub("<n>", text)).strip()[:_LONGEST]


def _lasting_path(path: re.Match[str]) -> str:
    """Keep the names of folders, except generated ones: with a digit, long, or inside a temporary folder."""
    parts = _SEPARATOR.split(path[0])
    for place, part in enumerate(parts):
        made_up = any(sign.isdigit() for sign in part) or len(part) > _LONGEST_PART
        if made_up or (place and parts[place - 1].lower() in _TEMPORARY) or (part.startswith("tmp") and part != "tmp"):
            parts[place] = "*"
    return "/".join(parts)


def _place_in(traceback: str) -> str:
    """Return file and function of the innermost frame of the handler's own code.

    Line numbers are left out: they move with every edit.
    """
    for file, function in reversed(_FRAME.findall(traceback)):
        if not (_FOREIGN.search(file) or any(PurePath(file).is_relative_to(folder) for folder in _OURS)):
            return f"{_SEPARATOR.split(file)[-1]}:{function}"
    return ""
