"""Codes of the problems that each operation of the REST API may answer, read from what the code raises.

From the functions of an operation, every function of rota that they mention is followed; an error counts where it is
made (`raise UnknownRun(…)`), not where it is caught. What stands in a variable is known by its annotation, by what was
assigned in `__init__`, and by what a function says that it returns. Errors of the databases themselves are left out.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Unpack, get_args, get_origin, get_type_hints

import rota
from rota.api.http import guard
from rota.api.operations import query, request, routing, verb_operation
from rota.api.operations.operation import Operation
from rota.app import Rota
from rota.client.client import Client
from rota.errors import BadConfig, OutOfRange, RotaError, Unavailable
from rota.server import asgi
from rota.verbs import bounds, pages, revisions, wire
from rota.verbs.parameters import request_of
from rota.verbs.verb import Declared, verbs_of

Function = Callable[..., Any]

TARGET = Path(rota.__file__).parent / "api" / "docs" / "raised.json"
_APART = ("rota.app", "rota.store.databases.", "rota.engine.", "rota.observability.")
_MAKERS = ("__init__", "__post_init__")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def written() -> str:
    """Return the whole file: the codes of each operation by status, a line for each operation."""
    raised = {
        operation.name: _by_status(operation)
        for _, route in routing.walk(asgi(Rota("sqlite:///unused.db")).routes)
        if not route.page
        for operation in route.operations.values()
    }
    lines = [f"{json.dumps(name)}: {json.dumps(codes)}" for name, codes in sorted(raised.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _by_status(operation: Operation) -> dict[str, list[str]]:
    errors = {error for root in _roots(operation) for error in _reached(root)}
    errors |= {Unavailable} if operation.role else set()
    codes: dict[str, set[str]] = {}
    for error in errors:
        status = Unavailable.status if issubclass(error, BadConfig) else error.status
        codes.setdefault(str(status), set()).add(error.code)
    return {status: sorted(codes[status]) for status in sorted(codes)}


def _roots(operation: Operation) -> Iterator[Function]:
    """Yield the functions that take part in a request."""
    yield guard.check_local
    if operation.role is not None:
        yield routing.Declared._require
    if operation.query is not None:
        yield query.query_of
    verb = _verbs().get(operation.name)
    if verb is None or not operation.endpoint.__qualname__.startswith(verb_operation.operation_of.__name__):
        yield operation.endpoint
        return
    yield verb.function
    if operation.body is not None:
        yield from (guard.check_origin, request.json_body, request.shaped, verb_operation._of_whole)
    if verb.verb.page is not None:
        yield from (pages.place_of, bounds.check)
    if operation.conditional:
        yield revisions.condition_in
    for part in request_of(verb).parameters.values():
        wired = wire.wired_in(part.annotation)
        yield wire.decode
        if wired is not None and wired.decode is not None:
            yield wired.decode
    if verb.verb.body is not None:
        yield verb.verb.body.decode


@cache
def _verbs() -> Mapping[str, Declared]:
    parts = {name: value[0] for name, value in _attributes(Client).items() if isinstance(value, tuple) and value}
    classes = {"": Client, **{name: kind for name, kind in parts.items() if isinstance(kind, type)}}
    return {verb.operation: verb for part, kind in classes.items() for verb in verbs_of(kind, part)}


@cache
def _reached(root: Function) -> frozenset[type[RotaError]]:
    errors: set[type[RotaError]] = set()
    seen: set[object] = set()
    waiting: list[tuple[Function, type | None]] = [(root, _owner(root))]
    while waiting:
        function, owner = waiting.pop()
        if (function, owner) in seen:
            continue
        seen.add((function, owner))
        errors |= {OutOfRange} if _checks_bounds(function) else set()
        for value, of in _Body(inspect.unwrap(function), owner).mentioned():
            if isinstance(value, type):
                errors |= {value} - {RotaError}
            elif _is_followed(value):
                waiting.append((value, of))
    return frozenset(errors)


def _is_bounded(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__code__.co_filename == bounds.__file__


def _checks_bounds(function: Function) -> bool:
    """Return whether a method refuses arguments outside their bounds before it begins."""
    if not _is_bounded(function):
        return False
    hints = get_type_hints(function, include_extras=True)
    options = [hint for hint in hints.values() if get_origin(hint) is Unpack]
    for hint in options:
        hints |= get_type_hints(get_args(hint)[0], include_extras=True)
    return any(map(bounds.has_bounds, hints.values()))


def _is_followed(function: Function) -> bool:
    return function.__module__.startswith("rota.") and not function.__module__.startswith(_APART)


def _owner(function: Function) -> type | None:
    """Return the class of a method."""
    name, _, rest = function.__qualname__.partition(".")
    kind = inspect.unwrap(function).__globals__.get(name)
    return kind if rest and isinstance(kind, type) else None


class _Body:
    """Body of a function: what its names stand for. A value is an object, or an instance of a class: `(class,)`."""

    def __init__(self, function: Function, owner: type | None, *, is_init: bool = False) -> None:
        self._globals = function.__globals__
        self._owner = owner
        self._node = _node(function)
        self._locals: dict[str, Any] = {}
        if self._node is not None:
            self._locals = dict(self._of_parameters(self._node.args, is_init=is_init))
            self._locals |= {} if is_init else dict(self._of_assignments(self._node))

    def _of_parameters(self, arguments: ast.arguments, *, is_init: bool) -> Iterator[tuple[str, Any]]:
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.arg == "self" and self._owner is not None:
                if not is_init:  # its attributes are what is asked for
                    yield argument.arg, (self._owner,)
            elif is_init and self._owner not in (None, Client) and (self._owner, argument.arg) in _callbacks():
                yield argument.arg, _callbacks()[self._owner, argument.arg]
            elif argument.annotation is not None:
                yield argument.arg, self._annotated(argument.annotation)

    def _of_assignments(self, function: ast.AST) -> Iterator[tuple[str, Any]]:
        for node in ast.walk(function):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    yield name, self._annotated(annotation)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(ast.Name(id=name), value):
                    if (known := self._value(value)) is not None:
                        yield name, known
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                    kinds = self._value(value)
                    if isinstance(kinds, _Several):
                        pairs = zip(names, kinds.values, strict=False)
                        yield from ((name.id, kind) for name, kind in pairs if isinstance(name, ast.Name))

    def _annotated(self, annotation: ast.expr) -> Any:
        return _of_annotation(ast.unparse(annotation), self._globals)

    def assigned(self) -> Iterator[tuple[str, Any]]:
        """Yield the attributes of `self` that are assigned, and their values."""
        for node in self._nodes():
            if isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                match target, self._value(node.value):
                    case ast.Attribute(value=ast.Name(id="self"), attr=name), (_Bound() | (type(),)) as value:
                        yield name, value

    def arguments(self) -> Iterator[tuple[type, str, Any]]:
        """Yield what is given to the parameters of classes of which it makes instances."""
        for node in self._nodes():
            kind = self._value(node.func) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and isinstance(kind, type) and "__init__" in vars(kind):
                names = list(inspect.signature(kind).parameters)
                values = map(self._value, node.args)
                yield from ((kind, name, value) for name, value in zip(names, values, strict=False))

    def _nodes(self) -> Iterator[ast.AST]:
        for statement in self._node.body if self._node else ():
            yield from ast.walk(statement)

    def mentioned(self) -> Iterator[tuple[Any, type | None]]:
        """Yield the functions and the errors that are mentioned; methods with their class."""
        nodes = list(self._nodes())
        looked_at = {id(inner) for node in nodes for outer in _comparisons(node) for inner in ast.walk(outer)}
        made = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if not isinstance(node, ast.Name | ast.Attribute) or id(node) in looked_at:
                continue
            match self._value(node):
                case _Bound(function, owner):
                    yield function, owner
                case type() as kind if issubclass(kind, RotaError):
                    yield kind, None
                case type() as kind if id(node) in made and kind.__module__.startswith("rota."):
                    yield from ((vars(kind)[name], kind) for name in _MAKERS if name in vars(kind))
                case types.FunctionType() as function:
                    yield function, None

    def _value(self, node: ast.expr | None) -> Any:
        match node:
            case ast.Name(id=name):
                return _unwrapped(self._locals.get(name, self._globals.get(name)))
            case ast.Await(value=inner):
                return self._value(inner)
            case ast.Attribute(value=inner, attr=name):
                return _attribute(self._value(inner), name)
            case ast.Call(func=function):
                return _result(self._value(function))
            case ast.Tuple(elts=parts):
                return _Several([self._value(part) for part in parts])
            case _:
                return None


def _comparisons(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that only compare classes."""
    match node:
        case ast.ExceptHandler(type=ast.expr() as kind) | ast.MatchClass(cls=kind):
            yield kind
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=arguments):
            yield from arguments


