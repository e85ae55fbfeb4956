"""Test that a new mode is missing nowhere: mypy names every `match`, and what mypy cannot see is named here."""

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from rota.core.calendar.cron_times import FoldMode, GapMode
from rota.core.calendar.triggers.job_end import FollowedEnd
from rota.core.jobs.job import Isolation, JobDefinition, JobKind, is_external
from rota.core.jobs.status import ResumeMode
from rota.core.jobs.unique import OnConflict
from rota.core.ledger.backfill import Ran
from rota.core.limits.limits import WhenFull
from rota.core.monitoring.timeline import Grouping
from rota.core.runs.dependencies import Follows, On, Otherwise
from rota.core.runs.outcome import AT_MOST_ONCE, OnLost
from rota.core.schedules.policies import CatchUpMode, FailureMode, OverlapMode
from rota.core.schedules.schedule import CatchUpWord, FailureWord, OverlapWord, WhenFullWord
from rota.registry.data_jobs import KINDS, SchemaPayload
from rota.registry.jobs import FunctionOptions, Handler
from tests.shape.sql_files import sql_files
from tests.simulation.script import themes

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "rota"
WEB = ROOT / "web" / "src" / "views" / "schedules"
LISTS: dict[str, type[StrEnum]] = {
    "OVERLAPS": OverlapMode,
    "CATCH_UPS": CatchUpMode,
    "FAILURES": FailureMode,
    "FULLS": WhenFull,
}
MODES: tuple[type[StrEnum], ...] = (
    CatchUpMode, OverlapMode, FailureMode, ResumeMode, GapMode, FoldMode, FollowedEnd,
    WhenFull, OnConflict, OnLost, Isolation, JobKind, On, Otherwise, Ran, Grouping,
)  # fmt: skip
WORDS = {mode.value for modes in MODES for mode in modes}
MEMBERS = {f"{modes.__name__}.{mode.name}" for modes in MODES for mode in modes}

