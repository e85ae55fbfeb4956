"""Test that no statement takes the rows that it locks again for each row."""

import re

from tests.shape.sql_files import sql_files

TAKEN_IN_PLACE = re.compile(r"\bin \(\s*select\b[^()]*\blimit\b[^()]*(?:for_update|for update)")


def test_what_is_locked_up_to_a_limit_is_taken_once() -> None:
    """PostgreSQL may run a subquery once for each row that it is joined with; and each time it takes others."""
    found = [(file, match[0]) for file, text in sql_files().items() for match in TAKEN_IN_PLACE.finditer(text)]
    assert found == []
