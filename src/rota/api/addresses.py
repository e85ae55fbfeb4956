"""Where our own pages and resources are, also when another application has mounted us below a path of its own."""

from __future__ import annotations

from contextvars import ContextVar

_root: ContextVar[str] = ContextVar("rota_root", default="")


def mounted_at(root: str) -> None:
    """For the request that is being answered."""
    _root.set(root.rstrip("/"))


def own_path() -> str:
    """Where all of ours is, and nobody else's: what a cookie is for."""
    return _root.get() or "/"


def at(path: str) -> str:
    """`path` as a browser has to ask for it."""
    return _root.get() + path
