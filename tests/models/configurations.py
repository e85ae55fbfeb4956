"""What is checked of the models: promises that hold, and planted faults, each of which breaks one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec


class Checked(msgspec.Struct, frozen=True):
    """`breaks`: the property that does not hold, "time" if it is about what happens in the end; empty if all hold."""

    name: str
    module: str
    constants: Mapping[str, str]
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()


ALL_KINDS = '{"outside", "conduct", "snooze"}'
LEASE_INVARIANTS = ("FenceOnce", "FencesGrow", "NoStale", "OneHolder", "Attempts", "SkippedNeverBegan")
LEASE_PROPERTIES = ("FinalStays", "NeverFalls")
PLANNER_INVARIANTS = ("OneRow", "NoPhantom", "NotEarly", "NoneMissed")


def lease_constants(faults: int, losses: int = 0, k: int = 0, repair: str = "none", **more: str) -> dict[str, str]:
    constants = {"Workers": "{w1, w2}", "MaxAttempts": "2", "Faults": str(faults), "Losses": str(losses), "K": str(k)}
    return constants | {"Repair": f'"{repair}"', "Kinds": "{}", "Plants": "{}"} | more


RELATION = lease_constants(2, Workers="{w1}", Kinds=ALL_KINDS)
"""One worker is enough: who holds a lease is not part of a step."""


PLANNER_RELATION = {"Planners": "{p1}", "Editors": "{e1}", "Last": "4", "Crashes": "0", "Plants": "{}"}
"""One planner is enough: a transaction that finds nothing to do writes nothing."""


def _lease() -> Iterator[Checked]:
    every = (LEASE_INVARIANTS, (*LEASE_PROPERTIES, "Ends"))
    yield Checked("nothing is lost", "Lease", lease_constants(2, Kinds=ALL_KINDS), *every)
    for plant, breaks in {
        '"byName"': ("NoStale",),
        '"claimKeeps"': ("FenceOnce", "FencesGrow"),
        '"noLease"': ("FinalStays", "NoStale"),  # a fence that was handed over is the same one
        '"noLease", "takenKeeps"': ("NoStale", "FinalStays"),
        '"takenKeeps"': (),  # redundant: a lease that is not there under its fence suffices
        '"cancelFinal"': ("FinalStays",),
        '"outsideAny"': ("NoStale",),
    }.items():
        constants = lease_constants(1, Kinds=ALL_KINDS, Plants=f"{{{plant}}}")
        yield Checked(f"planted: {plant}", "Lease", constants, LEASE_INVARIANTS, LEASE_PROPERTIES, breaks)
    # A lease that its worker does not know of runs out, and is taken away, too.
    for plant, breaks in (('"noReap"', ("time",)), ('"forgets"', ())):
        yield Checked(f"planted: {plant}", "Lease", lease_constants(1, Plants=f"{{{plant}}}"), *every, breaks)


def _losses() -> Iterator[Checked]:
    """What a database may lose: its last commits, once or twice, and the epoch with them."""
    for repair, losses, breaks in (
        ("none", 1, ("FenceOnce",)),
        ("late", 1, ("FenceOnce",)),
        ("counted", 1, ()),
        ("counted", 2, ("FenceOnce",)),
        ("clock", 2, ()),
    ):
        constants = lease_constants(1, losses, 2 + (losses > 1), repair)
        yield Checked(f"{losses} losses, repair: {repair}", "Lease", constants, LEASE_INVARIANTS, (), breaks)
    kinds = lease_constants(1, 1, 2, "clock", Kinds=ALL_KINDS)
    yield Checked("a loss, of all kinds of runs", "Lease", kinds, LEASE_INVARIANTS, (*LEASE_PROPERTIES, "Ends"))
    ever = lease_constants(1, 1, 1, "clock")
    yield Checked("nobody can keep an end that is lost", "Lease", ever, (), ("FinalEver",), ("FinalEver",))


def _planner() -> Iterator[Checked]:
    constants = {"Planners": "{p1, p2}", "Editors": "{e1}", "Last": "3", "Crashes": "1", "Plants": "{}"}
    properties = ("CursorGrows",)
    yield Checked("planned once", "Planner", constants, PLANNER_INVARIANTS, (*properties, "Decided"))
    for plant, breaks in {
        '"noLock"': ("NoPhantom", "CursorGrows"),
        '"readFirst"': ("NoPhantom",),
        '"noSettle"': ("NoneMissed",),
        '"editNoLock"': ("NoPhantom", "NoneMissed", "CursorGrows"),
        '"oldRow"': ("CursorGrows", "NoPhantom"),  # whoever decided less moves the cursor back
        '"noRecheck"': ("NoneMissed",),  # it moves the cursor of a paused schedule past what the resume is to catch up
        '"noUnique"': (),  # redundant with the lock
        '"oldRow", "noUnique"': ("OneRow", "CursorGrows"),
        '"noLock", "noUnique"': ("OneRow", "NoPhantom", "CursorGrows"),
        '"twoCommits"': ("NoneMissed",),
    }.items():
        planted = {**constants, "Plants": f"{{{plant}}}"}
        yield Checked(f"planted: {plant}", "Planner", planted, PLANNER_INVARIANTS, properties, breaks)


CHECKED = [*_lease(), *_losses(), *_planner()]
