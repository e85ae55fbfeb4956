"""Root of all errors, and the five families: each with one HTTP status and one exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar, Self

_ALIKE = 0.66  # less would match other words, more would miss one wrong letter in three


class RotaError(Exception):
    """Root of all errors that rota raises."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def within(self, what: str) -> Self:
        """Prefix the message with its subject (`what`), unless it names it already."""
        if what not in self.message:
            self.message = f"{what}: {self.message}"
        return self

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class NotFound(RotaError):
    """The object does not exist."""

    status, exit_code, code = 404, 4, "not-found"


class Conflict(RotaError):
    """The request does not fit the current state."""

    status, exit_code, code = 409, 6, "conflict"


class Invalid(RotaError):
    """A value is not valid."""

    status, exit_code, code = 422, 2, "invalid"


class Denied(RotaError):
    """The caller is not allowed to do this."""

    status, exit_code, code = 403, 5, "denied"


class Unavailable(RotaError):
    """The database or the server cannot be reached, or does not answer requests."""

    status, exit_code, code = 503, 69, "unavailable"
    may_pass = True  # False: waiting does not help, somebody has to act on this program


def _begins(word: str, name: str) -> bool:
    """Return whether one word is a prefix of the other, such as `max` of `maximum`."""
    return min(len(word), len(name)) > 2 and (word.startswith(name) or name.startswith(word))


def did_you_mean(word: str, known: Iterable[str], *, few: int = 8) -> str | None:
    """Return a hint with the nearest known word, or with all of them if there are at most `few`."""
    names = sorted(str(name) for name in known)  # a member of an enum would be quoted as such
    near = difflib.get_close_matches(word, names, n=1, cutoff=_ALIKE) or [name for name in names if _begins(word, name)]
    if near:
        return f"did you mean {near[0]!r}?"
    if 0 < len(names) <= few:
        return "known: " + ", ".join(names)
    return None
