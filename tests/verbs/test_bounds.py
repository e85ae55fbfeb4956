"""Bounds of arguments: every one that a verb declares, checked by the verb itself and through its route."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import httpx2
import pytest
from msgspec import Meta

from rota.app import Rota
from rota.client.parts import all_verbs
from rota.errors import OutOfRange
from rota.server import asgi
from rota.verbs.bounds import Bound, within_bounds
from rota.verbs.parameters import Place, bounds_of, request_of
from rota.verbs.verb import Declared
from rota.verbs.wire import wired_in

BOUNDS = [(declared, bound) for declared in all_verbs() for bound in bounds_of(declared)]
NAMED = [pytest.param(*pair, id=f"{pair[0].operation}-{pair[1].wire_name}") for pair in BOUNDS]


def outside(annotation: Any) -> Any:
    """Return a value outside the bounds of a type."""
    wired = wired_in(annotation)
    kind = annotation if wired is None else wired.type
    if get_origin(kind) is list:
        return [outside(get_args(kind)[0])]
    if get_origin(kind) is not Annotated:
        return (
            next(value for part in get_args(kind) if (value := outside(part)) is not None) if get_args(kind) else None
        )
    base = get_args(kind)[0]
    for meta in kind.__metadata__:
        if isinstance(meta, Meta) and meta.le is not None:
            return meta.le + 1
        if isinstance(meta, Meta) and meta.ge is not None:
            return meta.ge - 1
        if isinstance(meta, Meta) and meta.max_length is not None:
            return "x" * (meta.max_length + 1) if base is str else ["x"] * (meta.max_length + 1)
    return outside(base)


def test_there_are_bounds_of_each_kind() -> None:
    names = {bound.wire_name for _, bound in BOUNDS}
    assert {"limit", "reason", "max", "jobs", "percentage", "max_queued", "name"} <= names


@pytest.mark.parametrize(("declared", "bound"), NAMED)
async def test_the_verb_itself_refuses(declared: Declared, bound: Bound) -> None:
    with pytest.raises(OutOfRange, match=f"^{bound.wire_name} cannot ") as refused:
        await declared.function(None, **{bound.name: outside(bound.annotation)})
    assert refused.value.path == bound.path
    assert refused.value.hint is not None


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682/api/v1") as client:
        yield client
    await app.aclose()


WRITTEN = [
    param
    for param, (declared, bound) in zip(NAMED, BOUNDS, strict=True)
    if request_of(declared).parameters[bound.name].place in (Place.BODY, Place.QUERY) and bound.wire_name != "cursor"
]


@pytest.mark.parametrize(("declared", "bound"), WRITTEN)
async def test_its_route_refuses_with_the_same_words(
    http: httpx2.AsyncClient, declared: Declared, bound: Bound
) -> None:
    value = outside(bound.annotation)
    with pytest.raises(OutOfRange) as refused:
        await declared.function(None, **{bound.name: value})
    path = declared.verb.path
    for name in declared.verb.placeholders():
        path = path.replace(f"{{{name}}}", "x")
    body = {**(declared.verb.takes or {})}
    query = {}
    if bound.path is None:
        query[bound.wire_name] = value
    else:
        body[bound.wire_name] = _in_json(bound.wire_name, value)
    has_body = request_of(declared).body is not None
    answer = await http.request(declared.verb.method, path, params=query, json=body if has_body else None)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "out-of-range"), problem
    assert (problem["detail"], problem["hint"]) == (refused.value.message, refused.value.hint)
    assert problem.get("pointer") == (None if bound.path is None else f"#/{bound.wire_name}")


def _in_json(name: str, value: Any) -> Any:
    """Return the value as items of this list are written."""
    match name:
        case "held":
            return [{"id": f"{number}", "fence": 1} for number in range(len(value))]
        case "documents":
            return [{"name": f"{number}"} for number in range(len(value))]
        case _:
            return value


async def test_a_positional_argument_is_checked_too() -> None:
    @within_bounds("size")
    async def act(size: Annotated[int, Meta(le=3)], text: Annotated[str, Meta(max_length=2)] | None = None) -> int:
        return size

    assert await act(size=3, text="ab") == 3
    with pytest.raises(OutOfRange, match="size cannot be 4") as refused:
        await act(size=4)
    assert (refused.value.hint, refused.value.path) == ("give at most 3", "$.size")
    with pytest.raises(OutOfRange, match="text cannot have 3 characters"):
        await act(size=1, text="abc")
    assert inspect.iscoroutinefunction(act)
