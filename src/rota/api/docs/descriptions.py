"""Descriptions of fields: docstrings below them in the source, else the glossary."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache

import msgspec

from rota.verbs.glossary import GLOSSARY


def description_of(struct: type[msgspec.Struct], field: msgspec.structs.FieldInfo) -> str:
    """Return the description of a field of a struct that its annotation does not have; empty if there is none."""
    for kind in struct.__mro__:
        if field.name in vars(kind).get("__annotations__", {}):
            own = _docstrings(kind.__module__).get((kind.__qualname__, field.name))
            return own or GLOSSARY.get(field.encode_name, "")
    return GLOSSARY.get(field.encode_name, "")


@cache
def _docstrings(module: str) -> dict[tuple[str, str], str]:
    """Return the docstrings of attributes in a module, by class and name; none where the source is not installed."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, KeyError):
        return {}
    docstrings: dict[tuple[str, str], str] = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, below in zip(kind.body, kind.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docstrings[kind.name, name] = " ".join(text.split()).removesuffix(".")
    return docstrings
