"""Jobs that are done outside: declared without a function, their payloads checked by a schema."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from rota.core import jsonvalue
from rota.core.jsonvalue import Limits
from rota.core.outside import EXTERNAL
from rota.errors import BadPayload, Invalid
from rota.registry.jobs import Handler, declare
from rota.registry.signature import PayloadType, check_schema

_HERE_ONLY = ("isolation", "cpu_limit", "memory_limit", "local_retries")
_ANY_OBJECT = {"type": "object"}


class SchemaPayload(PayloadType):
    """Whatever the schema allows."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Mapping[str, Any]) -> None:
        super().__init__((), wants_context=None, rest=None)
        self._schema = dict(schema)
        with suppress(BadPayload):  # whether it can be read is asked here, not what it asks for
            check_schema(self._schema, "{}", Limits())

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        if args:
            raise BadPayload("$", f"takes no positional arguments, {len(args)} were given", hint="give them by name")
        return dict(kwargs)

    def encode(self, arguments: dict[str, object], limits: Limits) -> str:
        text = jsonvalue.encode(arguments, limits)
        check_schema(self._schema, text, limits)
        return text

    def arguments(self, text: str | bytes) -> dict[str, object]:
        return msgspec.json.decode(text, type=dict[str, object])

    def schema(self) -> dict[str, object]:
        return self._schema


def declare_external(name: str, schema: Mapping[str, Any] | None, options: Mapping[str, Any]) -> Handler:
    for option in ("name", *_HERE_ONLY):
        if option in options:
            raise Invalid(f"{option} is nothing for a job that is done outside: {name!r:.80}")
    if schema is not None and not isinstance(schema, Mapping):
        raise Invalid(f"a payload schema is a JSON Schema, as a dict: not {schema!r:.80}")

    def done_outside(**_payload: Any) -> None:
        """Where handlers are called without a worker, in tests, nothing is done."""

    payload = SchemaPayload(_ANY_OBJECT if schema is None else schema)
    described = {"description": "", **options, "name": name}
    # As far as a function's job goes: the payload stands in for what is read off a signature.
    definition = declare(done_outside, type(None), described).definition
    kept = msgspec.structs.replace(definition, kind=EXTERNAL, payload_schema=payload.schema())
    return Handler(kept, done_outside, payload)
