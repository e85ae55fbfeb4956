"""Who calls: each change is signed by its caller. Names of rota's own policies are reserved, because what a policy
cancels does not count as a failure."""

import pytest

from rota.api.operations.routing import walk
from rota.app import Rota
from rota.client.parts import all_verbs
from rota.core.access.roles import Role
from rota.errors import Invalid
from rota.server import asgi
from rota.values.actor import checked_actor
from rota.verbs.parameters import Place, has_place, request_of
from tests.conformance.case import REST, Case, arguments_of, names_of, route_for, routes_of
from tests.conformance.cases import CASES
from tests.conformance.doors import DOOR, Call, method_of
from tests.conformance.test_conformance import Fresh, arranged, changes_nothing

API = "/api/v1"
UNSIGNED = {
    "simulate_schedule": "it changes nothing",
    "simulate_documents": "it changes nothing",
    "test_notification": "it changes nothing; the receiver knows of it",
}
"""Operations of people that no event of the audit tells of. An enqueue is in the run's own trail."""
BY_HAND = {
    ("POST", "/runs"): "an enqueue is in the run's own trail",
    ("POST", "/runs:bulk"): "cases of cancel_many and retry_many send it",
    ("POST", "/runs:purge"): "a case of purge sends it",
    ("POST", "/schedules:bulk"): "tests/api/operations/test_control.py looks at who signs",
}
"""Routes by which people change something, and which are not made from a verb."""
QUIET = ("schedules.backfill: by position, dry", "database.accept: the original, which stays as it is")
"""Cases that change nothing."""


def signed() -> dict[tuple[str, str], Case]:
    """Return a case that succeeds for each route, or method, of a verb that is told who calls."""
    return {
        _place(case): case
        for case in reversed(CASES)
        if case.refused is None and case.scope is None and str(case) not in QUIET
        if "actor" in names_of(case.verb) and not changes_nothing(case)
    }


def _place(case: Case) -> tuple[str, str]:
    if not routes_of(case.verb):
        return case.verb, ""
    verb = route_for(case.verb, arguments_of(case.verb, case.args, case.named)).verb
    return verb.method, verb.path


SIGNED = [pytest.param(case, id=str(case)) for case in signed().values()]


@pytest.mark.parametrize("case", SIGNED)
async def test_nobody_signs_as_a_policy(case: Case, fresh_url: Fresh) -> None:
    """It is refused before anything else happens."""
    async with arranged(case, fresh_url()) as (world, _):
        before = await world.client.audit()
        args, named = world.filled(case.args), world.filled(case.named)
        with pytest.raises(Invalid, match="policy:"):
            await method_of(world.client, case.verb)(*args, **named, actor="policy:overlap")
        assert await world.client.audit() == before


@pytest.mark.parametrize("case", SIGNED)
async def test_whoever_calls_over_http_signs(case: Case, fresh_url: Fresh) -> None:
    async with arranged(case, fresh_url(), Role.ADMIN) as (world, token):
        last = max(event.seq for event in await world.client.audit())
        args, named = world.filled(case.args), world.filled(case.named)
        outcome = await DOOR[REST](world, Call(case.verb, args, named, token=token, sent=case.sent))
        assert outcome.problem is None, outcome.problem
        new = [event for event in await world.client.audit() if event.seq > last]
    assert {event.actor for event in new} == {"token:conformance"}, new


def test_every_change_of_people_is_signed() -> None:
    changing = [one for one in all_verbs() if one.verb.method != "GET" and one.verb.role not in (None, Role.WORKER)]
    unsigned = {one.operation for one in changing if not has_place(request_of(one), Place.ACTOR)}
    assert unsigned == UNSIGNED.keys()
    routes = {(one.verb.method, one.verb.path) for one in changing if one.operation not in UNSIGNED}
    assert routes <= signed().keys()
    served = {
        (method, path.removeprefix(API))
        for path, route in walk(asgi(Rota("sqlite:///unused.db", auth=True)).routes)
        for method, operation in route.operations.items()
        if method != "GET" and operation.role not in (None, Role.WORKER) and path.startswith(API)
    }
    assert served - {(one.verb.method, one.verb.path) for one in changing} == BY_HAND.keys()


def test_a_name_may_resemble_that_of_a_policy() -> None:
    assert checked_actor("police") == "police"
