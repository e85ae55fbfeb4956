"""Names of packages that are imported at their first use, because few programs need them."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any


def late_name(package: dict[str, Any], homes: Mapping[str, Sequence[str]], name: str) -> object:
    """Import a name of a package from its home, a module. `package`: its `globals()`, which keep the name."""
    for home, names in homes.items():
        if name in names:
            value = package[name] = getattr(importlib.import_module(home), name)
            return value
    raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
