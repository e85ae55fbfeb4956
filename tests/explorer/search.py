"""Which orders of steps are played: all with few preemptions, one of those that only swap independent steps.

Depth first, without keeping states: each play begins anew, follows the choices made so far, and goes on as the first
order that is left. A *preemption* takes the turn from somebody who could go on. Two steps whose footprints do not touch
need one order only: who was played first is put to sleep for the other branch, until a step is made that it may not be
swapped with (sleep sets). Where a choice costs no preemption, nobody is put to sleep, since the other order might cost
one more than is allowed.
"""

from __future__ import annotations

import msgspec

from tests.explorer.actors import Step
from tests.explorer.play import Choice


class Diverged(Exception):
    """The same choices led to another place: something is not determined by them."""


class _Node(msgspec.Struct):
    choice: Choice
    spent: int
    asleep: dict[str, Step]
    chosen: str
    tried: list[str] = []

    @property
    def is_free(self) -> bool:
        return self.choice.last not in self.choice.enabled

    def cost(self, name: str) -> int:
        return 0 if self.is_free or name == self.choice.last else 1


class Search:
    """Call `choose` for each choice of a play, and `next` after it; `over` once all orders were played.

    `atomic`: transactions are not taken apart, and their number of orders is not bounded by preemptions.
    """

    def __init__(self, preemptions: int, *, atomic: bool = False, asleep: bool = True) -> None:
        self.over = False
        self.cut = False
        """The play that was just made is, from some place on, one that was played before."""
        self._preemptions = preemptions
        self._atomic = atomic
        self._sleeps = asleep and not atomic
        self._path: list[_Node] = []
        self._place = 0

    def choose(self, choice: Choice) -> str:
        place, self._place = self._place, self._place + 1
        if place < len(self._path):
            node = self._path[place]
            if node.choice.enabled.keys() != choice.enabled.keys() or node.choice.last != choice.last:
                raise Diverged(f"step {place}: {sorted(node.choice.enabled)} and {sorted(choice.enabled)}")
            return node.chosen
        if self.cut:
            return self._usual(choice)
        node = self._reached(choice)
        left = self._left(node)
        if not left:
            self.cut = True
            return self._usual(choice)
        node.chosen = left[0]
        self._path.append(node)
        return node.chosen

    def next(self) -> None:
        """Go back to the last choice that has another way."""
        self._place, self.cut = 0, False
        while self._path:
            node = self._path[-1]
            node.tried.append(node.chosen)
            left = self._left(node)
            if left:
                node.chosen = left[0]
                return
            self._path.pop()
        self.over = True

    def _usual(self, choice: Choice) -> str:
        return choice.last if choice.last in choice.enabled else min(choice.enabled)

    def _left(self, node: _Node) -> list[str]:
        names = sorted(node.choice.enabled, key=lambda name: (name != node.choice.last, name))
        if self._atomic:
            held = [name for name in names if name == node.choice.last and node.choice.within]
            names = held or names
        return [
            name
            for name in names
            if name not in node.tried
            and name not in node.asleep
            and (self._atomic or node.spent + node.cost(name) <= self._preemptions)
        ]

    def _reached(self, choice: Choice) -> _Node:
        if not self._path:
            return _Node(choice, 0, {}, "")
        before = self._path[-1]
        spent = before.spent + before.cost(before.chosen)
        return _Node(choice, spent, self._asleep_after(before) if self._sleeps else {}, "")

    def _asleep_after(self, node: _Node) -> dict[str, Step]:
        """Keep asleep those whose step may be swapped with the one that was made, and with those that wait."""
        made = [node.choice.enabled[node.chosen], *node.choice.waiting.values()]
        asleep = dict(node.asleep)
        if not node.is_free:
            asleep |= {name: node.choice.enabled[name] for name in node.tried}
        return {
            name: step
            for name, step in asleep.items()
            if name != node.chosen and not any(step.footprint.touches(other.footprint) for other in made)
        }
