"""Every declared verb through every door: the same cases, the same answers, the same state afterwards."""

from __future__ import annotations

import copy
from collections.abc import Callable
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
from tests.conformance.world import World, declared_app
from tests.support.commands import command_of

WITHOUT_CASES: dict[str, str] = {}
"""Verbs that have no case, with the reason."""

Fresh = Callable[[], str]
_references: dict[tuple[str, str], dict[str, Any]] = {}


def doors_of(case: Case) -> list[str]:
    doors = SCOPED if case.scope is not None else case.only
    return [door for door in doors if door != COMMAND or _has_command(case)]


def _has_command(case: Case) -> bool:
    return case.typed is not None or command_of(routes_of(case.verb)[0]) is not None


async def enacted(case: Case, door: str, url: str) -> dict[str, Any]:
    """Arrange the case in the database, call the verb, read the state afterwards; all of it comparable."""
    app = declared_app(url, auth=case.scope is not None, http_allow="127.0.0.0/8")
    world = World(app, url, await app.connect())
    try:
        await world.store.save_jobs(app.registry.definitions())
        for arrangement in case.given:
            await arrangement(world)
        token = None
        if case.scope is not None:
            token = (await world.client.tokens.create("conformance", Role.OPERATOR, scope=case.scope)).secret
        arguments = world.filled(case.args), world.filled(case.named)
        call = Call(case.verb, *arguments, case.scope, token, case.sent, case.typed)
        outcome = await DOOR[door](world, call)
        plain = _plain(outcome, world, actor_at(door, token))
        result: dict[str, Any] = {"outcome": plain, "types": comparable(outcome.types, world, "")}
        if case.reads is not None:
            verb, named = case.reads
            after = await DOOR[CLIENT](world, Call(verb, (), world.filled(named)))
            result["after"] = _plain(after, world, actor_at(door, token))
        return result
    finally:
        await world.stack.aclose()
        await app.aclose()


def _plain(outcome: Outcome, world: World, actor: str) -> dict[str, Any]:
    if outcome.problem is None:
        return {"answer": comparable(outcome.answer, world, actor)}
    problem = outcome.problem
    return {"problem": {name: comparable(getattr(problem, name), world, actor) for name in problem.__struct_fields__}}


async def reference(case: Case, fresh: Fresh, database: str) -> dict[str, Any]:
    """Return what the asynchronous client gives, which all doors must."""
    key = str(case), database
    if key not in _references:
        _references[key] = await enacted(case, CLIENT if CLIENT in case.only else case.only[0], fresh())
    return _references[key]


@pytest.mark.parametrize(
    ("case", "door"), [pytest.param(case, door, id=f"{case}-{door}") for case in CASES for door in doors_of(case)]
)
async def test_every_door_gives_the_same(
    case: Case, door: str, fresh_url: Fresh, request: pytest.FixtureRequest
) -> None:
    expected = copy.deepcopy(await reference(case, fresh_url, request.node.callspec.params["fresh_url"]))
    if door == CLIENT:
        assert failings(case, expected["outcome"]) == []
        return
    result = await enacted(case, door, fresh_url())
    assert failings(case, result["outcome"]) == []
    if case.refused is not None and (case.refused.shape or (case.refused.usage and door == COMMAND)):
        expected, result = expected | {"outcome": None}, result | {"outcome": None}
    if door not in PYTHON:
        expected = expected | {"types": None}
        if case.refused is None and not is_declared(case.verb):
            expected, result = expected | {"outcome": None}, result | {"outcome": None}
    if door == COMMAND and "problem" in (expected["outcome"] or {}):  # a command has no body to point into
        expected["outcome"]["problem"]["place"] = None
    assert differences(expected, result) == []


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
