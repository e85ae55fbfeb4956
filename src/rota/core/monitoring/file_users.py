"""Processes that have the SQLite file open, and whether one of them has another copy of SQLite beside rota's."""

from __future__ import annotations

import msgspec

from rota.core.monitoring.doctor import OK, WARNING, Check, many


class FileUser(msgspec.Struct, frozen=True):
    """A process. `marked`: its connections that are rota's; `others`: what else it has open; `copies`: libraries."""

    pid: int
    program: str
    marked: int
    others: int
    copies: tuple[str, ...] = ()

    @property
    def is_mixed(self) -> bool:
        """Return whether two copies of SQLite may use the file in this process: neither minds the other's locks."""
        return self.marked > 0 and self.others > 0 and bool(self.copies)


class FileUsers(msgspec.Struct, frozen=True):
    """`hidden`: so many processes could not be looked at, because they belong to other users."""

    users: tuple[FileUser, ...]
    hidden: int = 0


def check_users(found: FileUsers | None) -> Check:
    """Warn of another copy of SQLite that has the file open in a process of rota's."""
    if found is None:
        words = "this system does not tell whether another copy of SQLite has the file open"
        return Check(name="sharing", level=OK, words=words)
    facts = {"processes": [msgspec.to_builtins(user) for user in found.users], "hidden": found.hidden}
    mixed = [user for user in found.users if user.is_mixed]
    if mixed:
        named = "; ".join(f"{user.program} (pid {user.pid}) by {', '.join(user.copies)}" for user in mixed)
        words = f"another copy of SQLite seems to have the file open in a process of rota's: {named}"
        hint = "never write to the file by it, and better give it a file of its own: docs/embedding.md"
        return Check(name="sharing", level=WARNING, words=words, hint=hint, facts=facts)
    foreign = [f"{user.program} (pid {user.pid})" for user in found.users if not user.marked]
    beside = f", and so {'do' if foreign[1:] else 'does'} {', '.join(foreign)}" if foreign else ""
    ours = len(found.users) - len(foreign)
    words = f"{many(ours, 'process has', 'processes of rota have')} the file open{beside}"
    if found.hidden:
        words += f"; {many(found.hidden, 'process', 'processes')} of other users cannot be looked at"
    return Check(name="sharing", level=OK, words=words, facts=facts)
