"""Command jobs as values: a program with its arguments, never a shell command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.core.jobs.placeholders import Facts, check_places, filled_text
from rota.errors import Invalid

TRY_AGAIN = 75
"""EX_TEMPFAIL, by which a program asks for a retry."""
_MOST_WORDS = 1_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """Program, arguments and environment of a command job.

    `stdin`: None for nothing, or `payload`. `retry_exit_codes`: the exit codes that are retried, None for all.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    cwd: str | None = None
    stdin: str | None = None
    retry_exit_codes: tuple[int, ...] | None = None


COMMAND_OPTIONS = CommandLine.__struct_fields__


def command_of(given: Mapping[str, Any]) -> CommandLine:
    """Validate the command options of a job; None counts as not given."""
    options = {name: given[name] for name in COMMAND_OPTIONS if given.get(name) is not None}
    stdin = options.get("stdin")
    if stdin not in (None, "payload"):
        raise Invalid(f"stdin cannot be {stdin!r:.80}", hint='"payload", or leave it out')
    return CommandLine(
        argv=_argv(options.get("argv")),
        env=_environment(options.get("env", {})),
        cwd=None if options.get("cwd") is None else _text(options["cwd"], "cwd"),
        stdin=stdin,
        retry_exit_codes=_exit_codes(options.get("retry_exit_codes")),
    )


def _argv(argv: object) -> tuple[str, ...]:
    if isinstance(argv, str):
        raise Invalid("a command is a list of words, not a shell command line", hint='["pg_dump", "-Fc", "shop"]')
    if not isinstance(argv, Sequence) or not 1 <= len(argv) <= _MOST_WORDS:
        raise Invalid(f"a command is a list of 1 to {_MOST_WORDS} words, not {argv!r:.80}")
    words = tuple(_text(word, "a word of a command") for word in argv)
    if not words[0] or check_places(words[0], "the program"):
        raise Invalid("the program of a command must not contain placeholders")
    check_places(list(words), "the command")
    return words


def _environment(env: object) -> dict[str, str]:
    if not isinstance(env, Mapping):
        raise Invalid(f"env must map names to values, not {env!r:.80}")
    for name, value in env.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Invalid(f"{name!r:.80} is not a valid name of a variable")
        if name.startswith("ROTA_"):
            raise Invalid(f"{name}: variables that begin with ROTA_ are set by rota itself")
        check_places(_text(value, f"env {name}"), f"env {name}")
    return dict(env)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or "\x00" in value:
        raise Invalid(f"{what} must be text without NUL, not {value!r:.80}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{what} contains an unpaired surrogate") from None
    return value


def _exit_codes(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    codes = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(code, int) and not isinstance(code, bool) and 1 <= code <= 255 for code in codes):
        raise Invalid(f"retry_exit_codes must be numbers from 1 to 255, not {value!r:.80}")
    return codes


def filled(command: CommandLine, facts: Facts) -> CommandLine:
    """Fill the placeholders for one run. Raises `Invalid` where the payload does not fit."""
    return msgspec.structs.replace(
        command,
        argv=(command.argv[0], *(_text(filled_text(word, facts), "a word of a command") for word in command.argv[1:])),
        env={name: _text(filled_text(value, facts), f"env {name}") for name, value in command.env.items()},
    )


def is_retried(command: CommandLine, exit_code: int) -> bool:
    """Return whether this exit code is retried; one of a signal, which is negative, always is."""
    codes = command.retry_exit_codes
    return codes is None or exit_code in (*codes, TRY_AGAIN) or exit_code < 0
