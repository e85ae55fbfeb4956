"""Commands of declared verbs, as tests type them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import click

from rota.cli import root
from rota.cli.verbs.verb_command import VerbCommand, methods_of
from rota.cli.verbs.verb_options import json_in
from rota.errors import RotaError
from rota.verbs.pages import cursor_at
from rota.verbs.parameters import Parameter, Place, request_of
from rota.verbs.verb import Declared
from rota.verbs.wire import encode


def command_of(declared: Declared) -> tuple[tuple[str, ...], click.Command] | None:
    """Return the words and the command of a verb, or None if no command carries it out."""
    commands = [pair for pair in _below(root) if declared.function in methods_of(pair[1])]
    return commands[0] if commands else None


def argv_of(declared: Declared, arguments: Mapping[str, Any]) -> list[str] | None:
    """Return the words after `rota` that call a verb with these arguments and `--json`; None if no command does.

    `arguments` are those of the client's method, as Python takes them. Questions are answered with `--yes`.
    """
    place = command_of(declared)
    if place is None:
        return None
    path, command = place
    parameters = request_of(declared).parameters
    rest = {name: value for name, value in arguments.items() if parameters[name].place is not Place.ACTOR}
    positional: dict[str, str] = {}
    options: list[str] = []
    for form in command.forms if isinstance(command, VerbCommand) else ():
        if form.write is not None and form.names[0] in rest:
            values = [rest.pop(name, None) for name in form.names]
            for param, value in zip(form.params, form.write(values), strict=True):
                if value is not None:
                    _add(param, value, positional, options)
    for name, value in rest.items():
        parameter = parameters[name]
        param = _param(command, declared, parameter)
        _add(param, value if _is_json(param) else _written(parameter, value), positional, options)
    options += ["--yes"] if any(param.name == "yes" for param in command.params) else []
    words = [positional[param.name or ""] for param in command.params if param.name in positional]
    return [*path, *options, "--json", *(["--", *words] if words else [])]


def _add(param: click.Parameter, value: Any, positional: dict[str, str], options: list[str]) -> None:
    if isinstance(param, click.Argument):
        positional[param.name or ""] = _text(value)
    elif isinstance(param, click.Option) and param.is_flag:
        options += [param.opts[0]] if value else param.secondary_opts[:1]
    elif param.multiple and value is not None:
        options += [word for item in value for word in (param.opts[0], _text(item, param))]
    else:
        options += [param.opts[0], _text(value, param)]


def _param(command: click.Command, declared: Declared, parameter: Parameter) -> click.Parameter:
    differing = methods_of(command)[declared.function].get(parameter.name)
    names = (parameter.name, parameter.wire_name) if differing is None else (differing,)
    names = ("cursor",) if parameter.place is Place.CURSOR else names
    return next(param for param in command.params if param.name in names)


def _written(parameter: Parameter, value: Any) -> Any:
    if parameter.place is Place.CURSOR:
        return cursor_at(value)
    if isinstance(value, str) and parameter.wire_name != "cursor":
        return value
    try:
        return encode(value, parameter.annotation, parameter.name)
    except RotaError:  # a bad value is typed as it is: the command must refuse it
        return value


def _text(value: Any, param: click.Parameter | None = None) -> str:
    if _is_json(param):
        return json.dumps(value)
    match value:
        case None:
            return "none"
        case Enum():
            return str(value.value)
        case dict():
            return ",".join(f"{name}:{item}" for name, item in value.items())
        case (str() as kind, str() as id) if isinstance(value, tuple):
            return f"{kind}/{id}"
        case list():
            return ",".join(map(str, value))
        case _:
            return str(value)


def _is_json(param: click.Parameter | None) -> bool:
    return getattr(getattr(param, "type", None), "func", None) is json_in


def _below(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _below(inner, (*path, name))
    else:
        yield path, command
