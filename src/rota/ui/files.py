"""Files of the built dashboard in `app/`, read once."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}


class Asset(msgspec.Struct, frozen=True):
    """A file of the dashboard, plain and gzipped."""

    content: bytes
    zipped: bytes
    media_type: str


def _app() -> Traversable:
    return resources.files("rota.ui") / "app"


@cache
def page_source() -> str | None:
    """Return the page's HTML, or None if the dashboard is not built."""
    try:
        return (_app() / "index.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


@cache
def assets() -> dict[str, Asset]:
    """Return all assets by name. Looking names up here, not on disk, rules out path traversal."""
    folders = [_app() / "assets", _app()]
    files = {file.name: file for folder in folders if folder.is_dir() for file in folder.iterdir() if file.is_file()}
    return {name: _asset(file) for name, file in files.items() if name.rpartition(".")[2] in _TYPES}


def _asset(file: Traversable) -> Asset:
    content = file.read_bytes()
    return Asset(content, gzip.compress(content, mtime=0), _TYPES[file.name.rpartition(".")[2]])
