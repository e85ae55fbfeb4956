"""Who writes rows because of what other rows say has a lock first.

A statement of PostgreSQL that has to wait for a row looks again at that row alone when it gets it: whatever a subquery
or another table of the statement said is as old as the beginning of the wait. So the rows are locked by a statement
before it, or by a `with` of its own, or it says why nothing can come of it:

    -- locked by: lock_schedule
    -- unlocked: why that does no harm

Nor does the same statement read a table again beside the `with` that locks it: what is locked is the newest version of
a row, what is read there is the one that was there when the statement began.
"""

import re
from collections.abc import Iterator

import pytest

from rota.store.databases.statements import _BLOCK
from tests.shape.sql_files import sql_files

WRITE = re.compile(r"(?<!do )(?<!for )(?<!for no key )\b(?:update|delete from) (rota_\w+)")
READ = re.compile(r"\b(?:from|join|using)\s+\(?\s*(rota_\w+)|(?:from|using)\s[^()]*?,\s*(rota_\w+)")
COMMON = re.compile(r"\b(\w+)(?:\([^()]*\))? as (?:materialized )?\(")
NAMED = re.compile(r"\b(?:from|join|using|,)\s+(\w+)")
LOCKING = re.compile(
    r"\{for_(?:no_key_)?update|\bfor (?:no key )?update\b|on conflict \([^)]*\) do update|^\s*(?:insert|update|delete) "
)
FOR_UPDATE = re.compile(r"\{for_(?:no_key_)?update|\bfor (?:no key )?update\b")
BY = re.compile(r"^-- locked by: (.+)$", re.MULTILINE)
WHY = re.compile(r"^-- unlocked: \S.{20,}$", re.MULTILINE)


def blocks() -> dict[str, str]:
    """Of PostgreSQL: SQLite has one writer at a time, and nobody waits inside a statement."""
    found: dict[str, str] = {}
    for file, text in sql_files().items():
        if file != "databases/sqlite.sql":
            parts = _BLOCK.split(text)
            found |= dict(zip(parts[2::3], parts[3::3], strict=True))
    return found


def without_comments(text: str) -> str:
    return "\n".join(line.partition("--")[0] for line in text.splitlines())


def enclosed(text: str, start: int) -> str:
    """From there to the parenthesis that closes what is open there, or to the end of the statement."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth < 0 or text[place] == ";":
            return text[start:place]
    return text[start:]


def hazards(block: str) -> Iterator[str]:
    """The tables that a write of this block looks at besides the rows that it locks or is given."""
    text = without_comments(block)
    common = {found[1]: enclosed(text, found.end()) for found in COMMON.finditer(text)}
    for write in WRITE.finditer(text):
        own = re.split(r"\breturning\b", enclosed(text, write.start()))[0][len(write[0]) :]
        read = {name for pair in READ.findall(own) for name in pair if name}
        for name in NAMED.findall(own):
            if name in common and not LOCKING.search(common[name]):
                read |= {table for pair in READ.findall(common[name]) for table in pair if table}
        yield from sorted(read)


def read_again(block: str) -> list[str]:
    """The tables that this block reads besides the `with` that locks rows of them."""
    text = without_comments(block)
    rest, locked = text, set[str]()
    for found in COMMON.finditer(text):
        own = enclosed(text, found.end())
        rest = rest.replace(own, "")
        if FOR_UPDATE.search(own):
            locked |= {name for pair in READ.findall(own) for name in pair if name}
    return sorted(locked & {name for pair in READ.findall(rest) for name in pair if name})


def excused(name: str, block: str, known: dict[str, str]) -> bool:
    by = BY.search(block)
    if by is None:
        return WHY.search(block) is not None
    locks = [lock.strip() for lock in by[1].split(",")]
    return all(lock != name and LOCKING.search(without_comments(known.get(lock, "")).strip()) for lock in locks)


def test_whoever_looks_at_other_rows_has_a_lock_first() -> None:
    known = blocks()
    assert len(known) > 300
    found = {name: list(hazards(block)) for name, block in known.items()}
    assert [name for name, tables in found.items() if tables and not excused(name, known[name], known)] == []
    told = {name for name, block in known.items() if BY.search(block) or WHY.search(block)}
    idle = sorted(name for name in told if not found[name])
    assert idle == [], "they say why, and have no need to"


@pytest.mark.parametrize(
    ("block", "tables"),
    [
        ("update rota_a set x = 1 where id in (select id from rota_b where y = 1);", ["rota_b"]),
        ("update rota_a set x = 1 where id in (select a.id from rota_a a where a.y = 1);", ["rota_a"]),
        ("update rota_a set x = b.x from rota_b b where b.id = rota_a.id;", ["rota_b"]),
        ("update rota_a set x = 1 from {rows id id} join rota_b b on b.id = rows.id where true;", ["rota_b"]),
        ("update rota_a set x = 1 from {rows id id}, rota_b b where b.id = rows.id;", ["rota_b"]),
        ("delete from rota_a where not exists (select 1 from rota_b);", ["rota_b"]),
        ("delete from rota_a a using rota_b b where b.id = a.id;", ["rota_b"]),
        ("with b as (select id from rota_b) delete from rota_a where id in (select id from b);", ["rota_b"]),
        ("with b as (select id from rota_a {for_update_skip}) delete from rota_a where id in (select id from b);", []),
        ("with b as (delete from rota_b returning id) update rota_a set x = 1 from b where b.id = rota_a.id;", []),
        ("update rota_a set x = 1 where id in (select rows.id from {rows id id});", []),
        ("update rota_a set x = 1 where id = :id returning (select y from rota_b);", []),
        ("insert into rota_a select 1 from rota_b on conflict (id) do update set x = 2;", []),
        ("select id from rota_a where id in (select id from rota_b) for update;", []),
    ],
)
def test_what_is_found(block: str, tables: list[str]) -> None:
    assert list(hazards(block)) == tables


def test_what_is_locked_is_not_read_again_as_it_was_before() -> None:
    assert {name: tables for name, block in blocks().items() if (tables := read_again(block))} == {}


@pytest.mark.parametrize(
    ("block", "tables"),
    [
        ("with b as (select id from rota_b {for_update}) select o.x from b join rota_b o on o.id = b.id;", ["rota_b"]),
        ("with b as materialized (select id from rota_b for update skip locked) select x from rota_b, b;", ["rota_b"]),
        ("with b as (select id, x from rota_b {for_update}) select b.x from b join rota_a a on a.id = b.id;", []),
        ("with b as (select id from rota_b) select o.x from b join rota_b o on o.id = b.id;", []),
    ],
)
def test_what_is_read_again(block: str, tables: list[str]) -> None:
    assert read_again(block) == tables
