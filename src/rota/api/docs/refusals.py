"""Problems that operations may answer, in OpenAPI: by status, with the codes that programs decide by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Any

import msgspec

from rota.api.docs.examples import problem_of
from rota.errors import RotaError

MEDIA = "application/problem+json"
_MOST_NAMED = 3
_SENTENCE_END = re.compile(r"(?<=[.])\s")

Codes = Mapping[str, list[str]]
"""Codes by status."""


class Refusals:
    """Responses for problems. Those that several operations have are components."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        counts = Counter((status, *codes) for raised in _raised().values() for status, codes in raised.items())
        shared = [key for key, count in counts.items() if count > 1 and len(key) <= 1 + _MOST_NAMED]
        self._names = {key: "Or".join(map(_camel, key[1:])) for key in sorted(shared)}

    def of(self, operation: str) -> dict[str, Any]:
        """Return the responses of an operation by status."""
        raised = _raised().get(operation, {})
        return {status: self._response((status, *codes)) for status, codes in raised.items()}

    def _response(self, key: tuple[str, ...]) -> dict[str, Any]:
        name = self._names.get(key)
        return self._problem(*key) if name is None else {"$ref": f"#/components/responses/{name}"}

    def other(self) -> dict[str, Any]:
        """Return the response for all other statuses."""
        return {"$ref": "#/components/responses/Other"}

    def components(self) -> dict[str, Any]:
        """Return the responses by name."""
        other = {"description": "Another problem", "content": {MEDIA: {"schema": self._schema}}}
        return {**{name: self._problem(*key) for key, name in self._names.items()}, "Other": other}

    def _problem(self, status: str, *codes: str) -> dict[str, Any]:
        meanings = "".join(f"\n- `{code}`: {_meanings().get(code, '')}" for code in codes)
        title = HTTPStatus(int(status)).phrase
        example = problem_of(int(status), title, codes[0], _meanings().get(codes[0], ""))
        return {
            "description": f"{title}\n{meanings}",
            "x-codes": list(codes),
            "content": {MEDIA: {"schema": self._schema, "example": example}},
        }


@cache
def _raised() -> dict[str, dict[str, list[str]]]:
    """Return the codes that tools/reference/problems found in the code, by operation and status."""
    content = resources.files(__package__).joinpath("raised.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, dict[str, list[str]]])


@cache
def _meanings() -> dict[str, str]:
    """Return the first sentence about each code."""
    texts = {error.code: " ".join((error.__doc__ or "").split()) for error in _below(RotaError)}
    return {code: _SENTENCE_END.split(text)[0] for code, text in texts.items()}


def _below(kind: type[RotaError]) -> Iterator[type[RotaError]]:
    """Yield the errors below one, the most general last, which have the codes that others inherit."""
    for error in kind.__subclasses__():
        yield from _below(error)
        yield error


def _camel(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("-"))
