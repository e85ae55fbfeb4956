"""Errors: five families, each with one status and one exit code, and the drawn tree."""

import inspect
import re

import pytest

from rota import errors
from rota.core.jobs.status import JobState, job_action
from rota.errors import (
    BadConfig,
    ChangedMeanwhile,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    NotSignedIn,
    RotaError,
    TooManySessions,
    TooManyTries,
    Unavailable,
    did_you_mean,
)

FAMILIES: dict[type[RotaError], tuple[int, int]] = {
    NotFound: (404, 4),
    Conflict: (409, 6),
    Invalid: (422, 2),
    Denied: (403, 5),
    Unavailable: (503, 69),
}
OWN: dict[type[RotaError], int] = {NotSignedIn: 401, TooManyTries: 429, TooManySessions: 429, ChangedMeanwhile: 412}
ALL = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, RotaError) and kind.__module__.startswith(errors.__name__)
]
SPECIFIC = [kind for kind in ALL if kind is not RotaError and kind not in FAMILIES]


def family_of(kind: type[RotaError]) -> type[RotaError]:
    (family,) = [family for family in FAMILIES if issubclass(kind, family)]
    return family


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_a_status_and_an_exit_code(family: type[RotaError]) -> None:
    assert (family.status, family.exit_code) == FAMILIES[family]


@pytest.mark.parametrize("kind", SPECIFIC)
def test_every_error_has_the_status_of_its_family(kind: type[RotaError]) -> None:
    assert kind.status == OWN.get(kind, family_of(kind).status)


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in ALL]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


def test_the_drawn_tree_is_the_tree() -> None:
    """Compare each family with its status and exit code, and each error with its family and its own exit code."""
    drawn: dict[str, tuple[str, int]] = {}
    family, exit_code = "", 0
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r" *[├└]── (\w+) +(\d+) +exit (\d+) +(.*)", line):
            family, exit_code = found[1], int(found[3])
            assert FAMILIES[getattr(errors, family)] == (int(found[2]), exit_code)
            rest = found[4]
        elif line.startswith(("    │ ", " " * 30)):
            rest = line.replace("│", "")
        else:
            continue
        for name, own in re.findall(r"(\w+)(?: \(exit (\d+)\))?(?:,|$)", rest.strip()):
            drawn[name] = (family, int(own or exit_code))
    assert drawn == {kind.__name__: (family_of(kind).__name__, kind.exit_code) for kind in SPECIFIC}


def test_a_message_carries_its_hint() -> None:
    assert str(RotaError("no", hint="try again")) == "no (try again)"
    assert str(RotaError("no")) == "no"
    assert BadConfig("no").hint is None


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("qeue", ["queue", "key"], "did you mean 'queue'?"),
        ("zzz", ["b", "a"], "known: a, b"),
        ("mun", ["mon", "tue"], "did you mean 'mon'?"),
        ("maximum", ["by", "max", "max_queued"], "did you mean 'max'?"),
        ("nope", ["scoped", "crawl"], "known: crawl, scoped"),
        ("bogus", ["log_runs", *(f"name-{n}" for n in range(9))], None),
        ("zzz", [], None),
        ("zzz", [f"name-{n}" for n in range(9)], None),
    ],
)
def test_did_you_mean(word: str, known: list[str], hint: str | None) -> None:
    assert did_you_mean(word, known) == hint


def test_a_suggestion_is_a_word_even_if_an_enum_has_it() -> None:
    assert did_you_mean("pausd", JobState) == "did you mean 'paused'?"
    with pytest.raises(Invalid) as caught:
        job_action("pasue")
    assert caught.value.hint == "did you mean 'pause'?"


def test_an_unknown_job_names_the_nearest() -> None:
    assert "did you mean 'crawl'?" in str(errors.UnknownJob("crwal", ["crawl", "mail"]))
    assert "start a worker" in str(errors.UnknownJob("crawl"))


def test_a_schema_says_who_is_behind() -> None:
    assert "rota migrate" in str(errors.SchemaOutdated(1, 2))
    assert "newer rota" in str(errors.SchemaOutdated(2, 1))
