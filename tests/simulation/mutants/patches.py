"""A planted bug: what is written instead of what, in a copy of rota's source."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

import rota

SOURCE = Path(rota.__file__).parent


class Edit(msgspec.Struct, frozen=True):
    """`file` is below rota's package."""

    file: str
    old: str
    new: str


class Planted(msgspec.Struct, frozen=True):
    """`promise` is the one that it should break. More than one edit: what rota does about it twice, is undone twice.

    `themes`: of the worlds where it is looked for first.
    """

    name: str
    promise: str
    edits: tuple[Edit, ...]
    themes: tuple[str, ...] = ()


def planted(name: str, promise: str, file: str, old: str, new: str) -> Planted:
    return Planted(name, promise, (Edit(file, old, new),))


def seen_in(themes: str, bugs: Sequence[Planted]) -> Iterator[Planted]:
    """These bugs, with the themes where they are likely to be seen."""
    return (msgspec.structs.replace(bug, themes=tuple(themes.split())) for bug in bugs)


class DoesNotApply(Exception):
    """The source has changed since the bug was planted: it is to be planted anew."""

    def __init__(self, edit: Edit, times: int) -> None:
        super().__init__(f"{edit.file} has this {times} times instead of once: {edit.old}")


def edited(edit: Edit, source: Path = SOURCE) -> str:
    """The file's text with the bug in it."""
    text = (source / edit.file).read_text(encoding="utf-8")
    times = text.count(edit.old)
    if times != 1:
        raise DoesNotApply(edit, times)
    return text.replace(edit.old, edit.new)


def copy_source(folder: Path) -> Path:
    """With what is compiled already, which is good as long as a file's time and size are the same."""
    copy = folder / "rota"
    shutil.copytree(SOURCE, copy)
    return copy


def plant(bug: Planted | None, folder: Path) -> None:
    """Put a copy of rota into a folder, with this bug in it; None: as it is."""
    copy = copy_source(folder)
    for edit in bug.edits if bug else ():
        path = copy / edit.file
        path.write_text(edited(edit, copy), encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()  # written within the same second, and of the same length, it would count as current
