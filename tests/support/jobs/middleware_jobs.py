"""A job with middleware that child processes import."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar

from rota import Call, Rota

app = Rota("sqlite:///never-opened.db")
inside: ContextVar[bool] = ContextVar("inside", default=False)
called: ContextVar[tuple[str, str]] = ContextVar("called")


@app.around
def surroundings() -> Iterator[None]:
    before = inside.set(True)
    yield
    inside.reset(before)


@app.around
def named(call: Call) -> Iterator[None]:
    before = called.set((call.job, call.run_id))
    yield
    called.reset(before)


@app.job(isolation="process")
def called_as() -> tuple[str, str]:
    return called.get()


@app.job(isolation="process")
def is_inside() -> bool:
    return inside.get()


def is_inside_too() -> bool:
    return inside.get()


declared_below = app.job(isolation="process")(is_inside_too)
