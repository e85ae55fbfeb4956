"""Payload type and result type of a handler, derived from its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from rota.core.runs.options import RUN_OPTIONS
from rota.errors import BadPayload, Invalid, did_you_mean
from rota.registry.annotations import namespace_of, resolved
from rota.registry.custom_types import ReadByPydantic, hoisted, problem_of, read_custom, readable, schema_of
from rota.registry.hooks.lifespan import injected, injected_class
from rota.values import json
from rota.values.json import UNREADABLE, Json, Limits, step, unreadable

if TYPE_CHECKING:
    import jsonschema_rs

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_HINT = (
    "use plain types, dataclasses, attrs or msgspec structs, pydantic models, enums, datetime, Decimal, UUID or Path; "
    "Any takes every JSON value, and app.payload_type(…) adds a type; "
    "`name: Type = injected` takes the state of a lifespan"
)


_ELSEWHERE = {"countdown": "delay", "eta": "run_at", "job_id": "key", "task_id": "key"}
"""Words of other libraries for options of a run, which people give as arguments."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    annotation: Any
    required: bool
    positional: bool


class PayloadType:
    """Reads, writes and validates payloads.

    An omitted argument stays omitted, so that a later version's default applies to it.
    """

    __slots__ = (
        "_decode",
        "_fields",
        "_names",
        "_pending",
        "_positional",
        "_required",
        "_rest",
        "_shortened",
        "_struct",
        "context_kind",
        "injects",
        "wants_context",
    )

    def __init__(self, fields: Sequence[_Field], *, wants_context: str | None, rest: _Rest | None) -> None:
        self.wants_context = wants_context
        self.context_kind: str | None = None
        """Name of the context's annotation, if it has one."""
        self.injects: dict[str, type] = {}
        """Parameters that the worker fills with the state of this class."""
        self._fields = fields
        self._pending: Collection[str] = ()
        self._shortened: dict[frozenset[str], PayloadType] = {}
        self._names = tuple(field.name for field in fields)
        self._positional = tuple(field.name for field in fields if field.positional)
        self._required = tuple(field.name for field in fields if field.required)
        self._rest = rest
        self._struct = _struct(fields, closed=rest is None)
        self._decode = msgspec.json.Decoder(self._struct, dec_hook=read_custom).decode

    @classmethod
    def of(cls, fn: Callable[..., object], context_type: type) -> PayloadType:
        namespace = namespace_of(fn)
        fields: list[_Field] = []
        contexts: list[inspect.Parameter] = []
        injects: dict[str, type] = {}
        rest: _Rest | None = None
        for parameter in _parameters(fn):
            if _is_context(parameter, context_type, namespace):
                contexts.append(parameter)
                continue
            if parameter.default is injected:
                injects[parameter.name] = injected_class(_resolved(parameter, namespace), parameter.name)
                continue
            annotation = _annotation(parameter, namespace)
            if parameter.kind is parameter.VAR_KEYWORD:
                rest = _Rest(annotation)
            else:
                positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
                required = parameter.default is parameter.empty
                fields.append(_Field(parameter.name, annotation, required, positional))
        if len(contexts) > 1:
            names = ", ".join(parameter.name for parameter in contexts)
            raise Invalid(f"parameters {names} all want the context", hint="keep one")
        payload = cls(fields, wants_context=contexts[0].name if contexts else None, rest=rest)
        payload.context_kind = _name_of(contexts[0]) if contexts else None
        payload.injects = injects
        return payload

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return the payload of a call `fn(*args, **kwargs)` without the context."""
        if len(args) > len(self._positional):
            raise BadPayload("$", f"takes {len(self._positional)} positional arguments, {len(args)} were given")
        payload = dict(zip(self._positional, args, strict=False))
        for name, value in kwargs.items():
            if name in payload:
                raise BadPayload(step("$", name), "is given twice")
            if name not in self._names and (self._rest is None or self._is_passed(name)):
                raise self._unexpected(name)
            payload[name] = value
        for name in self._required:
            if name not in payload:
                raise BadPayload(step("$", name), "is missing")
        return payload

    @property
    def first(self) -> str | None:
        """Return the first argument, if it can be given by its place."""
        return self._positional[0] if self._positional else None

    def without(self, pending: frozenset[str]) -> PayloadType:
        """Return the payload as it is before the results of other runs fill these arguments."""
        if not pending:
            return self
        shortened = self._shortened.get(pending)
        if shortened is None:
            fields = [field for field in self._fields if field.name not in pending]
            shortened = PayloadType(fields, wants_context=self.wants_context, rest=self._rest)
            shortened._pending = pending
            shortened.context_kind, shortened.injects = self.context_kind, self.injects
            self._shortened[pending] = shortened
        return shortened

    def encode(self, arguments: dict[str, object], limits: Limits) -> str:
        """Encode arguments and validate the text, not the objects: the text is what the handler will get."""
        text = json.encode(arguments, limits)
        self.arguments(text)
        return text

    def arguments(self, text: str | bytes) -> dict[str, object]:
        """Decode the payload into typed keyword arguments."""
        if text == "{}" and not self._required:
            return {}
        try:
            values = astuple(self._decode(text))
        except UNREADABLE as failure:
            raise unreadable(failure, self._names) from None
        except Exception as failure:  # of a `__post_init__` or a validator of the application
            raise BadPayload("$", problem_of(failure)) from failure
        if len(self._required) == len(values):
            arguments = dict(zip(self._names, values, strict=True))
        else:
            pairs = zip(self._names, values, strict=True)
            arguments = {name: value for name, value in pairs if value is not UNSET}
        if self._rest is not None:
            arguments |= self._others(text, self._rest)
        return arguments

    def schema(self) -> dict[str, object]:
        """Return the JSON Schema of the payload."""
        annotations = (self._struct, self._rest.annotation if self._rest else Any)
        (reference, others), components = _schemas(annotations)
        own = components.pop(reference["$ref"].rpartition("/")[2])
        schema: dict[str, object] = {"$schema": _DIALECT, **own}
        del schema["title"]
        if self._rest is not None:
            never = dict.fromkeys(sorted(self.passed), False)
            schema |= {"properties": own["properties"] | never, "additionalProperties": others or True}
        if components:
            schema["$defs"] = components
        return hoisted(schema)

    def _others(self, text: str | bytes, rest: _Rest) -> dict[str, object]:
        """Decode the arguments that `**kwargs` takes."""
        others = {name: raw for name, raw in rest.split(text).items() if name not in self._names}
        for name in filter(self._is_passed, others):
            raise self._unexpected(name)
        return {name: rest.read(name, raw) for name, raw in others.items()}

    @property
    def passed(self) -> set[str]:
        """Names of the arguments that the worker passes, which no payload may have."""
        return {*self.injects} if self.wants_context is None else {self.wants_context, *self.injects}

    def _is_passed(self, name: str) -> bool:
        return name == self.wants_context or name in self.injects

    def _unexpected(self, name: str) -> BadPayload:
        if name in self._pending:
            return BadPayload(step("$", name), "is given twice: it is to be the result of another run")
        hint = "the worker passes it" if self._is_passed(name) else did_you_mean(name, self._names, few=0)
        if hint is None and (option := _ELSEWHERE.get(name, name)) in RUN_OPTIONS:
            hint = f"options of a run come before its arguments: job.options({option}=…).enqueue(…)"
        hint = hint or did_you_mean(name, self._names)
        return BadPayload(step("$", name), "is unexpected", hint=hint)


class _Rest:
    """Parameter `**kwargs`: any name, values of one type."""

    __slots__ = ("_decode", "annotation", "split")

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        self._decode = msgspec.json.Decoder(annotation, dec_hook=read_custom).decode

    def read(self, name: str, raw: msgspec.Raw) -> object:
        try:
            return self._decode(raw)
        except UNREADABLE as failure:
            error = unreadable(failure)
            raise BadPayload(step("$", name) + error.path[1:], error.problem) from None


def without(schema: dict[str, Any], pending: frozenset[str]) -> dict[str, Any]:
    """Return the stored schema of a payload before the results of other runs fill these arguments."""
    if not pending:
        return schema
    required = [name for name in schema.get("required", ()) if name not in pending]
    return {**schema, "required": required}


def check_schema(schema: dict[str, object], text: str | bytes, limits: Limits) -> None:
    """Validate a payload against a stored schema, in a process that does not have the job's function."""
    from jsonschema_rs import ValidationError

    value: Any = json.decode(text, limits)
    try:
        _validator(msgspec.json.encode(schema)).validate(value)
    except ValidationError as failure:
        raise _refusal(failure, schema) from None


