"""Runs by values in their payload, and by the fingerprint of their error: the same on both databases."""

from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.runs.error_fingerprint import fingerprint_of
from rota.core.runs.run import RunError, RunFilter
from rota.core.states import LIVE_STATES, Outcome, RunState
from rota.errors import Invalid
from rota.store import Store
from tests.support.runs.runs import ids, put, put_and_claim, tell

PAYLOAD = {
    "n": 5,
    "text": "5",
    "half": 1.5,
    "big": 10**30,
    "huge": 1e20,
    "flag": True,
    "none": None,
    "a": {"b": "x y", "c": {"d": "é"}},
    "list": ["q"],
    "0": "zero",
    "said": 'say "hi"\n\\',
    "sp ace": "k",
    "o": {"0": 1},
    "empty": "",
    "like": "100%_",
    "it's": "quoted",
    "$": "dollar",
    "{x}": "brace",
    ":name": "colon",
}
MATCHING: list[tuple[str, Any]] = [
    ("n", "5"), ("n", 5), ("text", "5"), ("half", "1.5"), ("half", 1.5), ("big", str(10**30)), ("big", 10**30),
    ("huge", 1e20), ("flag", "true"), ("flag", True), ("none", "null"), ("none", None), ("a.b", "x y"),
    ("a.c.d", "é"), ("0", "zero"), ("said", 'say "hi"\n\\'), ("sp ace", "k"), ("o.0", "1"), ("empty", ""),
    ("like", "100%_"), ("it's", "quoted"), ("$", "dollar"), ("{x}", "brace"), (":name", "colon"),
]  # fmt: skip
OTHERS: list[tuple[str, Any]] = [
    ("n", "6"), ("n", "05"), ("n", 5.0), ("flag", "True"), ("flag", 1), ("missing", "null"), ("missing", ""),
    ("list", '["q"]'), ("list.0", "q"), ("a", '{"b":"x y","c":{"d":"é"}}'), ("n.x", "5"), ("text.x", "5"),
    ("a.b", "x"), ("A.b", "x y"), ("like", "100xx"), ("n' or '1'='1", "5"), ("text", "5' or '1'='1"), ("none", ""),
]  # fmt: skip


async def found(store: Store, **wanted: Any) -> list[str]:
    return ids(await store.list_runs(RunFilter(**wanted), 100))


async def test_a_value_is_compared_with_the_text_of_what_is_there(store: Store) -> None:
    run = await put(store, payload=PAYLOAD)
    await put(store, payload={})
    await put(store, payload=[5, "5"])
    wrong = [one for one in MATCHING if await found(store, payload=dict([one])) != [run]]
    wrong += [one for one in OTHERS if await found(store, payload=dict([one])) != []]
    assert wrong == []


async def test_all_of_several_must_be_there(store: Store) -> None:
    run = await put(store, payload=PAYLOAD)
    assert await found(store, payload=dict(MATCHING[4:14]), job="work") == [run]
    assert await found(store, payload={"n": 5, "a.b": "z"}) == []


@pytest.mark.parametrize(
    "payload",
    [
        {"": "x"},
        {"a..b": "x"},
        {"a.": "x"},
        {'a"b': "x"},
        {"a\\b": "x"},
        {"a\nb": "x"},
        {"a\x00": "x"},
        {"a": "x\x00"},
        {"a": "\ud800"},
        {"a": "x" * 2_001},
        {"a": ["x"]},
        {"a": {"b": 1}},
        {".".join("abcdefghi"): "x"},
        {f"n{n}": "x" for n in range(11)},
    ],
)
async def test_what_cannot_be_looked_for(sqlite_store: Store, payload: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await sqlite_store.list_runs(RunFilter(payload=payload), 10)


async def test_by_the_fingerprint_that_runs_ended_with(store: Store) -> None:
    mine = fingerprint_of(RunError("ValueError", "no luck"))
    first, second = [await put_and_claim(store) for _ in range(2)]
    await tell(store, first, Outcome.FAILED)
    await tell(store, second, Outcome.TIMED_OUT)
    await tell(store, await put_and_claim(store), Outcome.SUCCEEDED)
    await tell(
        store, await put_and_claim(store), Outcome.FAILED, error='{"type": "Old", "message": "before there were"}'
    )
    assert await found(store, fingerprint=mine) == [second.run_id, first.run_id]
    assert await found(store, fingerprint=mine, states=(RunState.FAILED,)) == [first.run_id]
    assert await found(store, fingerprint="none of them") == []


async def test_of_live_runs_it_is_that_of_the_last_attempt(store: Store) -> None:
    mine = fingerprint_of(RunError("ValueError", "no luck"))
    again = await put_and_claim(store, JobDefinition(name="work"))
    await tell(store, again, Outcome.FAILED, retry_in=60_000_000)
    await put(store)
    assert await found(store, fingerprint=mine) == []
    assert await found(store, fingerprint=mine, states=tuple(LIVE_STATES)) == [again.run_id]
