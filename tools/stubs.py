"""Write the stubs of synchronous clients: `python -m tools.stubs`. Their signatures are those of the client's verbs."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rota.client.blocking_parts import class_name, verbs_in
from rota.client.parts import PARTS

STUB = Path(__file__).resolve().parent.parent / "src" / "rota" / "client" / "blocking_parts.pyi"
_HEAD = '"""Signatures of the synchronous client\'s parts. Written by `python -m tools.stubs`; do not edit."""\n'


def stub() -> str:
    """Return the text of the stub."""
    names: set[tuple[str, str]] = set()
    classes: list[str] = []
    for part, kind in PARTS.items():
        methods = [_method(name, method, names) for name, method in verbs_in(kind).items()]
        start = ["    def __init__(self, call: Callable[..., Any]) -> None: ..."] if part else []
        classes.append("\n".join([f"class {class_name(part)}:", *start, *methods]))
    imports = _imports(names | {("collections.abc", "Callable"), ("typing", "Any")})
    functions = "def class_name(part: str) -> str: ...\ndef verbs_in(kind: type) -> dict[str, Callable[..., Any]]: ..."
    return _formatted("\n\n".join([_HEAD + "\n" + imports, functions, *classes]) + "\n")


def _formatted(text: str) -> str:
    for step in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [str(Path(sys.executable).with_name("ruff")), *step, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=STUB.parent).stdout
    return text


def _method(name: str, method: Any, names: set[tuple[str, str]]) -> str:
    """Return a method's line, and add what its annotations mention to `names`."""
    node = _source_of(method)
    known = _known(sys.modules[method.__module__])
    for annotation in _annotations(node):
        for part in ast.walk(annotation):
            if isinstance(part, ast.Name) and part.id in known:
                names.add((known[part.id], part.id))
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"    def {name}({ast.unparse(node.args)}){returns}: ..."


def _source_of(method: Any) -> ast.AsyncFunctionDef:
    source = inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(method)))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.AsyncFunctionDef)
    for argument in _arguments(node):
        argument.annotation = _plain(argument.annotation)
    return node


def _arguments(node: ast.AsyncFunctionDef) -> list[ast.arg]:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [*arguments, *([node.args.kwarg] if node.args.kwarg else [])]


def _plain(annotation: ast.expr | None) -> ast.expr | None:
    """Return an annotation without `Annotated`: descriptions and limits are for requests."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        assert isinstance(annotation.slice, ast.Tuple)
        return annotation.slice.elts[0]
    return annotation


def _annotations(node: ast.AsyncFunctionDef) -> Iterable[ast.expr]:
    annotations = [argument.annotation for argument in _arguments(node)]
    defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
    return [part for part in (*annotations, node.returns, *defaults) if part is not None]


def _known(module: Any) -> dict[str, str]:
    """Return where the names of a module come from: what it imports, and what it defines itself."""
    known: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            known |= {alias.asname or alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            known[node.name] = module.__name__
        elif isinstance(node, ast.Assign):
            known |= {target.id: module.__name__ for target in node.targets if isinstance(target, ast.Name)}
    return known


def _imports(names: set[tuple[str, str]]) -> str:
    modules: dict[str, list[str]] = {}
    for module, name in sorted(names):
        modules.setdefault(module, []).append(name)
    return "\n".join(f"from {module} import {', '.join(wanted)}" for module, wanted in modules.items())


if __name__ == "__main__":
    STUB.write_text(stub())
