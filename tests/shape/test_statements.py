"""Every statement has a name of its own: only a database's own file may say a shared one anew. None takes what it locks
again for each row.
"""

import re
from collections import Counter
from importlib import resources

from rota.store.databases.statements import _BLOCK, _SHARED

TAKEN_IN_PLACE = re.compile(r"\bin \(\s*select\b[^()]*\blimit\b[^()]*(?:for_update|for update)")


def test_no_two_shared_files_have_a_statement_of_the_same_name() -> None:
    folder = resources.files("rota.store") / "sql"
    names = Counter(name for file in _SHARED for name in _BLOCK.split((folder / file).read_text())[1::2])
    assert [name for name, times in names.items() if times > 1] == []


def test_what_is_locked_up_to_a_limit_is_taken_once() -> None:
    """PostgreSQL may run a subquery once for each row that it is joined with; and each time it takes others."""
    folder = resources.files("rota.store") / "sql"
    texts = {file.name: file.read_text() for file in folder.iterdir() if file.name.endswith(".sql")}
    assert texts
    found = [(file, match[0]) for file, text in texts.items() for match in TAKEN_IN_PLACE.finditer(text)]
    assert found == []
