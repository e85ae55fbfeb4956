"""Every route that a view declares, with an object behind it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

VIEWS = Path(__file__).parents[2] / "web" / "src" / "views"


def ids() -> list[str]:
    """In the order of the rail."""
    listed = re.search(r"views: View\[\] = \[([^\]]+)\]", (VIEWS / "index.ts").read_text(encoding="utf-8"))
    assert listed is not None
    return [name.strip() for name in listed[1].split(",")]


def patterns(view: str) -> list[str]:
    """`["/runs", "/runs/:id"]`: the first is where the rail leads."""
    return re.findall(r'path: "([^"]+)"', (VIEWS / view / "index.ts").read_text(encoding="utf-8"))


def filled(view: str, names: dict[str, str]) -> list[str]:
    """Those of a view about one of its things, which is that of `names`."""
    name = quote(names.get(view, "nothing"), safe="")
    return [re.sub(r":(id|name|kind)\b", lambda _: name, path) for path in patterns(view)[1:]]
