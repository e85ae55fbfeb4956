"""A declared job as user code sees it: call it or enqueue it, typed by its own signature."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from rota.client.handle import Handle, handle_by, lacks
from rota.core.runs.options import RUN_OPTIONS, Order, RunOptions
from rota.core.runs.payload import pending_of
from rota.engine.handlers.context import Context, SyncContext
from rota.errors import Invalid, UnknownOption
from rota.registry.jobs import Handler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rota.app import Rota
    from rota.flow import Step

_ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("delay", "send", "kiq", "defer", "enqueue_job", "apply_async"), "`enqueue(…)`"),
    **dict.fromkeys(("delay_on_commit", "apply_async_on_commit"), "`enqueue_in(connection, …)`"),
    **dict.fromkeys(("defer_async", "adelay"), "`await aenqueue(…)`"),
    **dict.fromkeys(("configure", "kicker", "using", "send_with_options", "set"), "`options(…)`, before `enqueue(…)`"),
    **dict.fromkeys(("si", "signature", "subtask", "message", "pipeline"), "`s(…)`, for `chain(…)` and `group(…)`"),
    **dict.fromkeys(("AsyncResult", "fetch"), "`handle(id)`"),
}
"""Methods of tasks in other libraries, and what they are called here."""

P = ParamSpec("P")
Q = ParamSpec("Q")
X = TypeVar("X")
R = TypeVar("R")


class Job(Generic[P, R]):
    """A job.

    `job(...)` just calls the function. `fn` is the function itself, `given` the options of the runs it enqueues.
    """

    def __init__(self, app: Rota, handler: Handler, options: Mapping[str, Any] | None = None) -> None:
        self.app = app
        self.handler = handler
        self.fn: Callable[..., R] = handler.fn
        self.name = handler.definition.name
        self.given = dict(options or {})
        self.__doc__ = handler.fn.__doc__
        self.__name__ = handler.fn.__name__
        self.__wrapped__ = handler.fn

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        return self.fn(*args, **kwargs)

    if not TYPE_CHECKING:  # for type checkers, there are no such names

        def __getattr__(self, name: str) -> NoReturn:
            raise lacks(self, name, "a job", _ELSEWHERE)

    def __repr__(self) -> str:
        return f"<rota job {self.name!r} version {self.handler.definition.version}>"

    def options(self, **options: Unpack[RunOptions]) -> Self:
        """Return the same job with options for the runs enqueued through it."""
        for option in options:
            if option not in RUN_OPTIONS:
                raise UnknownOption(option, RUN_OPTIONS, where=f"a run of {self.name!r}")
        return type(self)(self.app, self.handler, {**self.given, **options})

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue a run with these arguments; its handle waits for its result."""
        return self.app.blocking.enqueue(self._order(args, kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue a run with these arguments, in async code."""
        return await (await self.app.connect()).enqueue(self._order(args, kwargs))

    def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[Handle[R]]:
        """Enqueue several runs in one transaction; each payload holds one run's arguments by name."""
        return self.app.blocking.enqueue_many([Order(self.name, dict(payload), self.given) for payload in payloads])

    async def aenqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[Handle[R]]:
        """Enqueue several runs in one transaction, in async code."""
        return await (await self.app.connect()).enqueue_many(
            [Order(self.name, dict(payload), self.given) for payload in payloads]
        )

    def handle(self, run_id: str) -> Handle[R]:
        """Return the handle of a run of this job that was enqueued before, here or elsewhere. Nothing is looked up."""
        return handle_by(self.app, run_id, False)

    def order(self, *args: P.args, **kwargs: P.kwargs) -> Order:
        """Return a run that is not enqueued yet, for `app.enqueue_many([...])` with several jobs or dependencies."""
        return self._order(args, kwargs)

    @overload
    def s(self, *args: P.args, **kwargs: P.kwargs) -> Step[object, R]: ...
    @overload
    def s(self: Job[Concatenate[X, Q], R], *args: Q.args, **kwargs: Q.kwargs) -> Step[X, R]: ...
    def s(self, *args: Any, **kwargs: Any) -> Step[Any, R]:
        """Return a step for `chain(…)` and `group(…)`: a run with these arguments, that is not enqueued yet.

        If they are complete but for the first one, that is the result of what comes before it.
        """
        from rota.flow import Step  # here: most programs make no chains

        return Step(self, args, kwargs)

    def enqueue_in(self, connection: Any, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue inside your own transaction: the run exists if, and as soon as, you commit. Return its id.

        `connection`: psycopg, SQLAlchemy, Django, any DB-API on PostgreSQL; apsw or sqlite3 on SQLite.
        """
        return self.app.enqueue_many_in(connection, [self._order(args, kwargs)])[0]

    async def aenqueue_in(self, connection: Any, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue inside your own transaction with asyncpg, async psycopg or async SQLAlchemy. Return the run's id."""
        return (await self.app.aenqueue_many_in(connection, [self._order(args, kwargs)]))[0]

    def _order(self, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> Order:
        payload = self.handler.payload
        if "inputs" in self.given:
            payload = payload.without(pending_of(self.given))
        arguments = payload.bind(args, cast("dict[str, object]", kwargs))
        return Order(self.name, arguments, self.given)


class AsyncJob(Job[P, R]):
    """A job whose function is a coroutine function: a call returns a coroutine, a handle its result."""

    def __call__(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, R]:  # type: ignore[override]
        return cast("Coroutine[Any, Any, R]", self.fn(*args, **kwargs))


class JobDecorator(Protocol):
    """Type of `@app.job(...)` with options, for type checkers."""

    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[SyncContext, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Job[P, R]: ...


def job_name(job: object, where: str) -> str:
    """Return the name of a job that is given by itself or by its name; refuse anything else."""
    if isinstance(job, Job):
        return job.name
    if isinstance(job, str):
        return job
    hint = "pass a function that @app.job declares, or the name of a job"
    raise Invalid(f"{where}: {job!r:.80} is no job", hint=hint)
