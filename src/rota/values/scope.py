"""Whom a run is for: (kind, id); `global/global` when nobody in particular."""

from __future__ import annotations

import msgspec


class Scope(msgspec.Struct, frozen=True, gc=False):
    kind: str = "global"
    id: str = "global"


GLOBAL = Scope()
