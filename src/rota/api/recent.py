"""The last runs of schedules, beside what else is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from rota.client import Client
from rota.core.recent import MOST_RECENT
from rota.core.schedules import Schedule

RecentCount = Annotated[int, msgspec.Meta(ge=1, le=MOST_RECENT, description="Also the last so many runs of each")]


class RecentQuery(msgspec.Struct):
    recent: RecentCount | None = None


async def recent_of(client: Client, schedules: Sequence[Schedule], limit: int | None) -> dict[str, dict[str, Any]]:
    """By name; nothing, unless they are asked for."""
    if limit is None:
        return {}
    found = await client.schedules.recent([schedule.name for schedule in schedules], limit)
    return {name: msgspec.structs.asdict(one) for name, one in found.items()}
