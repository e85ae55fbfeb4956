"""Redaction: hide secrets in runs from readers who may not see them, and keep them in payloads that they edit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from rota.core.jobs.secrets import MASK
from rota.core.progress.notes import LogLine, Progress
from rota.core.progress.steps import Step
from rota.core.runs.run import Attempt, Run, RunError
from rota.errors import MaskedSecret
from rota.values.json import step

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ANYWHERE = {"password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "authorization"}
_AT_THE_END = {"token", "cookie", "jwt", "apikey", "pwd"}  # `token_count` and `max_tokens` are numbers
_KEYS = {"api", "access", "private", "signing", "encryption", "auth"}
_SHORTEST = 4  # a shorter text would also be masked inside harmless words


@lru_cache(maxsize=4_096)
def names_secret(name: str) -> bool:
    """Return whether a field's name suggests a secret.

    It compares whole words, so that `author` and `primary_key` do not match; stricter than for jobs, whose headers
    nobody needs to see.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return False
    is_key = len(words) > 1 and words[-1] in ("key", "keys") and words[-2] in _KEYS
    return is_key or words[-1] in _AT_THE_END or not _ANYWHERE.isdisjoint(words)


class Discreet:
    """Redacted view of a run: values under secret names in its payload are hidden wherever they occur.

    That includes its result, errors, steps and log.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._secrets = _secrets_in(run.payload)

    def run(self) -> Run:
        run = self._run
        return msgspec.structs.replace(
            run,
            payload=self.value(run.payload),
            result=self.value(run.result),
            metadata=self.value(run.metadata),
            error=self._error(run.error),
            reason=self.text(run.reason),
            progress=None if run.progress is None else self._summarized(run.progress),
        )

    def payload_and_error(self) -> tuple[Any, RunError | None]:
        return self.value(self._run.payload), self._error(self._run.error)

    def told(self, value: Any) -> Any:
        """Return something about the run, redacted: an attempt, a step, a log line, or any other structure."""
        match value:
            case Attempt():
                return self.attempt(value)
            case Step():
                return self.step(value)
            case LogLine():
                return self.line(value)
            case Progress():
                return self._summarized(value)
            case _:
                return self.value(msgspec.to_builtins(value))

    def attempt(self, attempt: Attempt) -> Attempt:
        return msgspec.structs.replace(attempt, error=self._error(attempt.error))

    def step(self, step: Step) -> Step:
        error = self._error(step.error) if isinstance(step.error, RunError) else self.value(step.error)
        shown = {"result": self.value(step.result), "error": error, "summary": self.text(step.summary)}
        return msgspec.structs.replace(step, **shown)

    def line(self, line: LogLine) -> LogLine:
        return msgspec.structs.replace(line, text=self.text(line.text))

    def value(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {name: _hidden(item) if names_secret(name) else self.value(item) for name, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value

    def text(self, text: Any) -> Any:
        return masked(text, self._secrets) if self._secrets and text else text

    def _error(self, error: RunError | None) -> RunError | None:
        if error is None or not self._secrets:
            return error
        return msgspec.structs.replace(error, message=self.text(error.message), traceback=self.text(error.traceback))

    def _summarized(self, progress: Progress) -> Progress:
        steps = tuple(self.step(step) for step in progress.steps)
        return msgspec.structs.replace(progress, summary=self.text(progress.summary), steps=steps)


def without_secrets(text: str, payload: str) -> str:
    """Redact `text` for a log; `payload` is the JSON of the run that the text is about."""
    try:
        secrets = _secrets_in(msgspec.json.decode(payload))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text
    return masked(text, secrets)


def concealed(value: Any) -> Any:
    """Redact a document by the names of its fields alone."""
    if isinstance(value, Mapping):
        return {name: _hidden(item) if names_secret(name) else concealed(item) for name, item in value.items()}
    return [concealed(item) for item in value] if isinstance(value, list | tuple) else value


def _hidden(value: Any) -> Any:
    """Mask a value; null and booleans stay, since they reveal nothing."""
    return value if value is None or isinstance(value, bool) else MASK


def masked(text: str, secrets: Iterable[str]) -> str:
    """Mask all `secrets` in `text`, from the left, the longest first.

    Not with a regular expression: each run has its own secrets, and compiling a pattern takes longer than searching.
    """
    places = {secret: at for secret in secrets if (at := text.find(secret)) >= 0}
    parts, begin = [], 0
    while places:
        at, length = min((at, -len(secret)) for secret, at in places.items())
        parts += [text[begin:at], MASK]
        begin = at - length
        for secret in [secret for secret, at in places.items() if at < begin]:
            places[secret] = text.find(secret, begin)
            if places[secret] < 0:
                del places[secret]
    return "".join([*parts, text[begin:]])


def _secrets_in(payload: Any) -> frozenset[str]:
    return frozenset(text for text in _texts(payload) if len(text) >= _SHORTEST)


def _texts(value: Any, *, secret: bool = False) -> Iterator[str]:
    """Yield all texts below a field whose name suggests a secret."""
    match value:
        case str() if secret:
            yield value
        case Mapping():
            for name, item in value.items():
                yield from _texts(item, secret=secret or names_secret(name))
        case list() | tuple():
            for item in value:
                yield from _texts(item, secret=secret)


_ABSENT = object()


def restored(edited: Mapping[str, Any], old: Any, shown: Any) -> dict[str, Any]:
    """Return an edited payload with the values of `old` wherever it still has what was `shown` in their place.

    A mask under the name of a secret that stands for nothing raises `MaskedSecret`: it would become the secret.
    """
    return {
        name: _restored(item, _item(old, name), _item(shown, name), step("$", name), name)
        for name, item in edited.items()
    }


def _restored(edited: Any, old: Any, shown: Any, path: str, name: str) -> Any:
    if old is not _ABSENT and edited == shown and type(edited) is type(shown):
        return old
    match edited:
        case Mapping():
            return {
                key: _restored(item, _item(old, key), _item(shown, key), step(path, key), key)
                for key, item in edited.items()
            }
        case list():
            return [
                _restored(item, _item(old, place), _item(shown, place), step(path, place), name)
                for place, item in enumerate(edited)
            ]
        case str() if edited == MASK and names_secret(name):
            raise MaskedSecret(path)
        case _:
            return edited


def _item(value: Any, key: str | int) -> Any:
    match value, key:
        case Mapping(), str():
            return value.get(key, _ABSENT)
        case list(), int():
            return value[key] if key < len(value) else _ABSENT
        case _:
            return _ABSENT


def edited_fields(edited: Mapping[str, Any], old: Any) -> tuple[str, ...]:
    """Return the names of the fields in which two payloads differ, sorted."""
    before = old if isinstance(old, Mapping) else {}
    return tuple(sorted(name for name in {*edited, *before} if edited.get(name, _ABSENT) != before.get(name, _ABSENT)))
