"""Lines: which runs wait together, and which need a line of their own."""

import pytest

from rota.core.limits.limits import UNLIMITED, Gate, is_of_jobs, limit_of_key
from rota.core.limits.lines import in_line, line_key


def gates(*keys: str) -> tuple[Gate, ...]:
    return tuple(Gate(key, 1) for key in keys)


@pytest.mark.parametrize(
    "keys",
    [
        (),
        ("job:j",),
        ("quota:tenant/a",),
        ("rate:job:j", "job:j"),
        ("rate:quota:tenant/a", "quota:tenant/a"),
        ("key:j:customer:1", "job:j"),
        ("key:j:customer,region:1", "key:j:region:2", "rate:job:j"),
        ("key:j:scope:1", "quota:tenant/a", "live:job:j"),
        ("schedule:s", "rate:schedule:s", "job:j", "live:job:j"),
        ("backfill:s", "schedule:s", "job:j"),
        ("job:j", "live:job:j"),
    ],
)
def test_runs_under_a_limit_that_is_within_the_others_wait_under_it(keys: tuple[str, ...]) -> None:
    assert in_line(gates(*keys)) == gates(*keys)
    assert line_key(gates(*keys)) == (keys[0] if keys else None)


@pytest.mark.parametrize(
    "keys",
    [
        ("job:j", "quota:tenant/a"),
        ("rate:job:j", "rate:quota:tenant/a"),
        ("key:j:customer:1", "quota:tenant/a"),
        ("key:j:customer:1", "key:j:region:2"),
        ("key:j:customer:1", "schedule:s"),
        ("schedule:s", "quota:tenant/a"),
        ("backfill:s", "key:j:customer:1", "schedule:s"),
        ("job:j", "live:queue:default"),
        ("quota:tenant/a", "live:job:j"),
        ("live:job:j", "live:queue:default"),
        ("job:j", "of a newer program:1"),
        ("of a newer program:1", "job:j"),
    ],
)
def test_others_wait_in_a_line_of_their_own(keys: tuple[str, ...]) -> None:
    line, *rest = in_line(gates(*keys))
    assert tuple(rest) == gates(*keys)
    assert (line.max, line.period, line.decides) == (UNLIMITED, None, False)
    assert line.key == line_key(gates(*keys))
    assert is_of_jobs(line.key) is is_of_jobs(keys[0])


def test_a_line_is_of_those_with_the_same_limits() -> None:
    both = {line_key(gates("job:j", f"quota:tenant/{id}", *more)) for id in "ab" for more in ((), ("live:job:j",))}
    assert len(both) == 2, "the live limit of the job is wider than that of the job"
    assert line_key(gates("job:j", "quota:tenant/a")) != line_key(gates("job:k", "quota:tenant/a"))


def test_lines_of_a_key_take_turns_with_its_limit_and_others_go_by_age() -> None:
    keyed = line_key(gates("key:j:customer:1", "quota:tenant/a")) or ""
    assert limit_of_key(keyed) == limit_of_key("key:j:customer:2") == "key:j:customer"
    of_job = [line_key(gates("job:j", f"quota:tenant/{id}")) or "" for id in "ab"]
    assert [limit_of_key(key) for key in of_job] == of_job
