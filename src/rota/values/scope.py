"""Scope of a run, (kind, id): the tenant or resource that it is for; `global/global` without one."""

from __future__ import annotations

import msgspec


class Scope(msgspec.Struct, frozen=True, gc=False):
    """Tenant or object that a run is for."""

    kind: str = "global"
    """Kind of the scope, such as `account`."""
    id: str = "global"
    """Id of the scope."""


GLOBAL = Scope()
