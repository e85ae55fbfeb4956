"""Every declared verb through every door: the same cases, the same answers, the same state afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import UNSET

from rota.core.access.roles import Role
from tests.conformance.case import (
    CLIENT,
    COMMAND,
    PYTHON,
    SCOPED,
    Case,
    Refusal,
    declared_verbs,
    is_declared,
    routes_of,
)
from tests.conformance.cases import CASES
from tests.conformance.doors import DOOR, Call, actor_at
from tests.conformance.forms import Outcome, comparable, differences, lacking
from tests.conformance.transactions import too_many
from tests.conformance.world import World, declared_app
from tests.support.commands import command_of

WITHOUT_CASES: dict[str, str] = {}
"""Verbs that have no case, with the reason."""

Fresh = Callable[[], str]


def doors_of(case: Case) -> list[str]:
    doors = SCOPED if case.scope is not None else case.only
    return [door for door in doors if door != COMMAND or _has_command(case)]


def _has_command(case: Case) -> bool:
    return case.typed is not None or command_of(routes_of(case.verb)[0]) is not None


def changes_nothing(case: Case) -> bool:
    """Return whether one database does for all doors: nothing that is refused, and no question, leaves a trace."""
    routes = routes_of(case.verb)
    return case.refused is not None or bool(routes and all(route.verb.method == "GET" for route in routes))


@asynccontextmanager
async def arranged(case: Case, url: str, role: Role | None = None) -> AsyncIterator[tuple[World, str | None]]:
    """Arrange what a case says exists before, in the database; give the token of its caller, who has a scope or that
    role."""
    has_token = case.scope is not None or role is not None
    app = declared_app(url, auth=has_token, http_allow="127.0.0.0/8")
    world = World(app, url, await app.connect())
    try:
        await world.store.save_jobs(app.registry.definitions())
        for arrangement in case.given:
            await arrangement(world)
        token = None
        if has_token:
            made = await world.client.tokens.create("conformance", role or Role.OPERATOR, scope=case.scope)
            token = made.secret
        yield world, token
    finally:
        await world.stack.aclose()
        await app.aclose()


async def enacted(case: Case, door: str, world: World, token: str | None) -> dict[str, Any]:
    """Call the verb, read the state afterwards; all of it comparable."""
    args, named, typed = (world.filled(value) for value in (case.args, case.named, case.typed))
    call = Call(case.verb, args, named, case.scope, token, case.sent, typed)
    outcome = await DOOR[door](world, call)
    plain = _plain(outcome, world, actor_at(door, token))
    if token is None:  # whose check is a transaction of its own, once in two seconds
        assert too_many(case, outcome.transactions) == []
    result: dict[str, Any] = {"outcome": plain, "types": comparable(outcome.types, world, "")}
    return result if case.reads is None else {**result, "after": await state(case, door, world, token)}


async def state(case: Case, door: str, world: World, token: str | None) -> dict[str, Any]:
    """Read what a case says shows the state."""
    assert case.reads is not None
    verb, named = case.reads
    return _plain(await DOOR[CLIENT](world, Call(verb, (), world.filled(named))), world, actor_at(door, token))


def _plain(outcome: Outcome, world: World, actor: str) -> dict[str, Any]:
    if outcome.problem is None:
        return {"answer": comparable(outcome.answer, world, actor)}
    problem = outcome.problem
    return {"problem": {name: comparable(getattr(problem, name), world, actor) for name in problem.__struct_fields__}}


async def at_all_doors(case: Case, fresh: Fresh) -> dict[str, dict[str, Any]]:
    """Return what each door gives, the client's first."""
    doors = doors_of(case)
    if not changes_nothing(case):
        results: dict[str, dict[str, Any]] = {}
        for door in doors:
            async with arranged(case, fresh()) as (world, token):
                results[door] = await enacted(case, door, world, token)
        return results
    async with arranged(case, fresh()) as (world, token):
        before = None if case.reads is None else await state(case, doors[0], world, token)
        results = {door: await enacted(case, door, world, token) for door in doors}
        assert differences(before, results[doors[0]].get("after")) == []
        return results


@pytest.mark.parametrize("case", [pytest.param(case, id=str(case)) for case in CASES])
async def test_every_door_gives_the_same(case: Case, fresh_url: Fresh) -> None:
    results = await at_all_doors(case, fresh_url)
    expected = next(iter(results.values()))
    wrong = {
        door: [*failings(case, result["outcome"]), *_unlike(case, door, expected, result)]
        for door, result in results.items()
    }
    assert {door: lines for door, lines in wrong.items() if lines} == {}


def _unlike(case: Case, door: str, expected: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """Return where a door differs from the client, other than it must."""
    if case.refused is not None and (case.refused.shape or (case.refused.usage and door == COMMAND)):
        expected, result = expected | {"outcome": None, "types": None}, result | {"outcome": None, "types": None}
    if door not in PYTHON:
        expected = expected | {"types": None}
        if case.refused is None and not is_declared(case.verb):
            expected, result = expected | {"outcome": None}, result | {"outcome": None}
    if door == COMMAND and "problem" in (expected["outcome"] or {}):  # a command has no body to point into
        problem = {**expected["outcome"]["problem"], "place": None}
        expected = expected | {"outcome": {"problem": problem}}
    return differences(expected, result)


def failings(case: Case, outcome: dict[str, Any]) -> list[str]:
    """Return how an outcome differs from what the case says."""
    problem = outcome.get("problem")
    if case.refused is None:
        if problem is not None:
            return [f"refused: {problem}"]
        return [] if case.contains is UNSET else lacking(case.contains, outcome["answer"])
    return [f"answered: {outcome['answer']!r:.300}"] if problem is None else _misfits(case.refused, problem)


def _misfits(refused: Refusal, problem: dict[str, Any]) -> list[str]:
    codes = {refused.code, "bad-body", "usage"} if refused.shape else {refused.code}
    codes |= {"usage"} if refused.usage else set()
    lines = [] if problem["code"] in codes else [f"code {problem['code']}, not {refused.code}"]
    hint = problem["hint"]
    told = [problem["detail"], hint or "", problem["field"] or "", problem["place"] or ""]
    said = " ".join([*told, *(text.replace("-", "_") for text in told)])
    lines += [] if refused.words in said else [f"{told} lack {refused.words!r}"]
    right = (
        refused.shape or (refused.usage and problem["code"] == "usage") or hint is None
        if refused.hint is None
        else refused.hint in (hint or "")
    )
    return lines if right else [*lines, f"hint {hint!r}, not {refused.hint!r}"]


def test_every_verb_has_a_case() -> None:
    declared = declared_verbs()
    cases = {case.verb for case in CASES}
    assert declared - cases - WITHOUT_CASES.keys() == set()
    assert WITHOUT_CASES.keys() - declared == set()


def test_cases_have_names_of_their_own() -> None:
    names = [str(case) for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_every_case_says_what_is_answered() -> None:
    silent = [str(case) for case in CASES if case.refused is None and case.contains is UNSET]
    own = ["database.examine: a new installation", "enqueue_many: that follow each other"]
    assert silent == own, "an answer of each door's own; the state is compared"
