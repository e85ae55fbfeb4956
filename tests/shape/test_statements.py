"""Every statement has a name of its own: only a database's own file may say a shared one anew."""

from collections import Counter
from importlib import resources

from rota.store.statements import _BLOCK, _SHARED


def test_no_two_shared_files_have_a_statement_of_the_same_name() -> None:
    folder = resources.files("rota.store") / "sql"
    names = Counter(name for file in _SHARED for name in _BLOCK.split((folder / file).read_text())[1::2])
    assert [name for name, times in names.items() if times > 1] == []
