"""Runs of one call that follow each other, or others: refs and parts of ids become ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from rota.core.dependencies import Need, link, parts_of, places_of
from rota.core.model import NewRun

Find = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""From parts of ids to the whole."""


async def linked(
    find: Find, options: Iterable[Mapping[str, Any]], runs: Sequence[NewRun], *, whole: bool = False
) -> list[NewRun]:
    """The same runs, made with these options, each with a later id than those that it follows.

    `whole`: whole ids are looked for, too, because not every run that is there may be followed.
    Locks are taken in the order of ids: an end that ends others in turn takes them in the same order as their own ends.
    """
    places = places_of(given.get("ref") for given in options)
    afters = [run.after for run in runs]
    found = await find(parts_of(afters, places, whole=whole))
    links = link(afters, places, found)
    ids = dict(zip(links.order, sorted(run.id for run in runs), strict=True))
    return [replace(run, id=ids[place], after=_after(links.follows[place], ids)) for place, run in enumerate(runs)]


def _after(follows: Mapping[int | str, int], ids: Mapping[int, str]) -> tuple[Need, ...]:
    return tuple(Need(ids[whom] if isinstance(whom, int) else whom, kind) for whom, kind in follows.items())