class _Several(NamedTuple):
    """Values of a tuple."""

    values: list[Any]


class _Bound(NamedTuple):
    """A method of a class."""

    function: Function
    owner: type


def _unwrapped(value: Any) -> Any:
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    is_wrapper = callable(value) and hasattr(value, "__wrapped__") and not _is_bounded(value)
    return inspect.unwrap(value) if is_wrapper else value


def _attribute(value: Any, name: str) -> Any:
    match value:
        case (type() as kind,):
            member = _unwrapped(inspect.getattr_static(kind, name, None))
            if isinstance(member, types.FunctionType):
                return _Bound(member, kind)
            if isinstance(member, property) and isinstance(member.fget, types.FunctionType):
                return _result(_Bound(member.fget, kind))
            return _attributes(kind).get(name)
        case types.ModuleType():
            return _unwrapped(getattr(value, name, None))
        case type():
            return _unwrapped(inspect.getattr_static(value, name, None))
        case _:
            return None


def _result(function: Any) -> Any:
    """Return what calling a function gives."""
    match function:
        case _Bound(plain, _) | (types.FunctionType() as plain):
            return _of_annotation(str(plain.__annotations__.get("return", "")), inspect.unwrap(plain).__globals__)
        case type():
            return (function,)
        case _:
            return None


