"""Names of rota's own policies are reserved, whatever is called: what a policy cancels does not count as a failure."""

import pytest

from rota.errors import Invalid
from rota.values.actor import checked_actor
from tests.conformance.case import Case, names_of
from tests.conformance.cases import CASES
from tests.conformance.doors import method_of
from tests.conformance.test_conformance import Fresh, arranged, changes_nothing


def signed() -> list[Case]:
    """Return a case that succeeds for each verb that is told who calls."""
    cases = {case.verb: case for case in reversed(CASES) if case.refused is None and case.scope is None}
    return [case for verb, case in cases.items() if "actor" in names_of(verb) and not changes_nothing(case)]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.verb) for case in signed()])
async def test_nobody_signs_as_a_policy(case: Case, fresh_url: Fresh) -> None:
    """It is refused before anything else happens."""
    async with arranged(case, fresh_url()) as (world, _):
        before = await world.client.audit()
        args, named = world.filled(case.args), world.filled(case.named)
        with pytest.raises(Invalid, match="policy:"):
            await method_of(world.client, case.verb)(*args, **named, actor="policy:overlap")
        assert await world.client.audit() == before


def test_a_name_may_resemble_that_of_a_policy() -> None:
    assert checked_actor("police") == "police"
