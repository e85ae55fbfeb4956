"""Arguments and options of a verb's command, from the parameters that the verb declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin

import click
import msgspec
from msgspec import UNSET, Meta

from rota.cli.options import instant_of
from rota.errors import BadPayload, Invalid, did_you_mean
from rota.values import json
from rota.values.durations import format_duration
from rota.values.scope import Scope, kind_text, scope_parts, scope_text
from rota.verbs.parameters import Parameter, Place, request_of
from rota.verbs.verb import Declared
from rota.verbs.wire import decode, members_of, wired_in

Settings = Mapping[str, Mapping[str, Any]]
"""What differs from the declaration, by parameter: attributes of `click.Option`, and `names` of the option."""

_NONE = "none"
_QUOTED = re.compile(r'`("[^`]*")`')
_TYPED = (Place.PATH, Place.QUERY, Place.BODY, Place.KEY)
_METAVARS = {
    "id_or_name": "NAME|ID", "job": "NAME", "schedule": "NAME", "queue": "NAME", "worker": "NAME", "owner": "NAME",
    "idempotency_key": "KEY", "key": "KEY", "cursor": "CURSOR",
}  # fmt: skip
_HELP = {
    "idempotency_key": "A repeated command with this key changes nothing more.",
    "cursor": "Continue after the page that ended with this cursor.",
}
"""Words for options that mean the same in every command."""


class Form(msgspec.Struct, frozen=True):
    """Form in which parameters of a verb are typed.

    `read` turns the values of click's parameters into arguments of the verb; `write`, if a parameter is not typed as it
    is declared, turns arguments into the value of each of click's parameters.
    """

    names: tuple[str, ...]
    params: Sequence[click.Parameter]
    read: Callable[[Mapping[str, Any]], dict[str, Any]]
    write: Callable[[Sequence[Any]], Sequence[Any]] | None = None


def forms_of(declared: Declared, by_hand: Sequence[Form], settings: Settings) -> list[Form]:
    """Return a form for each parameter that a person types: those by hand first, then arguments, then options. Last
    come forms of no parameter: options of the command alone."""
    taken = {name for form in by_hand for name in form.names}
    pages = _page_form(declared, settings)
    rest = [
        parameter
        for parameter in request_of(declared).parameters.values()
        if parameter.place in _TYPED and parameter.name not in (taken if pages is None else {*taken, *pages.names})
    ]
    rest.sort(key=lambda parameter: not _is_argument(parameter))
    declared_forms = [_form(parameter, settings.get(parameter.name, {})) for parameter in rest]
    forms = [form for form in by_hand if form.names] + declared_forms + [form for form in by_hand if not form.names]
    return forms if pages is None else [*forms, pages]


def _page_form(declared: Declared, settings: Settings) -> Form | None:
    """Return the options of a list with pages, as REST has them."""
    query = request_of(declared).query
    if declared.verb.page is None or query is None:
        return None
    default = {field.name: field.default for field in msgspec.structs.fields(query)}["limit"]
    size = {"type": Number(), "default": default, "show_default": True, "metavar": "N"}
    limit = click.Option(["--limit"], **{**size, "help": "Most items to list.", **settings.get("limit", {})})
    cursor = click.Option(["--cursor"], metavar="CURSOR", help=_HELP["cursor"])
    return Form(("limit", "cursor"), [limit, cursor], lambda _: {})


def scope_form(metavar: str = "KIND[/ID]") -> Form:
    """Return the form of `kind` and `id`: one argument, `KIND/ID`, or `KIND` alone. The verb refuses what it must."""

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        return dict(zip(("kind", "id"), scope_parts(values["scope"]), strict=True))

    def write(values: Sequence[Any]) -> Sequence[Any]:
        kind, id = values
        return [kind_text(kind) if id is None else scope_text(Scope(kind, id))]

    return Form(("kind", "id"), [click.Argument(["scope"], metavar=metavar)], read, write)


def _form(parameter: Parameter, settings: Mapping[str, Any]) -> Form:
    param = _argument(parameter, settings) if _is_argument(parameter) else _option(parameter, settings)
    given = param.name or ""

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        value = values[given]
        if value is None or value == ():  # the verb's own default applies
            return {}
        if parameter.option and value in (_NONE, (_NONE,)):
            return {parameter.name: None}
        return {parameter.name: decode(value, parameter.annotation, parameter.wire_name)}

    return Form((parameter.name,), [param], read)


def _is_argument(parameter: Parameter) -> bool:
    """Return whether a parameter is typed without its name: what the path names, and the name of something new."""
    return parameter.place is Place.PATH or (parameter.name == "name" and parameter.default is UNSET)


def _argument(parameter: Parameter, settings: Mapping[str, Any]) -> click.Argument:
    metavar = _METAVARS.get(parameter.name, parameter.wire_name.upper())
    return click.Argument([parameter.wire_name], **{"metavar": metavar, **settings})


def _option(parameter: Parameter, settings: Mapping[str, Any]) -> click.Option:
    facts = {} if "type" in settings else _facts(parameter)
    attributes = {"required": parameter.default is UNSET, **facts, **settings}
    attributes.setdefault("help", _help(parameter, with_default="default" not in settings))
    names = attributes.pop("names", (_flags(parameter) if attributes.get("is_flag") else f"--{_dashed(parameter)}",))
    if parameter.option and isinstance(attributes.get("type"), click.ParamType):
        attributes["type"] = OrNone(attributes["type"])
    return click.Option([*names, parameter.name], **attributes)


def _dashed(parameter: Parameter) -> str:
    return parameter.wire_name.replace("_", "-")


def _flags(parameter: Parameter) -> str:
    name = _dashed(parameter)
    return f"--{name}" if parameter.default is False else f"--{name}/--no-{name}"


class OrNone(click.ParamType):  # type: ignore[type-arg]
    """Another type, or the word `none`, which removes a setting."""

    def __init__(self, kind: click.types.ParamType) -> None:  # type: ignore[type-arg]
        self._kind = kind
        self.name = kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == _NONE else self._kind.convert(value, param, ctx)


class Word(click.Choice):  # type: ignore[type-arg]
    """One of several words. Another is refused as over REST, by the verb itself if it takes texts (`open_ended`)."""

    def __init__(self, choices: Sequence[str], *, open_ended: bool) -> None:
        super().__init__(choices)
        self._open_ended = open_ended

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self.choices or self._open_ended:
            return value
        name = (param.name if param is not None else None) or "value"
        raise Invalid(f"{name} cannot be {value!r:.80}", hint=did_you_mean(value, self.choices))


class Number(click.types.IntParamType):
    """A whole number. The verb itself checks its bounds, and click's own type says less."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r:.80} is not a whole number", param, ctx)