OTHER_THINGS = {
    # what is compared: the words that are also the word of a mode
    "scope['type']": {"http"},  # ASGI
    "parts.scheme": {"http"},  # of a URL
    "key": {"job"},  # of a document
    "name": {"after", "backoff"},  # of an option or a field
    "action.verb": {"cancel"},  # a key of `rota top`
    "body.action": {"cancel", "pause", "retry"},  # a Literal, matched with assert_never
    "signal.get('kind')": {"fail", "retry"},  # an exception of a child process
    "kind": {"job"},
    "row.kind": {"job", "schedule"},
    "subject.kind": {"schedule"},
    "pause.kind": {"job", "queue"},  # subjects of pauses
    # not written, since it is the default
    "self.gap": {"GapMode.AFTER"},
    "self.fold": {"FoldMode.FIRST"},
    "self.on": {"FollowedEnd.SUCCESS"},
}
OTHER_LISTS = {
    ("success", "end"),
    ("skip", "cancel"),
    ("job", "queue"),  # subjects of pauses
    ("job", "schedule"),  # subjects of expectations
    ("first", "last"),  # ids
    ("success", "failure"),  # signals of a notification
}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCES.rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def words_in(node: ast.expr) -> set[str]:
    """Return the words and members of modes that an expression lists: "skip", WhenFull.SKIP, or a tuple of such."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return {word for item in node.elts for word in words_in(item)}
    if isinstance(node, ast.Constant):
        return {node.value} & WORDS if isinstance(node.value, str) else set()
    return {ast.unparse(node)} & MEMBERS


def compared(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each comparison with a word of a mode: the other side, and the word."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            yield from ((ast.unparse(left), word) for word in words_in(right))
            if not isinstance(operator, ast.In | ast.NotIn):  # `"job" in document` asks for a key
                yield from ((ast.unparse(right), word) for word in words_in(left))
    if isinstance(node, ast.Match):
        patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
        values = [part.value for part in patterns if isinstance(part, ast.MatchValue)]
        texts = [value for value in values if isinstance(value, ast.Constant)]
        yield from ((ast.unparse(node.subject), word) for value in texts for word in words_in(value))


def literals(node: ast.AST) -> tuple[str, ...]:
    """Return the strings of a tuple, list or set, or the keys of a dict, if there is nothing else in it."""
    items: list[ast.expr | None] = []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        items = [*node.elts]
    elif isinstance(node, ast.Dict):
        items = node.keys
    texts = tuple(item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str))
    return texts if len(texts) == len(items) else ()


def test_no_mode_is_compared_instead_of_matched() -> None:
    """Neither with a word nor with a member: mypy would not name the place when a mode is added."""
    places = [(path, *pair) for path, tree in trees() for node in ast.walk(tree) for pair in compared(node)]
    allowed = {(side, word) for side, words in OTHER_THINGS.items() for word in words}
    assert [place for place in places if place[1:] not in allowed] == []
    assert allowed - {place[1:] for place in places} == set(), "no longer there"


def test_no_list_or_table_of_words_stands_for_modes() -> None:
    """`_TREATMENT[when_full]` and `when_full in _STRICT` decide, too."""
    lists = [(path, literals(node)) for path, tree in trees() for node in ast.walk(tree)]
    of_modes = [
        (path, words)
        for path, words in lists
        if len(words) > 1 and any(set(words) <= {mode.value for mode in modes} for modes in MODES)
    ]
    known = OTHER_LISTS | {written(words) for words in WRITTEN}
    assert [place for place in of_modes if place[1] not in known] == []
    assert OTHER_LISTS - {words for _, words in of_modes} == set(), "no longer there"


def test_every_match_of_modes_is_complete() -> None:
    def names_a_mode(match: ast.Match) -> bool:
        patterns = [part for case in match.cases for part in ast.walk(case.pattern)]
        return any(isinstance(part, ast.MatchValue) and words_in(part.value) & MEMBERS for part in patterns)

    found = [
        (f"{path}:{node.lineno}", ast.unparse(node.cases[-1]))
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Match) and names_a_mode(node)
    ]
    assert len(found) > len(MODES)
    assert [place for place, last in found if not re.fullmatch(r"case _:\s+assert_never\(.+\)", last)] == []


@pytest.mark.parametrize(
    "code",
    [
        'if run.on_lost == "fail": pass',
        'if "process" != options.get("isolation"): pass',
        'full = gate.when_full in ("skip", "reject")',
        "if mode is WhenFull.QUEUE: pass",
        "if mode not in (OnLost.FAIL,): pass",
        'match definition.kind:\n    case "http" | "command": pass',
    ],
)
def test_a_comparison_is_found(code: str) -> None:
    pairs = [pair for node in ast.walk(ast.parse(code)) for pair in compared(node)]
    assert pairs != []
    assert all(word not in OTHER_THINGS.get(side, ()) for side, word in pairs)


def sql_words(pattern: str) -> set[str]:
    """Return the words that statements compare with; those of migrations stay as they were written."""
    texts = [text for statements in sql_files().values() for text in re.findall(pattern, statements)]
    return {word for text in texts for word in re.findall(r"'(\w+)'", text)}


def test_statements_know_the_words_of_on_lost() -> None:
    assert sql_words(r"on_losts?\b(?:::text\[\]\)\[\w+\])? *(?:=|<>|in) *('\w+'|\([^)]*\))") == AT_MOST_ONCE


def test_statements_know_the_kinds_of_jobs() -> None:
    def runs_on_workers(kind: str) -> bool:
        return Handler(JobDefinition(name="work", kind=kind), print, SchemaPayload({})).has_code

    assert sql_words(r"owner <> 'code' and kind in (\([^)]*\))") == set(filter(runs_on_workers, KINDS))
    assert sql_words(r"\bj\.kind = ('\w+')") == set(filter(is_external, KINDS))


def test_what_the_interface_accepts() -> None:
    def words(owner: type, field: str) -> set[str]:
        hint = get_type_hints(owner)[field]
        return {word for part in (hint, *get_args(hint)) for word in get_args(part) if isinstance(word, str)}

    assert words(Follows, "on") == set(On)
    assert words(Follows, "otherwise") == set(Otherwise)


@pytest.mark.parametrize(("name", "modes"), LISTS.items())
def test_the_dashboard_offers_every_mode(name: str, modes: type[StrEnum]) -> None:
    text = (WEB / "modes.ts").read_text(encoding="utf-8")
    listed = re.search(rf"const {name} = \[(.*?)\]", text)
    assert listed is not None
    assert set(re.findall(r'"(\w+)"', listed[1])) == set(modes)


def test_the_simulation_draws_every_mode() -> None:
    def mode_of(policy: object) -> object:
        return policy["mode"] if isinstance(policy, dict) else policy

    assert {mode_of(policy) for policy in themes.OVERLAPS} == set(OverlapMode)
    assert {mode_of(policy) for policy in themes.CATCH_UPS} == set(CatchUpMode)


WRITTEN: dict[object, type[StrEnum]] = {
    CatchUpWord: CatchUpMode,
    OverlapWord: OverlapMode,
    FailureWord: FailureMode,
    WhenFullWord: WhenFull,
    get_type_hints(FunctionOptions)["on_lost"]: OnLost,
    get_type_hints(FunctionOptions)["isolation"]: Isolation,
}


def written(words: object) -> tuple[str, ...]:
    """Return the words of a `Literal`, alone or in a union with its enum."""
    return tuple(word for part in get_args(words) for word in get_args(part) or (part,) if type(word) is str)


@pytest.mark.parametrize(("words", "modes"), WRITTEN.items(), ids=str)
def test_type_checkers_know_every_word_of_a_mode(words: object, modes: type[StrEnum]) -> None:
    assert sorted(written(words)) == sorted(modes)