def _refusal(failure: jsonschema_rs.ValidationError, schema: dict[str, object]) -> BadPayload:
    path = "$"
    for key in failure.instance_path:
        path = step(path, key)
    if failure.kind.name == "additionalProperties":
        name, known = failure.kind.value[0], schema.get("properties")
        hint = did_you_mean(name, known) if path == "$" and isinstance(known, dict) else None
        return BadPayload(step(path, name), "is unexpected", hint=hint)
    if failure.kind.name == "required":
        return BadPayload(step(path, failure.kind.value), "is missing")
    return BadPayload(path, failure.message)


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    from jsonschema_rs import Draft202012Validator  # imported late: 5 MB that a worker never needs

    try:
        return Draft202012Validator(
            schema.decode(),
            validate_formats=True,
            # Fractions of a second, which the format forbids, are how msgspec writes a timedelta.
            formats={"duration": lambda _: True},
            retriever=_no_retrieval,
            mask="the value",
        )
    except ValueError as failure:
        problem = getattr(failure, "message", failure)
        raise Invalid(f"the payload schema is not a JSON Schema: {problem}") from None


def _no_retrieval(uri: str) -> Any:
    """Refuse external references: a schema comes from outside, and could fetch any file or address."""
    raise ValueError(f"{uri} is not part of the schema")


