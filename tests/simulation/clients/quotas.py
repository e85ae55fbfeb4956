"""Quotas, as clients set and drop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.clients.calls import ask

if TYPE_CHECKING:
    from tests.simulation.script.entries import SetQuota
    from tests.simulation.world.processes import ClientProcess

QUOTA = "quota"


async def set_quota(process: ClientProcess, entry: SetQuota) -> None:
    quotas = process.client.quotas

    async def act() -> str:
        if entry.options:
            await quotas.update(entry.kind, entry.id, **entry.options, actor=process.name)
        else:
            await quotas.delete(entry.kind, entry.id, actor=process.name)
        return "in force"

    what = entry.kind if entry.id is None else f"{entry.kind}/{entry.id}"
    options = {"kind": entry.kind, "id": entry.id, "quota": entry.options}
    await ask(process, QUOTA, what, act, insist=True, options=options)