@cache
def _attributes(kind: type) -> dict[str, Any]:
    """Return the values of a class's attributes: annotated, or assigned in `__init__`."""
    attributes: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("rota"):
            names = vars(sys.modules[base.__module__])
            annotations = vars(base).get("__annotations__", {})
            attributes |= {name: _of_annotation(str(annotation), names) for name, annotation in annotations.items()}
        if isinstance(vars(base).get("__init__"), types.FunctionType) and base.__module__.startswith("rota"):
            attributes |= dict(_Body(vars(base)["__init__"], kind, is_init=True).assigned())
    return attributes


@cache
def _callbacks() -> dict[tuple[type | None, str], Any]:
    """Return the methods that the client gives to the parts that it makes."""
    given = _Body(Client.__init__, Client).arguments()
    return {(kind, name): value for kind, name, value in given if isinstance(value, _Bound)}


def _of_annotation(annotation: str, names: Mapping[str, Any]) -> Any:
    """Return an instance of the only class that an annotation names (`Store`, `Client | None`), or several of them
    (`tuple[Client, str]`)."""
    if annotation.startswith("tuple["):
        parts = annotation.removeprefix("tuple[").removesuffix("]").split(",")
        return _Several([_of_annotation(part.strip(), names) for part in parts])
    words = {part.strip() for part in annotation.split("|")} - {"None"}
    word = words.pop() if len(words) == 1 else ""
    kind = names.get(word) or _classes().get(word)
    return (kind,) if isinstance(kind, type) else None


@cache
def _classes() -> dict[str, type]:
    """Return all classes by name, for annotations whose modules import them for type checkers only."""
    folders = [f"{rota.__name__}.{layer}" for layer in ("core", "store", "client", "registry", "values", "api")]
    places = [(importlib.import_module(folder).__path__, folder + ".") for folder in folders]
    modules = [importlib.import_module(one.name) for place in places for one in pkgutil.walk_packages(*place)]
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and kind.__module__ == module.__name__
    }


@cache
def _nodes(path: str) -> dict[int, ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, _FUNCTIONS)]
    return {min([node.lineno, *(one.lineno for one in node.decorator_list)]): node for node in functions}


def _node(function: Function) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    code = inspect.unwrap(function).__code__
    return _nodes(code.co_filename).get(code.co_firstlineno) if code.co_filename.endswith(".py") else None
