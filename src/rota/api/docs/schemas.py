"""JSON Schemas of the shapes that operations mention, in a form that generators of clients understand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec
from msgspec import NODEFAULT, UNSET, inspect

from rota.api.docs.descriptions import description_of
from rota.api.operations.operation import Operation
from rota.verbs.wire import Instant

Schema = dict[str, Any]

INSTANT: str = get_args(Instant)[1].description
"""Words of the type of times, which say how they are written, not what they mean."""

_REF = "#/components/schemas/"


class Schemas:
    """JSON Schemas of all shapes that operations mention, and of others that are answered, each once."""

    def __init__(self, operations: Iterable[Operation], answered: Iterable[type[msgspec.Struct]] = ()) -> None:
        asked: list[Any] = []
        shapes: list[Any] = list(answered)
        for operation in operations:
            asked += [*_parts(operation.body), *_parts(operation.query)]
            shapes += [*_parts(operation.answers)]
        shapes = list(dict.fromkeys([*asked, *shapes]))
        schemas, components = msgspec.json.schema_components(shapes, ref_template=_REF + "{name}")
        self._of: dict[Any, Schema] = dict(zip(shapes, map(_plain, schemas), strict=True))
        self._with_defaults: dict[str, Schema] = {name: _plain(schema) for name, schema in components.items()}
        structs = {struct.__name__: struct for struct in _structs(shapes)}
        for name in structs.keys() & self._with_defaults.keys():
            _describe(self._with_defaults[name], structs[name])
        self._components = self._with_defaults
        in_requests = self.mentioned([self._of[shape] for shape in asked])
        self._components = {
            name: _asked(schema) if name in in_requests or name not in structs else _answered(schema, structs[name])
            for name, schema in self._with_defaults.items()
        }

    def of(self, shape: Any) -> Schema:
        """Return the schema of a shape, or of any shape of a union."""
        schemas = [self._of[part] for part in _parts(shape)]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def parameters(self, query: type[msgspec.Struct]) -> tuple[Mapping[str, Schema], list[str]]:
        """Return the schemas of query parameters, and the names of those that are required."""
        schema = self._with_defaults[self._of[query]["$ref"].removeprefix(_REF)]
        return schema.get("properties", {}), schema.get("required", [])

    def completed(self, example: Any, schema: Schema) -> Any:
        """Return an example of an answer with the fields that it omits because they have their defaults."""
        match schema, example:
            case {"$ref": str(ref)}, dict():
                name = ref.removeprefix(_REF)
                fields, required = self._with_defaults[name]["properties"], self._components[name].get("required", [])
                defaults = {field: fields[field]["default"] for field in required if "default" in fields[field]}
                whole = defaults | {key: self.completed(value, fields.get(key, {})) for key, value in example.items()}
                return {key: whole[key] for key in (*fields, *example) if key in whole}
            case {"anyOf": list(parts)}, dict():
                fitting = [part for part in parts if self._may_be(example, part)]
                return self.completed(example, fitting[0]) if fitting else example
            case {"items": dict(inner)}, list():
                return [self.completed(item, inner) for item in example]
            case {"properties": dict(fields)}, dict():
                return {field: self.completed(value, fields[field]) for field, value in example.items()}
            case _:
                return example

    def _may_be(self, example: Mapping[str, Any], schema: Schema) -> bool:
        shape = self._with_defaults.get(schema.get("$ref", "").removeprefix(_REF), {})
        return example.keys() <= shape.get("properties", {}).keys() and example.keys() >= set(shape.get("required", []))

    def mentioned(self, document: Any) -> dict[str, Schema]:
        """Return the schemas by name that a document refers to, directly or through others."""
        names: set[str] = set()
        waiting = [document]
        while waiting:
            match waiting.pop():
                case {"$ref": str(ref)} if ref.startswith(_REF):
                    name = ref.removeprefix(_REF)
                    waiting += [] if name in names else [self._components[name]]
                    names.add(name)
                case dict() as value:
                    waiting.extend(value.values())
                case list() as value:
                    waiting.extend(value)
                case _:
                    pass
        return {name: schema for name, schema in self._components.items() if name in names}


def _parts(shape: Any) -> list[Any]:
    if shape is None:
        return []
    return list(get_args(shape)) if not isinstance(shape, type) and "Union" in type(shape).__name__ else [shape]


def _plain(schema: Any) -> Any:
    """Return a schema without what generators of clients do not understand.

    `format: duration` goes, because rota's durations are texts such as `90s`, not ISO 8601. An array says what its
    items are, also where `prefixItems` does, and an object that names no properties that it may have any.
    """
    match schema:
        case list():
            return [_plain(value) for value in schema]
        case dict():
            result = {name: _plain(value) for name, value in schema.items() if (name, value) != ("format", "duration")}
            match result:
                case {"type": "array"} if not result.get("items"):
                    parts = result.get("prefixItems", [])
                    result["items"] = _any_of(parts) if parts else {}
                case {"type": "object"} if not {"properties", "additionalProperties"} & result.keys():
                    result["additionalProperties"] = True
            return result
        case _:
            return schema


def _any_of(schemas: list[Any]) -> Any:
    distinct = [schema for place, schema in enumerate(schemas) if schema not in schemas[:place]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _describe(schema: Schema, struct: type[msgspec.Struct]) -> None:
    """Add the descriptions of fields. What is known of a part that may be null is said of the field."""
    tag = struct.__struct_config__.tag_field
    if tag is not None:
        schema["properties"][tag]["description"] = "Which of several shapes it is"
    kinds = {field.name: field.type for field in _info(struct).fields}
    for field in msgspec.structs.fields(struct):
        content = schema["properties"][field.encode_name]
        _mark_times(content, kinds[field.name])
        parts = [part for part in content.get("anyOf", []) if "description" in part]
        of_type = content.get("description") or (parts[0].pop("description") if parts else "")
        words = description_of(struct, field)
        if of_type == INSTANT and words:
            content["description"] = f"{words}. {INSTANT}"
        elif of_type or words:
            content["description"] = of_type or words


def _info(struct: type[msgspec.Struct]) -> inspect.StructType:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info


def _mark_times(schema: Schema, kind: inspect.Type) -> None:
    """Add `format: date-time`, which msgspec adds only where a type requires a zone. All times have one."""
    match kind:
        case inspect.DateTimeType():
            schema["format"] = "date-time"
        case inspect.Metadata(type=inner):
            _mark_times(schema, inner)
        case inspect.UnionType(types=kinds) if not any(isinstance(each, inspect.StrType) for each in kinds):
            times = [each for each in kinds if isinstance(each, inspect.DateTimeType)]
            for part in schema.get("anyOf", []):
                if times and part.get("type") == "string" and "enum" not in part:
                    _mark_times(part, times[0])
        case inspect.VarTupleType() | inspect.ListType() | inspect.CollectionType() if "items" in schema:
            _mark_times(schema["items"], kind.item_type)
        case _:
            pass


def _asked(schema: Schema) -> Schema:
    """Return the schema of a shape in requests: defaults are words, because clients whose generators read `default`
    would have to give every field, or would always send it."""
    if "properties" not in schema:
        return schema
    return {**schema, "properties": {name: _default_in_words(field) for name, field in schema["properties"].items()}}


def _default_in_words(schema: Schema) -> Schema:
    default = schema.get("default")
    field = {name: value for name, value in schema.items() if name != "default"}
    if default not in (None, [], {}, ""):
        words = f"Default: `{json.dumps(default)}`"
        field["description"] = f"{field['description']}. {words}" if "description" in field else words
    return field


def _answered(schema: Schema, struct: type[msgspec.Struct]) -> Schema:
    """Return the schema of a shape in answers, where fields with defaults are present."""
    fields = {
        name: {key: value for key, value in field.items() if key != "default"}
        for name, field in schema.get("properties", {}).items()
    }
    present = [field.encode_name for field in msgspec.structs.fields(struct) if _is_present(field, struct)]
    required = [name for name in fields if name in present or name in schema.get("required", [])]
    return {**schema, "properties": fields, "required": required}


def _is_present(field: msgspec.structs.FieldInfo, struct: type[msgspec.Struct]) -> bool:
    has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
    return not has_default or (field.default is not UNSET and not struct.__struct_config__.omit_defaults)


def _structs(shapes: Iterable[Any]) -> Iterator[type[msgspec.Struct]]:
    """Yield all structs within shapes, each once."""
    seen: set[type[msgspec.Struct]] = set()
    waiting: list[Any] = list(inspect.multi_type_info(shapes))
    while waiting:
        match waiting.pop():
            case inspect.StructType(cls=struct, fields=fields):
                if struct not in seen:
                    seen.add(struct)
                    yield struct
                    waiting += [field.type for field in fields]
            case inspect.Metadata(type=inner):
                waiting.append(inner)
            case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
                waiting += types
            case inspect.DictType(value_type=inner):
                waiting.append(inner)
            case inspect.VarTupleType() | inspect.CollectionType() as collection:
                waiting.append(collection.item_type)
            case _:
                pass
