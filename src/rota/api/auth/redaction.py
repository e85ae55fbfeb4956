"""Answers with runs in them, as whoever asks may see them: secrets in payloads are for admins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.operations.response import answer, at
from rota.core.access.roles import Role
from rota.core.runs.dependencies import unnamed
from rota.core.runs.redaction import Discreet
from rota.core.runs.run import Run


def discretion(request: Request, run: Run) -> Discreet | None:
    """None for those who may see everything; where nobody is asked who they are, that is everybody."""
    return None if identity_of(request).may(Role.ADMIN) else Discreet(run)


def shown(request: Request, run: Run) -> Run:
    if run.reason and identity_of(request).scope is not None:
        run = msgspec.structs.replace(run, reason=unnamed(run.reason))
    discreet = discretion(request, run)
    return run if discreet is None else discreet.run()


def said(request: Request, run: Run, words: object) -> Any:
    """What is said about a run in other shapes than its own."""
    if identity_of(request).scope is not None:
        words = _unnamed(msgspec.to_builtins(words))
    discreet = discretion(request, run)
    return words if discreet is None else discreet.value(msgspec.to_builtins(words))


def all_shown(request: Request, runs: Iterable[Run]) -> list[Run]:
    asks = identity_of(request)
    if asks.may(Role.ADMIN) and asks.scope is None:
        return list(runs)
    return [shown(request, run) for run in runs]


def _unnamed(words: Any) -> Any:
    """A run may follow one of another scope, if somebody who sees both has said so: its id is not for everybody."""
    match words:
        case str():
            return unnamed(words)
        case dict():
            return {name: _unnamed(value) for name, value in words.items()}
        case list() | tuple():
            return [_unnamed(value) for value in words]
        case _:
            return words


def created(request: Request, run: Run, *, new: bool = True) -> Response:
    return answer(shown(request, run), 201 if new else 200, {"location": at(f"/api/v1/runs/{run.id}")})
