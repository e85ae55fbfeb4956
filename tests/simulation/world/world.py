"""A world: processes around one database, a script of what they do and what goes wrong, and a checker that watches."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from rota.store.databases import database
from rota.store.databases.database import Hint
from tests.simulation.application.data_jobs import simulated_handlers
from tests.simulation.checks.checker import Checker, Violation
from tests.simulation.clients import commands
from tests.simulation.script.entries import (
    AddSchedule,
    Away,
    ChangeJob,
    Fault,
    Freeze,
    Hold,
    Hush,
    Jump,
    Kill,
    Lose,
    Mark,
    Mute,
    Script,
    Stop,
    Strike,
)
from tests.simulation.world import cleanup
from tests.simulation.world.backends import Backend, Direct
from tests.simulation.world.gate import SLOW, Blow, Writing
from tests.simulation.world.history import Diary
from tests.simulation.world.logs import listening
from tests.simulation.world.loop import Node, Stuck, VirtualLoop
from tests.simulation.world.note_observer import NOTING, NoteObserver
from tests.simulation.world.observer import Change, Observer
from tests.simulation.world.processes import CONFIG, ClientProcess, EngineProcess, Process

P = TypeVar("P", bound=Process)

CLIENTS = ("client-1", "client-2")
SETTLING = 10 * CONFIG.lease.total_seconds()
"""After the last fault, everything has to be final within ten leases."""
_GOING_ON, _GOING_ON_PLANNING = 4.0, 16.0
_DOWN = 2.0
_FAR = 2.0
_HINT_DELAY = 0.03
_LOST_HINTS, _DOUBLED_HINTS = 0.05, 0.05


class DatabaseClock:
    """Decides everything. It may be set."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.jumped = 0

    def micros(self) -> int:
        return self._world.true_micros() + self.jumped

    def monotonic(self) -> float:
        return self._world.loop.time()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Garbage is collected between worlds. Within one, almost everything lives until its end, and to look through it
    again and again would cost a tenth of all."""
    gc.collect(1)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _few_keys() -> Iterator[None]:
    """Claims compare one key besides those that they have slots for: a world's few keys are more than they see."""
    compared, database.COMPARED = database.COMPARED, 1
    try:
        yield
    finally:
        database.COMPARED = compared


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a world: nothing wrong, or the first promise that was broken; and all that happened."""

    seed: int
    violation: Violation | None
    history: list[str]
    runs: int
    operations: int
    faults: int
    ends: dict[str, int]


class World:
    def __init__(self, script: Script, backend: Backend) -> None:
        self.script = script
        self.backend = backend
        self.loop = VirtualLoop(script.seed)  # type: ignore[abstract]
        self.clock = DatabaseClock(self)
        self.observer = Observer(backend)
        self.note_observer = NoteObserver(backend)
        self.diary = Diary()
        self.checker = Checker(self)
        self.processes: dict[str, Process] = {}
        self.changes: list[Change] = []
        self.notes: list[tuple[float, str]] = []
        self.deaths: dict[str, float] = {}
        self.writings: dict[str, list[Writing]] = {}
        self.troubles: list[tuple[float, float]] = []
        self.graver_troubles: list[tuple[float, float]] = []  # than that notes cannot be written for a while
        self.over = False
        self.latest_micros = 0
        self.healed_at: float | None = None
        self.operations = 0
        self.error_groups = 0
        self._all: list[Node] = [self.loop.world]
        self._boots: dict[str, int] = {}
        self._down: dict[str, float] = {}
        self._strikes: dict[str, list[Strike]] = {}
        self._away: dict[str | None, float] = {}
        self._hushed_until = 0.0
        self._listeners: dict[int, tuple[Node, Hint]] = {}
        self._counter = 0
        self._hints = random.Random(f"{script.seed}/hints")

    def true_micros(self) -> int:
        return self.script.start + int(self.loop.time() * 1_000_000)

    def run(self) -> Outcome:
        self.backend.begin(self.clock)
        if any(isinstance(entry, Lose) for entry in self.script.entries):
            self.backend.move()
        random.seed(self.script.seed)  # the jitter of backoffs
        with listening() as complaints, _uncollected(), simulated_handlers(), _few_keys():
            try:
                self.loop.run_until_complete(self.loop.spawn(self.loop.world, self._live()))
            except Stuck as stuck:
                self.checker.violate("P12", str(stuck))
            finally:
                self.over = True
                self.loop.close()
                self._bury()
        if complaints:
            self.checker.violate("engine", "\n".join(complaints[:3]))
        return self._outcome()

    def tasks(self) -> list[asyncio.Task[object]]:
        return [task for process in self._all for task in process.tasks]

    def _bury(self) -> None:
        """Whoever died in the middle of something is laid to rest here, where nobody hears it."""
        for process in self._all:
            for task in process.tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with contextlib.suppress(BaseException), warnings.catch_warnings(action="ignore"):
                        task.get_coro().close()  # what it would see to in the end, it cannot any more
            process.tasks.clear()

    def _outcome(self) -> Outcome:
        ends: dict[str, int] = {}
        for seen in self.observer.runs.values():
            state = seen.end.state if seen.end else "live"
            ends[state] = ends.get(state, 0) + 1
        return Outcome(
            seed=self.script.seed,
            violation=self.checker.violation,
            history=self.history(),
            runs=len(self.observer.runs),
            operations=self.operations,
            faults=self.error_groups,
            ends=dict(sorted(ends.items())),
        )

    def history(self) -> list[str]:
        """Everything that anybody could see, in order."""
        lines = [(at, f"{at:9.3f}s {note}") for at, note in self.notes]
        lines += [(change.at, str(change)) for change in self.changes]
        lines += [(deed.at, str(deed)) for deed in self.diary.deeds]
        lines += [(deed.at, str(deed)) for deed in self.diary.steps]
        lines += [(call.at, str(call)) for call in self.diary.calls]
        return [line for _, line in sorted(lines, key=lambda line: line[0])]

    async def _live(self) -> None:
        for number in range(self.script.engines):
            self._start(f"engine-{number + 1}")
        for name in CLIENTS:
            self._enter(ClientProcess(self, name, self._boot(name)))
        for place, entry in enumerate(self.script.entries):
            await asyncio.sleep(max(0.0, entry.at - self.loop.time()))
            self._happen(entry, place)
        await asyncio.sleep(max(0.0, self.script.span - self.loop.time()))
        self._heal()
        await asyncio.sleep(self._going_on)
        self.checker.before_the_end()
        await self._quieten()
        self.checker.at_the_end()

    @property
    def _going_on(self) -> float:
        planned = any(isinstance(entry, AddSchedule) for entry in self.script.entries)
        lingers = self.script.lingers and planned and self.script.distance <= 1.0
        return _GOING_ON_PLANNING if lingers else _GOING_ON

    def _boot(self, name: str) -> int:
        self._boots[name] = self._boots.get(name, 0) + 1
        return self._boots[name]

    def _start(self, name: str) -> None:
        offset = self.script.offsets[int(name.rpartition("-")[2]) - 1]
        process = EngineProcess(self, name, self._boot(name), offset)
        self._enter(process)
        self.note(f"{process.worker_id} starts")
        self.loop.spawn(process, process.live())

    def _enter(self, process: P) -> P:
        self.processes[process.name] = process
        self._all.append(process)
        return process

    def note(self, text: str) -> None:
        self.notes.append((self.loop.time(), text))

    def _happen(self, entry: object, place: int) -> None:
        match entry:
            case Kill() | Stop() | Freeze() | Away() | Mute() | Strike() | Hush() | Jump():
                self.error_groups += 1
                self._go_wrong(entry)
            case Mark():
                self.backend.mark()
            case Lose():
                self.error_groups += 1
                self._lose()
            case _:
                client = self.client(entry.client)  # type: ignore[attr-defined]
                self.loop.spawn(client, commands.perform(client, entry, place))  # type: ignore[arg-type]

    def client(self, name: str) -> ClientProcess:
        """Of this name; if it is dead, somebody else takes its place."""
        known = self.processes.get(name)
        if known is None or known.dead:
            known = self._enter(ClientProcess(self, name, self._boot(name)))
        assert isinstance(known, ClientProcess)
        return known

    def _go_wrong(self, entry: Fault) -> None:
        now = self.loop.time()
        self.note(f"fault: {entry}")
        if not isinstance(entry, Strike):
            self._trouble(getattr(entry, "span", 0.0), grave=not (isinstance(entry, Mute) and entry.op in NOTING))
        match entry:
            case Kill():
                self._down[entry.process] = entry.down
                self.kill(self.processes[entry.process])
            case Stop():
                process = self.processes[entry.process]
                if isinstance(process, EngineProcess) and process.engine and process.runs:
                    self._down[entry.process] = entry.down
                    self.loop.spawn(process, process.stop(lambda: self._stopped(process, now)))
            case Freeze():
                self._freeze(self.processes[entry.process], entry.span)
            case Away() | Mute():
                self._away[entry.whom] = max(now + entry.span, self._away.get(entry.whom, 0.0))
            case Strike():
                self._strikes.setdefault(entry.process, []).append(entry)
            case Hush():
                self._hushed_until = now + entry.span
            case Jump():
                self.clock.jumped += int(entry.by * 1_000_000)

    def _lose(self) -> None:
        self.note("fault: the database goes on from the last mark")
        self._trouble(0.0)
        self.backend.lose()
        self.backend.move()
        self.observer.look_anew()
        self.note_observer.look_anew()
        self.checker.lost()

    def _freeze(self, process: Process, span: float) -> None:
        process.frozen = True
        process.thaws_at = max(process.thaws_at, self.loop.time() + span)

        def thaw() -> None:
            process.frozen = self.loop.time() < process.thaws_at and self.healed_at is None

        self.later(span, thaw)

    def _stopped(self, process: Process, since: float) -> None:
        self.checker.stopped(process.worker_id, since)
        self.kill(process)

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        self.loop.call_later(seconds, act, context=self.loop.world.context())

    def _heal(self) -> None:
        """From here on nothing goes wrong any more."""
        self.note("all faults are over")
        self._strikes.clear()
        self._away.clear()
        self._hushed_until = 0.0
        self.healed_at = self.loop.time()
        for process in self.processes.values():
            process.frozen = False

    async def _quieten(self) -> None:
        """Schedules stop naming plan times, nothing is held back any more, and everything comes to its end."""
        hand = Process(self, "hand", 1)
        store = Direct(self.backend, self.clock).store(hand.new_id)
        await cleanup.let_go(store, self.script, self.backend.look)
        self.committed(self.loop.world, "quieten")
        assert self.healed_at is not None
        span = SETTLING * max(1.0, self.script.distance / _FAR)  # beyond that, it is the way that takes the time
        while self.observer.live:
            last = max(self.healed_at, *self.deaths.values(), 0.0)
            if self.loop.time() > last + span:
                return
            if self.loop.time() > last + span / 2:
                await cleanup.give_up_what_waits_in_vain(self, store)
            cleanup.help_outside(self)
            await asyncio.sleep(1.0)

    def is_stopping(self, worker: str) -> bool:
        """Or has stopped, as it was asked to."""
        return any(isinstance(one, Process) and one.worker_id == worker and one.stopping for one in self._all)

    def kill(self, node: Node) -> None:
        if node.dead or self.over:
            return
        self.note(f"{node.name} is dead")
        if isinstance(node, Process):
            self.deaths[node.worker_id] = self.loop.time()
        self.loop.kill(node)
        down = self._down.pop(node.name, _DOWN)
        self._trouble(down)
        if node.name.startswith("engine"):
            self.later(down, lambda: self._start(node.name))

    def blow_for(self, node: Node, op: str) -> Blow | None:
        self.operations += 1
        waiting = self._strikes.get(node.name)
        meant = next((one for one in waiting if one.op in ("", op)), None) if waiting else None
        if not waiting or not meant:
            return None
        if meant.skip > 0:
            waiting[waiting.index(meant)] = msgspec.structs.replace(meant, skip=meant.skip - 1)
            return None
        waiting.remove(meant)
        self.note(f"{node.name}: {meant.blow} {op}")
        self._trouble(SLOW if meant.blow == "slow" else 0.0)
        return meant.blow  # type: ignore[return-value]

    def is_away(self, node: Node, op: str) -> bool:
        """Whether the database cannot be reached from a process, at least for this operation."""
        now = self.loop.time()
        return any(self._away.get(name, 0.0) > now for name in (node.name, None, f"{node.name} {op}"))

    def committed(self, node: Node, op: str, asked_at: float | None = None) -> None:
        self.latest_micros = max(self.latest_micros, self.clock.micros())
        worker = node.worker_id if isinstance(node, Process) else ""
        if not self.backend.changed():
            self.checker.tick()
            return
        made, noted = (
            [],
            list(self.note_observer.changes(op)),
        )  # first: a report is compared with these
        for before, after in self.observer.changes():
            change = Change(self.loop.time(), self.clock.micros(), node.name, worker, op, before, after, asked_at)
            self.changes.append(change)
            made.append(change)
            self.checker.changed(change)
        for was, note in noted:
            self.note(f"{worker:9} {op:24} {was or 'nothing'} -> {note or 'nothing'}")
            self.checker.noted(was, note, op, worker)
        self._effected(op, worker, made)
        self.checker.committed(op)

    def _effected(self, op: str, worker: str, made: list[Change]) -> None:
        for effect in self.note_observer.new_effects(op):
            self.note(f"{worker:9} {op:24} {effect}")
            self.checker.did_in_transaction(effect)
        for change in made:
            self.checker.kept(change)

    def is_calm(self, since: float, until: float, *, grave: bool = False) -> bool:
        """Nothing goes wrong meanwhile, or nothing grave, and nobody is far away."""
        troubles = self.graver_troubles if grave else self.troubles
        disturbed = any(begin <= until and since <= end for begin, end in troubles)
        return not disturbed and self.script.distance <= 1.0

    def _trouble(self, span: float = 0.0, *, grave: bool = True) -> None:
        trouble = (self.loop.time(), self.loop.time() + span)
        self.troubles.append(trouble)
        if grave:
            self.graver_troubles.append(trouble)

    @property
    def holds_anything(self) -> bool:
        """Whether a queue or a job is paused, or may be."""
        if any(isinstance(entry, ChangeJob) for entry in self.script.entries):
            return True  # a job that was cancelled stays so
        return self.healed_at is None and any(isinstance(entry, Hold) for entry in self.script.entries)

    def listen(self, node: Node, hint: Hint) -> Callable[[], None]:
        self._counter += 1
        number = self._counter
        self._listeners[number] = (node, hint)

        def stop() -> None:
            self._listeners.pop(number, None)

        return stop

    def hint(self, queue: str | None, rng: random.Random) -> None:
        if not self.script.hints or self.loop.time() < self._hushed_until:
            return
        for node, hint in list(self._listeners.values()):
            draw = rng.random()
            times = 0 if draw < _LOST_HINTS else 2 if draw < _LOST_HINTS + _DOUBLED_HINTS else 1
            for _ in range(times):
                self.loop.call_later(rng.random() * _HINT_DELAY, hint, queue, context=node.context())
