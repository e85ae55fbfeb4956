"""Return type of a handler, into which a stored result is read back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from rota.errors import Invalid
from rota.registry.annotations import namespace_of, resolved
from rota.values.json import Json


class ResultType:
    """Type that a function's annotation names, resolved at the first use.

    A result of a function without an annotation, or with one that JSON cannot be read into, stays as it is stored.
    """

    __slots__ = ("_annotation", "_fn")

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn: Callable[..., Any] | None = fn
        self._annotation: Any = Any

    def read(self, result: Json) -> Any:
        if self._fn is not None:
            self._annotation, self._fn = _returned(self._fn), None
        if self._annotation is Any:
            return result
        try:
            return msgspec.convert(result, self._annotation, str_keys=True)
        except msgspec.ValidationError as failure:
            shown = inspect.formatannotation(self._annotation)
            raise Invalid(
                f"the result does not fit {shown}: {failure}", hint="`handle.wait().result` is the JSON as it is stored"
            ) from None


def _returned(fn: Callable[..., Any]) -> Any:
    try:
        annotation = inspect.signature(fn).return_annotation
        if annotation is inspect.Signature.empty:
            return Any
        annotation = resolved(annotation, namespace_of(fn))
        msgspec.json.Decoder(annotation)
    except Exception:  # resolving evaluates any text, and a type may be one that msgspec does not know
        return Any
    return annotation
