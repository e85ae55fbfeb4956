"""Resolve the annotations of a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints


def namespace_of(fn: Callable[..., object]) -> dict[str, Any]:
    """Return the globals in which the names of annotations are resolved."""
    while isinstance(fn, partial):
        fn = fn.func
    fn = inspect.unwrap(fn)
    held: dict[str, Any] | None = getattr(fn, "__globals__", None)
    return held if held is not None else getattr(type(fn).__call__, "__globals__", {})


def resolved(annotation: object, namespace: dict[str, Any]) -> Any:
    """Resolve one annotation on its own: a name missing at run time must not hide the others."""
    holder: Any = SimpleNamespace(__annotations__={"it": annotation})
    return get_type_hints(holder, globalns=namespace, include_extras=True)["it"]
