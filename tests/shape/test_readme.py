"""The README says the same in both languages: sections, code, links and tables; and the index of decisions has all."""

import re
from pathlib import Path

import pytest

from tests.support.documents.pages import ROOT

ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh.md"
BLOCK = re.compile(r"^```.*?^```$|^<!-- .*? -->$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"")
DECISIONS = ROOT / "docs" / "decisions"


def sections(text: str) -> list[str]:
    return re.split(r"^(?=##? )", text, flags=re.MULTILINE)


def shape(section: str) -> dict[str, object]:
    """What a translation leaves as it is. Where the other language is, each says in its own way."""
    prose = BLOCK.sub("", section)
    links = {one or other for one, other in LINK.findall(prose)} - {ENGLISH.name, CHINESE.name}
    return {
        "level": section.partition(" ")[0],
        "blocks": BLOCK.findall(section),
        "links": sorted(links),
        "items": len(re.findall(r"^- ", prose, re.MULTILINE)),
        "cells": [line.count(" |") for line in prose.splitlines() if line.startswith("| ")],
    }


def test_both_readmes_are_in_step() -> None:
    english, chinese = (list(map(shape, sections(page.read_text()))) for page in (ENGLISH, CHINESE))
    assert len(english) == len(chinese), "a section is in one of them only"
    for one, other in zip(english, chinese, strict=True):
        assert one == other


@pytest.mark.parametrize(("page", "other"), [(ENGLISH, CHINESE), (CHINESE, ENGLISH)])
def test_each_leads_to_the_other(page: Path, other: Path) -> None:
    assert f"]({other.name})" in sections(page.read_text())[1]


def test_the_index_of_decisions_has_each() -> None:
    text = (DECISIONS / "index.md").read_text()
    assert [page.name for page in sorted(DECISIONS.glob("0*.md")) if f"]({page.name})" not in text] == []


@pytest.mark.parametrize(
    "place",
    [
        "README.md",
        "docs/index.md",
        "zensical.toml",
        "pyproject.toml",
        "src/rota/__init__.py",
        "src/rota/cli/__init__.py",
    ],
)
def test_what_rota_is_for_promises_no_more_than_the_guarantees(place: str) -> None:
    """Every run ends once; its handler may begin again after a lost lease."""
    words = (ROOT / place).read_text(encoding="utf-8")
    assert "un jobs on time, and know what happened." in words
    assert "on time, once" not in words
