"""Long forms: more seeds and repetitions than an ordinary run needs, for `pytest --long`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def with_long_form(ordinary: Iterable[object], long: Iterable[object]) -> list[object]:
    """Build a list of parameters whose second part runs with `--long` only."""
    return [*ordinary, *(pytest.param(one, marks=pytest.mark.long) for one in long)]
