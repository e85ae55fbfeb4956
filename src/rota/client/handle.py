"""`Handle`: an enqueued run, and the client's verbs about it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, TypeVar, overload

from rota.core.progress.notes import LogLine, Progress
from rota.core.runs.run import Enqueued, Run
from rota.core.states import RunState
from rota.values.durations import Duration
from rota.values.json import write_as

if TYPE_CHECKING:
    from rota.client.own_verbs import OwnVerbs

_ELSEWHERE = {
    **dict.fromkeys(("get", "join", "get_result"), "`result(timeout=…)`, or `await handle`"),
    **dict.fromkeys(("ready", "successful", "failed", "is_finished", "done", "state"), "`status()`"),
    **dict.fromkeys(("revoke", "abort", "forget"), "`cancel()`"),
    "refresh": "`run()`",
    "wait_result": "`result(timeout=…)`",
}
"""Methods of results in other libraries, and what they are called here."""

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


def lacks(owner: object, name: str, word: str, elsewhere: Mapping[str, str]) -> AttributeError:
    """Return the error for an attribute that an object lacks, with rota's word for what other libraries call so."""
    hint = f"; rota's word is {elsewhere[name]}" if name in elsewhere else ""
    return AttributeError(f"{word} has no attribute {name!r}{hint}", name=name, obj=owner)


class Door(Protocol):
    """Way to a client: an app, or a client itself."""

    def _wait_for(self, verb: Callable[[Any], Coroutine[Any, Any, T]], /) -> T:
        """Run a verb of the client and wait for its result."""
        ...

    async def _await(self, verb: Callable[[Any], Coroutine[Any, Any, T]], /) -> T:
        """Run a verb of the client, in async code."""
        ...


class Handle(Enqueued, Generic[R_co], frozen=True, gc=True, dict=True, eq=False):
    """An enqueued run: its id, and the client's verbs about it.

    `await handle` waits for the result in async code; the verbs with an `a` in front are those for async code.
    """

    # No field: a handle that a job or a step returns is stored as the data of `Enqueued`, which an app is none of.
    door: ClassVar[Any] = None
    """The app or the client that enqueued it: a `Door`."""

    if not TYPE_CHECKING:  # for type checkers, there are no such names

        def __getattr__(self, name: str) -> NoReturn:
            raise lacks(self, name, "a handle", _ELSEWHERE)

    def __repr__(self) -> str:
        return f"<rota run {self.id}>"

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __copy__(self) -> Handle[R_co]:
        return self  # nobody can change it

    def __reduce__(self) -> tuple[Callable[..., Handle[R_co]], tuple[Any, ...]]:
        return handle_by, (self.door, self.id, self.created, self.created_micros, self.run_micros)

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aresult().__await__()

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the run and return its result, as the job's function returned it.

        Raise `RunFailed` if it did not succeed, and `StillRunning` after `timeout`.
        """
        result: R_co = self._call(lambda client: client.result(self.id, timeout))
        return result

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """Wait for the run and return its result, in async code."""
        result: R_co = await self._ask(lambda client: client.result(self.id, timeout))
        return result

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until the run is final and return it, however it ended; raise `StillRunning` after `timeout`."""
        return self._call(lambda client: client.wait(self.id, timeout))

    async def await_(self, timeout: Duration | None = None) -> Run:
        """Wait until the run is final and return it, in async code."""
        return await self._ask(lambda client: client.wait(self.id, timeout))

    def run(self) -> Run:
        """Return the run as it is now."""
        return self._call(lambda client: client.get(self.id))

    async def arun(self) -> Run:
        """Return the run as it is now, in async code."""
        return await self._ask(lambda client: client.get(self.id))

    def status(self) -> RunState:
        """Return the run's state now."""
        return self._call(lambda client: client.get(self.id, steps=False)).state

    async def astatus(self) -> RunState:
        """Return the run's state now, in async code."""
        return (await self._ask(lambda client: client.get(self.id, steps=False))).state

    def progress(self) -> Progress:
        """Return the progress that the run has reported."""
        return self._call(lambda client: client.progress(self.id))

    async def aprogress(self) -> Progress:
        """Return the progress that the run has reported, in async code."""
        return await self._ask(lambda client: client.progress(self.id))

    def logs(self, *, limit: int = 1_000, cursor: str | None = None, tail: int | None = None) -> Sequence[LogLine]:
        """List its log lines, oldest first, one page at a time; `tail`: begin so many before the end."""
        return self._call(lambda client: client.logs(self.id, limit=limit, cursor=cursor, tail=tail))

    async def alogs(
        self, *, limit: int = 1_000, cursor: str | None = None, tail: int | None = None
    ) -> Sequence[LogLine]:
        """List its log lines, in async code."""
        return await self._ask(lambda client: client.logs(self.id, limit=limit, cursor=cursor, tail=tail))

    def cancel(self, *, reason: str | None = None, actor: str | None = None) -> Run:
        """Cancel the run, and return it: `cancelled`, or `cancelling` while its worker has its grace period."""
        return self._call(lambda client: client.cancel(self.id, reason=reason, actor=actor))

    async def acancel(self, *, reason: str | None = None, actor: str | None = None) -> Run:
        """Cancel the run, in async code."""
        return await self._ask(lambda client: client.cancel(self.id, reason=reason, actor=actor))

    def _call(self, verb: Callable[[OwnVerbs], Coroutine[Any, Any, T]]) -> T:
        door: Door = self.door
        return door._wait_for(verb)

    async def _ask(self, verb: Callable[[OwnVerbs], Coroutine[Any, Any, T]]) -> T:
        door: Door = self.door
        return await door._await(verb)


def handle_by(
    door: Any, id: str, created: bool, created_micros: int | None = None, run_micros: int | None = None
) -> Handle[Any]:
    """Return a handle that asks by this `Door`."""
    handle: Handle[Any] = Handle(id, created, created_micros, run_micros)
    handle.__dict__["door"] = door
    return handle


class Handles(Sequence[Handle[R_co]]):
    """Handles of runs that were enqueued together. Each is made when it is looked at: mostly nobody does, and thousands
    of them keep the collector of garbage busy.
    """

    __slots__ = ("_door", "_enqueued")

    def __init__(self, door: Any, enqueued: Sequence[Enqueued]) -> None:
        self._door = door
        self._enqueued = enqueued

    def __len__(self) -> int:
        return len(self._enqueued)

    @overload
    def __getitem__(self, place: int) -> Handle[R_co]: ...
    @overload
    def __getitem__(self, place: slice) -> Handles[R_co]: ...
    def __getitem__(self, place: int | slice) -> Handle[R_co] | Handles[R_co]:
        if isinstance(place, slice):
            return Handles(self._door, self._enqueued[place])
        return self._handle(self._enqueued[place])

    def __iter__(self) -> Iterator[Handle[R_co]]:
        return map(self._handle, self._enqueued)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or not isinstance(other, Sequence):
            return NotImplemented
        return [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __add__(self, other: Sequence[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Sequence[Any]) -> list[Any]:
        return [*other, *self]

    def __repr__(self) -> str:
        return repr([*self])

    def _handle(self, run: Enqueued) -> Handle[R_co]:
        return handle_by(self._door, run.id, run.created, run.created_micros, run.run_micros)


write_as(Handles, list)
