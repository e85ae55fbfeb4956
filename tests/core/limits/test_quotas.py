"""Quotas: parsing, and the gates that they become."""

import pytest

from rota.core.limits.limits import UNLIMITED, Gate, WhenFull, is_quota, narrowest_first
from rota.core.limits.quotas import QuotaOf, checked_place, described, prefixes, quota_of, scope_of_key
from rota.core.runs.admit import Admitted, Applicant, Facts, Full, decide
from rota.errors import Invalid, RotaError
from rota.values.scope import Scope

SCOPE = Scope("tenant", "42")
HOUR = 3_600_000_000
RATE, PLAIN = "rate:quota:tenant/42", "quota:tenant/42"


@pytest.mark.parametrize(
    ("written", "gates"),
    [
        ({"max_concurrency": 5}, [Gate(PLAIN, 5)]),
        ({"max_concurrency": 5, "max_queued": 2}, [Gate(PLAIN, 5, WhenFull.QUEUE, 2)]),
        ({"max_queued": 2}, [Gate(PLAIN, UNLIMITED, WhenFull.QUEUE, 2)]),
        ({"rate": (9, "1h")}, [Gate(RATE, 9, WhenFull.QUEUE, None, HOUR)]),
        ({"rate": "9/1h", "max_queued": 2}, [Gate(RATE, 9, WhenFull.QUEUE, 2, HOUR)]),
        (
            {"max_concurrency": 5, "rate": "9 per 1h", "max_queued": 2},
            [Gate(RATE, 9, WhenFull.QUEUE, None, HOUR), Gate(PLAIN, 5, WhenFull.QUEUE, 2)],
        ),
    ],
)
def test_gates(written: dict[str, object], gates: list[Gate]) -> None:
    quota = quota_of(**written)  # type: ignore[arg-type]
    assert list(quota.gates(SCOPE)) == gates
    assert all(is_quota(gate.key) and scope_of_key(gate.key, "tenant") == SCOPE for gate in gates)
    assert all(gate.key in prefixes("tenant", "42") for gate in gates)
    assert quota_of(**_written(described("tenant", "42", quota, "ann"))) == quota  # type: ignore[arg-type]


def _written(quota: QuotaOf) -> dict[str, object]:
    return {"max_concurrency": quota.max_concurrency, "max_queued": quota.max_queued, "rate": quota.rate}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({}, "limits nothing"),
        ({"max_concurrency": -1}, "from 1 up"),
        ({"max_concurrency": "5"}, "whole number"),
        ({"max_queued": True}, "whole number"),
        ({"max_queued": -1}, "from 0 up"),
        ({"rate": 5}, "rate cannot be 5"),
        ({"rate": "often"}, "rate cannot be"),
        ({"rate": (5, "never")}, "never"),
        ({"rate": (5, "0s")}, "more than 0s"),
    ],
)
def test_what_is_refused(written: dict[str, object], told: str) -> None:
    with pytest.raises(RotaError, match=told):
        quota_of(**written)  # type: ignore[arg-type]


def test_places() -> None:
    assert checked_place("tenant", None) == ("tenant", "")
    with pytest.raises(Invalid, match="without a scope"):
        checked_place("global", "global")
    with pytest.raises(RotaError):
        checked_place("tenant", "")


@pytest.mark.parametrize("key", ["job:quota:x", "key:a:b:quota:tenant/42", "rate:job:quota", "schedule:1"])
def test_others_are_no_quotas(key: str) -> None:
    assert not is_quota(key)
    assert scope_of_key(key, "tenant") is None


def test_a_quota_is_wider_than_any_other_limit() -> None:
    keys = [PLAIN, "job:a", RATE, "rate:schedule:1", "schedule:1", "rate:key:a:b:c", "key:a:b:c", "backfill:1"]
    ordered = [gate.key for gate in narrowest_first(Gate(key, 1) for key in keys)]
    assert ordered == [
        *("backfill:1", "rate:key:a:b:c", "key:a:b:c", "rate:schedule:1", "schedule:1", "job:a", PLAIN, RATE)
    ]


def test_only_how_many_wait() -> None:
    (gate,) = quota_of(max_queued=2).gates(SCOPE)
    run = Applicant("new", "work", (gate,))
    assert decide(run, Facts(counts={PLAIN: 1})) == Admitted()
    turn = decide(run, Facts(counts={PLAIN: 2}))
    assert isinstance(turn, Full)
    assert turn.reason == "quota of tenant/42 is full: 2 waiting"