def _parameters(fn: Callable[..., object]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError) as failure:
        raise Invalid(f"{fn!r} has no signature to read", hint="wrap it in a function") from failure
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise Invalid(f"parameter *{parameter.name} has no names to store", hint="name each parameter")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise Invalid(f"parameter {parameter.name!r} is positional-only", hint="remove the / from the signature")
    return parameters


def _is_context(parameter: inspect.Parameter, context_type: type, namespace: dict[str, Any]) -> bool:
    if parameter.annotation is parameter.empty:
        return parameter.name == "ctx"
    try:
        annotation = resolved(parameter.annotation, namespace)
        return isinstance(annotation, type) and issubclass(annotation, context_type)
    except Exception:  # resolving evaluates any text; a Context imported under TYPE_CHECKING is matched by name
        return str(parameter.annotation).rpartition(".")[2] in {
            kind.__name__ for kind in (context_type, *context_type.__subclasses__())
        }


def _name_of(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).rpartition(".")[2]


def _resolved(parameter: inspect.Parameter, namespace: dict[str, Any]) -> Any:
    try:
        return resolved(parameter.annotation, namespace)
    except Exception as failure:
        problem = f"the annotation {parameter.annotation!r} of parameter {parameter.name!r} cannot be resolved"
        raise Invalid(f"{problem}: {failure}", hint="import it outside `if TYPE_CHECKING`") from failure


def _annotation(parameter: inspect.Parameter, namespace: dict[str, Any]) -> Any:
    """Return the parameter's type, after checking that JSON can be decoded into it."""
    if parameter.annotation is parameter.empty:
        return Any
    annotation = _resolved(parameter, namespace)
    try:
        annotation = readable(annotation)
        _schemas((annotation,))
    except Invalid as failure:
        raise failure.within(f"parameter {parameter.name!r}") from None
    except Exception as failure:
        shown = inspect.formatannotation(annotation)
        raise Invalid(f"parameter {parameter.name!r}: {shown} cannot be read from JSON", hint=_HINT) from failure
    return annotation


def _struct(fields: Sequence[_Field], *, closed: bool) -> type[msgspec.Struct]:
    """Build the struct of the payload. Fields are numbered and renamed: not every parameter name can be a field's."""
    members = [
        (f"p{index}", field.annotation) if field.required else (f"p{index}", field.annotation, UNSET)
        for index, field in enumerate(fields)
    ]
    names = {f"p{index}": field.name for index, field in enumerate(fields)}
    return msgspec.defstruct("Payload", members, rename=names, kw_only=True, forbid_unknown_fields=closed, gc=False)


def _schemas(annotations: tuple[Any, ...]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    return msgspec.json.schema_components(annotations, schema_hook=schema_of, ref_template="#/$defs/{name}")


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
            return msgspec.convert(result, self._annotation, str_keys=True, dec_hook=read_custom)
        except msgspec.ValidationError as failure:
            shown, error = _shown(self._annotation), unreadable(failure)
            place = "" if error.path == "$" else f" at {error.path}"
            raise Invalid(
                f"the result does not fit {shown}{place}: {error.problem}",
                hint="`handle.wait().result` is the JSON as it is stored",
            ) from None


def _returned(fn: Callable[..., Any]) -> Any:
    try:
        annotation = inspect.signature(fn).return_annotation
        if annotation is inspect.Signature.empty:
            return Any
        annotation = readable(resolved(annotation, namespace_of(fn)))
        _schemas((annotation,))
    except Exception:  # resolving evaluates any text, and a type may be one that msgspec does not know
        return Any
    return annotation


def _shown(annotation: Any) -> str:
    is_stand_in = isinstance(annotation, type) and issubclass(annotation, ReadByPydantic)
    return "what the function is annotated to return" if is_stand_in else inspect.formatannotation(annotation)
