"""Pages "coming from" another scheduler show the same five programs, which `tests/shape/test_snippets.py` runs."""

import re
from pathlib import Path

import pytest

from rota.cli import root
from tests.support.documents.pages import ROOT

OTHERS = ("comparison", "vocabularies")  # about many at once
PAGES = [path for path in sorted((ROOT / "docs" / "coming-from").glob("*.md")) if path.stem not in OTHERS]
IN_ROTA = re.compile(r"^```python file=programs\.py\n.*?^```", re.MULTILINE | re.DOTALL)
PROGRAMS = ("sync", "report", "fetch", "rebuild", "launch")


def section(page: Path) -> str:
    found = re.search(r"^## Five programs side by side\n(.*?)^## ", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page.name} has no five programs"
    return found[1]


def test_all_pages_have_the_same_programs_in_rota() -> None:
    blocks = {page.stem: IN_ROTA.findall(section(page)) for page in PAGES}
    assert all(len(found) == 1 for found in blocks.values())
    assert len({found[0] for found in blocks.values()}) == 1
    code = next(iter(blocks.values()))[0]
    assert all(f"def {name}(" in code and f'app.schedule("{name}"' in code for name in PROGRAMS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_them_in_the_other_scheduler(page: Path) -> None:
    other = IN_ROTA.sub("", section(page))
    assert [name for name in PROGRAMS if name not in other] == []
    assert "What " in page.read_text()  # what is different, or behaves differently


def test_every_importer_has_a_page() -> None:
    texts = "".join(page.read_text() for page in ROOT.glob("docs/coming-from/*.md"))
    importers = root.commands["import"].commands  # type: ignore[attr-defined]
    assert [name for name in importers if f"rota import {name}" not in texts] == []
