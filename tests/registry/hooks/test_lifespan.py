"""Test injected parameters: no part of the payload, its schema, or what callers may give."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import pytest

from rota import BadPayload, Context, Invalid, Rota, injected
from rota.engine.handlers.context import RunContext
from rota.registry.signature import PayloadType


class Pool:
    """A class that JSON cannot be read into."""


def crawl(url: str, pool: Pool = injected, depth: int = 1) -> None: ...


def open_ended(ctx: Context, pool: Pool = injected, **rest: int) -> None: ...


def generic(states: dict[str, Any] = injected) -> None: ...


def test_an_injected_parameter_is_no_part_of_the_payload() -> None:
    payload = PayloadType.of(crawl, RunContext)
    assert payload.injects == {"pool": Pool}
    properties: Any = payload.schema()["properties"]
    assert list(properties) == ["url", "depth"]
    assert payload.bind(("a", 2), {}) == {"url": "a", "depth": 2}
    assert PayloadType.of(generic, RunContext).injects == {"states": dict}


@pytest.mark.parametrize("fn", [crawl, open_ended])
def test_callers_cannot_give_it(fn: Any) -> None:
    payload = PayloadType.of(fn, RunContext)
    with pytest.raises(BadPayload, match="the worker passes it"):
        payload.bind((), {"pool": 1})
    with pytest.raises(BadPayload, match="unexpected"):
        payload.arguments('{"url": "a", "pool": 1}')


def test_the_schema_of_an_open_payload_forbids_it() -> None:
    assert PayloadType.of(open_ended, RunContext).schema()["properties"] == {"ctx": False, "pool": False}


class Closable(Protocol):
    def close(self) -> None: ...


def union(pool: Pool | None = injected) -> None: ...


def bare(pool=injected) -> None: ...  # type: ignore[no-untyped-def]


def protocol(pool: Closable = injected) -> None: ...


@pytest.mark.parametrize("fn", [union, bare, protocol])
def test_it_needs_a_class(fn: Any) -> None:
    with pytest.raises(Invalid, match="parameter 'pool' is injected by its type, and so needs a class"):
        Rota("sqlite:///never-opened.db").job(fn)


def test_a_state_as_payload_gets_a_hint() -> None:
    def forgotten(pool: Pool) -> None: ...

    with pytest.raises(Invalid, match="= injected"):
        Rota("sqlite:///never-opened.db").job(forgotten)


def test_a_direct_call_without_it_says_so() -> None:
    with pytest.raises(AttributeError, match="a direct call injects nothing"):
        injected.execute  # noqa: B018
    assert repr(injected) == "injected"
    assert copy.copy(injected) is not None
