"""What the outside of rota knows: what handlers did, and what clients asked and were answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from rota.engine.handlers.context import Context
    from tests.simulation.application.data_jobs import Edition
    from tests.simulation.application.pipelines import Begun
    from tests.simulation.application.steps import Part
    from tests.simulation.clients.dependencies import Edge
    from tests.simulation.world.processes import Process

What = Literal["began", "effect", "returned", "stopped"]
WhatOfStep = Literal["begins", "does", "cut", "gets", "leaves", "finishes"]
"""Its function begins; has its effect; is interrupted, or raises before that. The handler gets its result, or an error;
and means to end its run together with a transaction.
"""


class Deed(msgspec.Struct, frozen=True):
    """Something that a handler did."""

    at: float
    process: str
    worker: str
    what: What
    run_id: str
    fence: int
    attempt: int
    detail: str = ""

    def __str__(self) -> str:
        where, who = f"{self.at:9.3f}s {self.process:9}", f"(fence {self.fence}, attempt {self.attempt})"
        return f"{where} handler {self.what:16} {self.run_id[-6:]} {who} {self.detail}"


class StepDeed(msgspec.Struct, frozen=True):
    """Something that a handler did in a step, or heard of it; `result` is that, or the name of an exception."""

    at: float
    process: str
    worker: str
    what: WhatOfStep
    run_id: str
    job: str
    fence: int
    step: str
    how: str
    result: str = ""

    def __str__(self) -> str:
        where, what = f"{self.at:9.3f}s {self.process:9}", f"{self.what} {self.step}"
        return f"{where} step    {what:16} {self.run_id[-6:]} (fence {self.fence}) {self.how} {self.result}"


class Call(msgspec.Struct):
    """Something that a client asked: `answer` once it got one, `error` if it was refused, neither if nobody knows."""

    at: float
    client: str
    verb: str
    what: str
    answer: Any = None
    error: str | None = None
    answered_at: float | None = None
    options: dict[str, Any] = {}

    @property
    def acknowledged(self) -> bool:
        return self.answered_at is not None and self.error is None

    def __str__(self) -> str:
        end = "unanswered" if self.answered_at is None else f"{self.error or self.answer} at {self.answered_at:.3f}s"
        return f"{self.at:9.3f}s {self.client:9} {self.verb} {self.what} {self.options or ''}: {end}"


class Diary:
    def __init__(self) -> None:
        self.deeds: list[Deed] = []
        self.calls: list[Call] = []
        self.begun: dict[str, int] = {}
        self.steps: list[StepDeed] = []
        self.opening: set[tuple[str, int, str]] = set()  # steps whose functions have not begun yet
        self.said: dict[tuple[str, int], int] = {}
        self.lines: dict[tuple[str, int], int] = {}
        self.ended: set[tuple[str, int]] = set()
        self.families: dict[int, list[Edge]] = {}  # whom a run is to follow, by the number in its payload
        self.heard: dict[tuple[str, int], Any] = {}  # what those outside answered, as handlers got it
        self.parts: list[Begun] = []  # of pipelines
        self.given: dict[tuple[str, int], dict[str, int]] = {}  # by those
        self.editions: list[Edition] = []  # of data jobs, as their handlers began
        self.finished: set[tuple[str, int]] = set()  # by a transaction, and the handler knows that it did

    def began(self, process: Process, ctx: Context, n: int, act: str) -> None:
        self.begun[ctx.run_id] = self.begun.get(ctx.run_id, 0) + 1
        self._note(process, ctx, "began", f"{act} of entry {n}")

    def effect(self, process: Process, ctx: Context) -> None:
        self._note(process, ctx, "effect")

    def returned(self, process: Process, ctx: Context) -> None:
        self.ended.add((ctx.run_id, ctx.fence))
        self._note(process, ctx, "returned")

    def stopped(self, process: Process, ctx: Context, why: str) -> None:
        self.ended.add((ctx.run_id, ctx.fence))
        self._note(process, ctx, "stopped", why)

    def says(self, ctx: Context, lines: int) -> None:
        """How far it is, in numbers that grow and begin anew; and so many lines for its log."""
        key = ctx.run_id, ctx.fence
        self.said[key] = (self.said.get(key, 0) + 1) % 100
        self.lines[key] = self.lines.get(key, 0) + lines

    def step(self, process: Process, ctx: Context, what: WhatOfStep, part: Part, result: str = "") -> None:
        world = process.world
        if process.dead or world.over:
            return
        self.opening.discard((ctx.run_id, ctx.fence, part.id))
        at, who = world.loop.time(), (process.name, process.worker_id)
        deed = StepDeed(at, *who, what, ctx.run_id, ctx.job, ctx.fence, part.id, part.what, result)
        self.steps.append(deed)
        world.checker.did(deed)

    def _note(self, process: Process, ctx: Context, what: What, detail: str = "") -> None:
        if process.dead or process.world.over:
            return
        at = process.world.loop.time()
        deed = Deed(at, process.name, process.worker_id, what, ctx.run_id, ctx.fence, ctx.attempt, detail)
        self.deeds.append(deed)
        if what == "began":
            process.world.checker.began(deed)