def _facts(parameter: Parameter) -> dict[str, Any]:
    """Return type and metavar of the option that the parameter's type asks for."""
    kinds = [kind for kind in members_of(parameter.annotation) if kind is not type(None)]
    plain = [_bare(kind) for kind in kinds]
    lists = next((kind for kind in plain if get_origin(kind) is not None and not _is_pair(kind)), None)
    if choices := _choices(plain):
        return {"type": Word(choices, open_ended=str in plain)}
    if Scope in plain:
        return {"metavar": "KIND/ID"}
    if timedelta in plain:
        text = "TIME|DURATION" if datetime in plain else "DURATION"
        wired = wired_in(parameter.annotation)
        return {"metavar": text if wired is None or wired.absent is None else f"{text}|{wired.absent}"}
    if datetime in plain:
        return {"type": instant_of, "metavar": "TIME"}
    if bool in plain:
        return {"is_flag": True, "default": None}
    if int in plain:
        return {"type": Number(), "metavar": "N"}
    if float in plain:
        return {"type": click.FLOAT, "metavar": "N"}
    if lists is not None and get_origin(lists) is not Mapping and get_origin(lists) is not dict:
        item = _facts(msgspec.structs.replace(parameter, annotation=get_args(lists)[0]))
        return {**item, "multiple": True}
    if str not in plain:
        return {"type": json_in, "metavar": "JSON"}
    return {"metavar": _METAVARS.get(parameter.wire_name, "TEXT")}


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _is_pair(kind: Any) -> bool:
    return get_origin(kind) is tuple and Ellipsis not in get_args(kind)


def _choices(kinds: Sequence[Any]) -> list[str]:
    words: list[str] = []
    for kind in kinds:
        if get_origin(kind) is Literal:
            words += map(str, get_args(kind))
        elif isinstance(kind, type) and issubclass(kind, Enum):
            words += [member.value for member in kind]
    return words


def _metas(annotation: Any) -> list[Meta]:
    """Return the descriptions and bounds of a type, the outermost first."""
    metas = [part for part in getattr(annotation, "__metadata__", ()) if isinstance(part, Meta)]
    return [*metas, *(meta for part in get_args(annotation) if part is not annotation for meta in _metas(part))]


def _help(parameter: Parameter, *, with_default: bool) -> str:
    description = next((meta.description for meta in _metas(parameter.annotation) if meta.description), None)
    words = _HELP.get(parameter.wire_name) or description or ""
    sentence = _QUOTED.sub(r"\1", f"{words.rstrip('.')}.") if words else ""
    default = _default(parameter.default) if with_default else ""
    return f"{sentence}  [default: {default}]" if default else sentence


def _default(value: Any) -> str:
    match value:
        case timedelta():
            return format_duration(value)
        case Enum():
            return str(value.value)
        case None | bool() | msgspec.UnsetType() | "" | () | []:
            return ""
        case _:
            return str(value)


def json_in(text: str) -> Any:
    """Parse JSON that is given as an option."""
    try:
        return json.decode(text, json.Limits())
    except BadPayload as error:
        raise Invalid(f"{text!r:.80} is not JSON: {error.problem}", hint="use single quotes") from None
