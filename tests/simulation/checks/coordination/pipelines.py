"""Pipelines: each part once it is its turn, with what the one before it gave, and not again once it is done (P16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from tests.simulation.application.pipelines import PIPELINES, STEPS, Begun
from tests.simulation.world.observer import Change, Finding

if TYPE_CHECKING:
    from tests.simulation.world.world import World

PIPELINE = "pipeline"
_DONE = "select id, fence, result, kept_from from rota_step where run_id = '{}' and state = 'succeeded' order by id"

Done = dict[str, tuple[int, str]]


class PipelineChecks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._done: dict[str, Done] = {}
        self._judged = 0

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.what_is_done_is_done]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        return [self.each_in_its_turn]

    def each_in_its_turn(self) -> Iterator[Finding]:
        begun = self._world.diary.parts
        for one in begun[self._judged :]:
            if one.current:
                yield from _judged(one)
        self._judged = len(begun)

    def what_is_done_is_done(self, change: Change) -> Iterator[Finding]:
        """What is recorded of a part is what its handler gave, and stays."""
        seen = change.after
        if seen is None or seen.job not in PIPELINES:
            return
        before, done = self._done.get(seen.id, {}), Done()
        for step, fence, result, kept_from in self._world.backend.look(_DONE.format(seen.id)):
            done[step] = (fence, result)
            given = self._world.diary.given.get((seen.id, fence))
            if kept_from is None and step not in before and msgspec.json.decode(result) != given:
                yield PIPELINE, f"part {step} is recorded with {result}, and gave {given}: {seen}"
        self._done[seen.id] = done
        for step, what in before.items():
            if done.get(step) != what:
                yield "P16", f"part {step} was done with {what}, and is now {done.get(step)}: {seen}"

    def ends_with_its_parts(self) -> Iterator[Finding]:
        """It has succeeded if all of them have, and only then."""
        for seen in self._world.observer.runs.values():
            if seen.end is None or seen.job not in PIPELINES:
                continue
            done = [step for step in STEPS if step in self._done.get(seen.id, {})]
            if (seen.end.state == "succeeded") != (len(done) == len(STEPS)):
                yield PIPELINE, f"ended with {done} done: {seen}"


def _judged(one: Begun) -> Iterator[Finding]:
    step, earlier = STEPS[one.place], STEPS[: one.place]
    states = {id: state for id, (state, _) in one.recorded.items()}
    if one.job != step:
        yield PIPELINE, f"part {step} is done by the handler of {one.job}: {one}"
    if states.get(step) == "succeeded":
        yield "P16", f"part {step} is done, and begun again: {one}"
    missing = [id for id in earlier if states.get(id) != "succeeded"]
    if missing:
        yield PIPELINE, f"part {step} is begun before {missing[0]} is done: {one}"
    elif earlier and one.got != one.recorded[earlier[-1]][1]:
        yield PIPELINE, f"part {step} was given {one.got}: {one}"
