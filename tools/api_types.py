"""Write `web/src/api/schema.ts`: the API's schemas as TypeScript, generated from its OpenAPI document.

.venv/bin/python tools/api_types.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rota.api import asgi
from rota.api.docs.openapi import described
from rota.app import Rota

TARGET = Path(__file__).resolve().parents[1] / "web" / "src" / "api" / "schema.ts"
_HEAD = "// Written by tools/api_types.py from the API's OpenAPI document. Do not edit.\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_REF = "#/components/schemas/"


def written() -> str:
    """Return the whole file."""
    document = described(asgi(Rota("sqlite:///unused.db")).routes)
    schemas = document["components"]["schemas"]
    parts = [_declared(name, schema) for name, schema in sorted(schemas.items())]
    return "\n".join([_HEAD, *parts])


def _declared(name: str, schema: Mapping[str, Any]) -> str:
    comment = f"/** {_one_line(schema['description'])} */\n" if schema.get("description") else ""
    if schema.get("type") == "object" and schema.get("properties"):
        fields = "".join(_field(key, value, schema) for key, value in schema["properties"].items())
        return f"{comment}export interface {name} {{\n{fields}}}\n"
    return f"{comment}export type {name} = {_type(schema)};\n"


def _field(name: str, schema: Mapping[str, Any], of: Mapping[str, Any]) -> str:
    key = name if _NAME.fullmatch(name) else f'"{name}"'
    optional = "" if name in of.get("required", []) else "?"
    comment = f"  /** {_one_line(schema['description'])} */\n" if schema.get("description") else ""
    return f"{comment}  {key}{optional}: {_type(schema)};\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("*/", "* /")


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": str(ref)}:
            return ref.removeprefix(_REF)
        case {"enum": list(values)}:
            return " | ".join("null" if value is None else f'"{value}"' for value in values)
        case {"anyOf": list(parts)} | {"oneOf": list(parts)}:
            return " | ".join(dict.fromkeys(_type(part) for part in parts))
        case {"type": list(kinds)}:
            return " | ".join(_type({**schema, "type": kind}) for kind in kinds)
        case {"type": "array"}:
            return _array(schema)
        case {"type": "object"}:
            return _object(schema)
        case {"type": str(kind)}:
            return _PLAIN[kind]
        case _:
            return "unknown"


def _array(schema: Mapping[str, Any]) -> str:
    if schema.get("prefixItems"):
        return f"[{', '.join(_type(part) for part in schema['prefixItems'])}]"
    inner = _type(schema.get("items") or {})
    return f"({inner})[]" if " | " in inner else f"{inner}[]"


def _object(schema: Mapping[str, Any]) -> str:
    values = schema.get("additionalProperties")
    return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(written(), encoding="utf-8")
