"""Families of runs on both databases: what is linked, how much of it is shown, and how it is found."""

import msgspec
import pytest

from rota.core.ledger.family import Family
from rota.core.states import Outcome
from rota.errors import UnknownRun
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.scope import Scope
from tests.support.databases.query_plans import explained
from tests.support.runs.runs import claim, put, tell

GONE = "01a1e462-2641-73e0-be10-000000000000"


def links(family: Family) -> set[tuple[str, str, str]]:
    return {(link.from_id, link.to_id, link.kind) for link in family.links}


def cut(family: Family) -> list[str]:
    return [run.id for run in family.items if run.more]


async def chain(store: Store, length: int) -> list[str]:
    """Enqueue runs that follow each other."""
    ids = [await put(store)]
    while len(ids) < length:
        ids.append(await put(store, after=[ids[-1]]))
    return ids


async def retry(store: Store, run_id: str) -> str:
    """Retry a run that has ended."""
    copy = (await store.retry_facts(run_id)).copy
    return (await store.enqueue_retry(msgspec.structs.replace(copy, id=store.new_id(), retry_of=run_id))).id


async def test_from_any_run_the_whole_family_is_found(store: Store) -> None:
    first = await put(store)
    left, right = await put(store, after=[first]), await put(store, after=[first])
    last = await put(store, after=[left, right])
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.FAILED)
    again = await retry(store, first)
    expected = {
        *((first, left, "dependency"), (first, right, "dependency"), (left, last, "dependency")),
        *((right, last, "dependency"), (first, again, "retry")),
    }
    for run_id in (first, left, right, last, again):
        family = await store.families.of(run_id, 100)
        assert links(family) == expected
        assert {run.id for run in family.items} == {first, left, right, last, again}
        assert (family.items[0].id, family.truncated, cut(family)) == (run_id, False, [])
    states = {run.id: (run.job, str(run.state), run.attempt) for run in (await store.families.of(first, 9)).items}
    assert (states[first], states[last], states[again]) == (
        ("work", "failed", 1),
        ("work", "skipped", 0),
        ("work", "queued", 0),
    )
    assert [run.id for run in (await store.families.of(await put(store), 9)).items] != [first]


async def test_only_so_many_runs_and_where_others_are(store: Store) -> None:
    ids = await chain(store, 5)
    family = await store.families.of(ids[2], 3)
    assert (family.items[0].id, {run.id for run in family.items}) == (ids[2], {*ids[1:4]})
    assert (family.truncated, sorted(cut(family))) == (True, sorted([ids[1], ids[3]]))
    hub = await put(store)
    for _ in range(6):
        await put(store, after=[hub])
    family = await store.families.of(hub, 4)
    assert (len(family.items), len(family.links), family.truncated, cut(family)) == (4, 3, True, [hub])
    whole = await store.families.of(hub, 7)
    assert (len(whole.items), len(whole.links), whole.truncated) == (7, 6, False)


async def test_a_long_chain_is_cut(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.store.ledger.family._MOST_ROUNDS", 3)
    ids = await chain(store, 6)
    family = await store.families.of(ids[0], 100)
    assert ([run.id for run in family.items], cut(family), family.truncated) == (ids[:4], [ids[3]], True)


async def test_within_a_scope_others_are_not_there(store: Store) -> None:
    mine, other = Scope("tenant", "1"), Scope("tenant", "2")
    first = await put(store, scope=("tenant", "1"))
    foreign = await put(store, scope=("tenant", "2"), after=[first])
    second = await put(store, scope=("tenant", "1"), after=[foreign])
    family = await store.families.of(first, 9, mine)
    assert ([run.id for run in family.items], list(family.links), family.truncated) == ([first], [], False)
    assert len((await store.families.of(first, 9)).items) == 3
    with pytest.raises(UnknownRun):
        await store.families.of(second, 9, other)


async def test_of_a_pruned_run_only_the_id_is_known(store: Store) -> None:
    first, second = await chain(store, 2)

    async def forget(tx: Tx) -> None:
        sql = "update rota_followed set after_id = :gone where run_id = :id returning run_id"
        await tx.fetch_sql(sql, gone=GONE, id=second)

    await store.database.transact(forget)
    family = await store.families.of(second, 9)
    assert [(run.id, run.job, run.state) for run in family.items[1:]] == [(GONE, None, None)]
    assert links(family) == {(GONE, second, "dependency")}
    assert [run.id for run in (await store.families.of(first, 9)).items] == [first]


async def test_every_side_walks_an_index(store: Store) -> None:
    plan = await explained(store, "family_links", [(GONE,)], most=9)
    members = await explained(store, "family_runs", [(GONE,)])
    for text in (plan, members):
        assert "Seq Scan on rota_" not in text
        assert not [
            line
            for line in text.splitlines()
            if line.lstrip("- |").startswith(("SCAN rota_", "SCAN f", "SCAN r ", "SCAN n"))
        ]
