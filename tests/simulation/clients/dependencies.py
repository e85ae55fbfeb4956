"""Runs that follow others, as clients ask for them, and what the diary keeps of who is to follow whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.client.client import Order
from rota.core.runs.dependencies import Follows
from tests.simulation.clients.calls import ask, pick

if TYPE_CHECKING:
    from tests.simulation.script.entries import Family, Link, Restrict
    from tests.simulation.world.processes import ClientProcess


class Edge(msgspec.Struct, frozen=True):
    """`first`: the number in the payload of a run of the same call, or the id of one that was there."""

    first: int | str
    on: str
    otherwise: str


async def enqueue_family(process: ClientProcess, entry: Family, place: int) -> None:
    client, orders, what = process.client, list[Order](), list[str]()
    for number, member in enumerate(entry.members):
        follows = [(link, first) for link in member.after if (first := _first(process, link, place)) is not None]
        edges = [Edge(first, link.on, link.otherwise) for link, first in follows]
        process.world.diary.families[place * 100 + number] = edges
        options: dict[str, Any] = {**member.options, "ref": f"m{number}"}
        if edges:
            options["after"] = [_named(edge, place) for edge in edges]
        if entry.keyed:
            options["idempotency_key"] = f"family-{place}-{number}"
        orders.append(Order(member.job, {"n": place * 100 + number, "acts": member.acts}, options))
        what.append(f"m{number} {member.job} {member.acts} after {[_brief(edge) for edge in edges]}")

    async def act() -> list[tuple[str, bool]]:
        return [(one.id, one.created) for one in await client.enqueue_many(orders)]

    await ask(process, "enqueue", "; ".join(what), act, insist=entry.keyed)


def _first(process: ClientProcess, link: Link, place: int) -> int | str | None:
    if link.place is not None:
        return place * 100 + link.place
    return pick(process.world, link.pick, final=link.pick < 0.3)


def _named(edge: Edge, place: int) -> Follows:
    run = f"m{edge.first - place * 100}" if isinstance(edge.first, int) else edge.first
    return Follows(run, on=edge.on, otherwise=edge.otherwise)  # type: ignore[arg-type]


def _brief(edge: Edge) -> str:
    first = f"m{edge.first % 100}" if isinstance(edge.first, int) else edge.first[-6:]
    return f"{first} {edge.on}" + ("" if edge.otherwise == "skip" else f" or {edge.otherwise}")


async def restrict(process: ClientProcess, entry: Restrict) -> None:
    """One that is no replica: those go with theirs."""
    run_id = pick(process.world, entry.pick, final=False, own=True)
    if run_id is not None:

        async def act() -> str:
            return (await process.client.restrict(run_id, entry.names or None, actor=process.name)).id

        await ask(process, "restrict", run_id, act, insist=True, options={"names": entry.names})
