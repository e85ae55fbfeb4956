"""Writes docs/reference/ from the program itself, so that nothing in it can be forgotten or out of date, and
src/rota/api/docs/raised.json, from which the OpenAPI document has the codes of problems.

python -m tools.reference            write
python -m tools.reference --check    say which pages are not what would be written; exit code 1 if there are any
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src")]

from tools.reference import cli, problems, python, rest, settings, states  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "python.md": python.page,
    "cli.md": cli.page,
    "rest.md": rest.page,
    "configuration.md": settings.configuration,
    "errors.md": settings.errors,
    "metrics.md": settings.metrics,
    "states.md": states.page,
    "states.svg": states.drawing,
}
NOTE = (
    "<!-- order: {order} -->\n"
    "<!-- written: by tools/reference, from the program; `python3 dev.py docs` writes it again -->\n\n"
)


def main(arguments: list[str]) -> int:
    raised = problems.written()
    if raised != read(problems.TARGET):
        if arguments == ["--check"]:
            print(f"{problems.TARGET.name} is stale: `python3 dev.py docs` writes it again")
            return 1
        problems.TARGET.write_text(raised, encoding="utf-8")
    wanted = {name: text(order, name) for order, name in enumerate(PAGES, start=1)}
    stale = [name for name, content in wanted.items() if content != read(FOLDER / name)]
    stale += [path.name for path in FOLDER.iterdir() if path.name not in wanted] if FOLDER.exists() else []
    if arguments == ["--check"]:
        for name in stale:
            print(f"docs/reference/{name} is stale: `python3 dev.py docs` writes it again")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        path = FOLDER / name
        path.write_text(wanted[name], encoding="utf-8") if name in wanted else path.unlink()
    return 0


def text(order: int, name: str) -> str:
    content = PAGES[name]()
    if not name.endswith(".md"):
        return content
    title, _, rest = content.partition("\n\n")
    return f"{title}\n\n{NOTE.format(order=order)}{rest.rstrip()}\n"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
