"""Answers with runs in them, as whoever asks may see them: secrets in payloads are for admins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.requests import Request

from rota.api.identity import identity_of
from rota.core.access import Role
from rota.core.disclosing import Discreet
from rota.core.model import Run


def discretion(request: Request, run: Run) -> Discreet | None:
    """None for those who may see everything; where nobody is asked who they are, that is everybody."""
    return None if identity_of(request).may(Role.ADMIN) else Discreet(run)


def shown(request: Request, run: Run) -> Run:
    discreet = discretion(request, run)
    return run if discreet is None else discreet.run()


def said(request: Request, run: Run, words: object) -> Any:
    """What is said about a run in other shapes than its own."""
    discreet = discretion(request, run)
    return words if discreet is None else discreet.value(msgspec.to_builtins(words))


def all_shown(request: Request, runs: Iterable[Run]) -> list[Run]:
    if identity_of(request).may(Role.ADMIN):
        return list(runs)
    return [shown(request, run) for run in runs]
