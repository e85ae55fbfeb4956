"""The application: declarations of jobs and schedules, and a lazy client for every thread, event loop and process."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import threading
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, overload

from rota.client.handle import Handle, handle_by, lacks
from rota.config import Config, changed, load_config
from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import JobKind
from rota.core.limits.quotas import RateOption, checked_place, quota_of
from rota.core.runs.options import Order
from rota.core.workers.worker import Queues
from rota.engine.handlers.context import Context, RunContext, SyncContext
from rota.engine.observability.meters import Meters
from rota.errors import Conflict, Invalid
from rota.hooks import Hooks
from rota.job import AsyncJob, Job, JobDecorator, job_name
from rota.registry.custom_types import register
from rota.registry.data_jobs import CommandOptions, HttpOptions, define_data_job
from rota.registry.jobs import FunctionOptions, Handler, JobOptions, Registry, declare
from rota.registry.pipelines import declare_pipeline
from rota.registry.schedules import DeclaredOptions, ScopeProvider
from rota.script import ScriptRunner
from rota.store import anchored, checked_pool, dialect_of, open_store
from rota.store.databases.statements import Dialect
from rota.transaction import InTransactions

if TYPE_CHECKING:
    import asyncpg
    from typing_extensions import Unpack

    from rota.client.blocking import BlockingClient
    from rota.client.client import Client
    from rota.engine.engine import Engine

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=ScopeProvider)
_ELSEWHERE = {
    **dict.fromkeys(("task", "actor", "command", "function"), "`@app.job`"),
    **dict.fromkeys(("periodic", "periodic_task", "scheduled_job", "add_job", "add_periodic_task", "cron"),
                    "`app.schedule(name, job, cron(…))`"),
    **dict.fromkeys(("middleware", "add_middleware"), "`@app.around` for handlers, `@app.around_enqueue` for enqueues"),
    **dict.fromkeys(("on_event", "on_startup", "startup", "on_shutdown", "shutdown"), "`@app.lifespan`"),
    **dict.fromkeys(("AsyncResult", "get_result"), "`handle(id)`"),
    **dict.fromkeys(("send_task", "enqueue"), "`job.enqueue(…)`, or `rota.remote` for jobs of other programs"),
}  # fmt: skip
"""Methods of apps in other libraries, and what they are called here."""
_APART = ("notify", "schedule")
"""Options of a job that are declared beside it."""
AsgiApp = Callable[..., Coroutine[Any, Any, None]]


class Rota(ScriptRunner, Hooks, InTransactions):
    """An application. `Rota()` takes its database from ROTA_DATABASE_URL, `rota.toml`, or `sqlite:///rota.db`.

    Creating it connects to nothing and starts nothing, so it is safe at import, before a fork, in every web worker.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        version: str | None = None,
        config: Config | None = None,
        pool: asyncpg.Pool[Any] | None = None,
        **settings: object,
    ) -> None:
        values = {"database_url": database_url, "worker_version": version, **settings}
        self._configure(config or load_config(values))
        self._pool = checked_pool(pool, self.config.database_url)
        self.registry = Registry()
        self._opener: Callable[[], Awaitable[Client]] | None = None
        self._lock = threading.RLock()
        self._forget_connections()
        _all_apps.add(self)

    if not TYPE_CHECKING:  # for type checkers, there are no such names

        def __getattr__(self, name: str) -> NoReturn:
            raise lacks(self, name, "an app", _ELSEWHERE)

    def _configure(self, config: Config) -> None:
        self.config = config
        self.dialect: Dialect = dialect_of(config.database_url)
        # A child process that changes its directory must use the same file.
        self._database_url = anchored(config.database_url)

    def _forget_connections(self) -> None:
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Client]] = (
            weakref.WeakKeyDictionary()
        )
        self._closing: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None]] = (
            weakref.WeakKeyDictionary()
        )
        vars(self).pop("blocking", None)
        self._engine: Engine | None = None
        self.meters = Meters()

    def configure(self, *, pool: asyncpg.Pool[Any] | None = None, **settings: object) -> None:
        """Override the settings that the app was created with, as a program's flags do; None counts as not given."""
        if self._clients or self._blocks or self._engine:
            raise Conflict("this app is connected already", hint="configure it before its first use")
        self._configure(changed(self.config, settings))
        self._pool = checked_pool(pool or self._pool, self.config.database_url)

    @overload
    def job(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...
    @overload
    def job(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...
    @overload
    def job(self, fn: Callable[Concatenate[SyncContext, P], R], /) -> Job[P, R]: ...
    @overload
    def job(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def job(self, fn: Callable[P, R], /) -> Job[P, R]: ...
    @overload
    def job(self, **options: Unpack[FunctionOptions]) -> JobDecorator: ...
    def job(self, *fn: Any, **options: Any) -> Any:
        """Declare a function as a job: `@app.job` or `@app.job(max_attempts=5, timeout="10m")`."""

        def decorate(fn: Callable[..., Any]) -> Job[..., Any]:
            handler = declare(fn, RunContext, options)
            if handler.is_async and handler.payload.context_kind == SyncContext.__name__:
                raise Invalid(
                    f"{handler.definition.name} is a coroutine", hint="its context is a Context, not a SyncContext"
                )
            return self._declared(handler, options)

        return decorate(*fn) if fn else decorate

    def external(
        self, name: str, /, payload_schema: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]
    ) -> Job[..., Any]:
        """Declare a job that external workers do: `app.external("label-images", {"type": "object", …}, timeout="1h")`.

        rota's own workers never claim it. External ones do, with `client.external` or over REST.
        """
        return self._without_function(name, JobKind.EXTERNAL, {**options, "payload_schema": payload_schema})

    def http_job(self, name: str, /, **options: Unpack[HttpOptions]) -> Job[..., Any]:
        """Declare a job that sends a request: `app.http_job("ping", method="POST", url="https://example.com/ping")`."""
        return self._without_function(name, "http", options)

    def command_job(self, name: str, argv: Sequence[str], /, **options: Unpack[CommandOptions]) -> Job[..., Any]:
        """Declare a job that runs a program: `app.command_job("backup", ["pg_dump", "-Fc", "shop"])`.

        Only workers with ROTA_ENABLE_COMMAND=1 run it.
        """
        return self._without_function(name, "command", {**options, "argv": argv})

    def pipeline(
        self, name: str, parts: Sequence[Mapping[str, Any]], /, **options: Unpack[JobOptions]
    ) -> Job[..., Any]:
        """Declare a job whose parts are other jobs, run in sequence by workers that know each.

        `app.pipeline("publish", [{"step": "fetch", "job": "fetch-page"}, {"step": "tell", "job": "notify-shop"}])`
        """
        own = {option: value for option, value in options.items() if option not in _APART}
        return self._declared(declare_pipeline(self.registry, name, parts, own), options)

    def _without_function(self, name: str, kind: str, options: Mapping[str, Any]) -> Job[..., Any]:
        own = {option: value for option, value in options.items() if option not in _APART}
        from rota.engine.jobs.data_jobs import handler_of

        return self._declared(handler_of(define_data_job(name, kind, own, in_code=True)), options)

    def _declared(self, handler: Handler, options: Mapping[str, Any]) -> Job[..., Any]:
        self.registry.add(handler)
        if options.get("notify") is not None:
            self.registry.notifications.of_job(handler.definition.name, options["notify"])
        if options.get("schedule") is not None:
            self.registry.schedules.declare(handler.definition.name, handler, options["schedule"], {})
        return (AsyncJob if handler.is_async else Job)(self, handler)

    def schedule(
        self,
        name: str,
        job: Job[..., Any] | str,
        trigger: Trigger,
        **options: Unpack[DeclaredOptions],
    ) -> None:
        """Declare when runs of a job are created: `app.schedule("news", crawl, every("30m"), overlap="skip")`.

        It is validated here, and stored when an engine starts: once, however many processes declare it.
        """
        handler = self.registry.newest[job_name(job, f"schedule {name!r}")]
        own = {option: value for option, value in options.items() if option != "notify"}
        self.registry.schedules.declare(name, handler, trigger, own)
        if (notify := options.get("notify")) is not None:
            self.registry.notifications.of_schedule(name, notify)

    def notify(self, name: str, **options: Any) -> None:
        """Declare a notification: `app.notify("ops", on=["failure"], to="mailto:me@example.com", jobs=["crawl"])`.

        It is validated here, and stored when an engine starts, unless a person has created or changed one of this name.
        """
        self.registry.notifications.declare(name, options)

    def payload_type(
        self,
        kind: type[T],
        *,
        write: Callable[[T], Any],
        read: Callable[[Any], T],
        schema: dict[str, Any] | None = None,
    ) -> None:
        """Let jobs take and return a class of yours: `app.payload_type(Money, write=str, read=Money.parse)`.

        Call it before jobs that use the class are declared. It counts for all apps of the process.
        """
        register(kind, write, read, schema)

    def scopes(self, name: str) -> Callable[[F], F]:
        """Register a provider of scopes: `@app.scopes("tenants")` above a function that returns pairs (kind, id).

        A provider with a parameter `now` gets the time of the database.
        """

        def decorate(provider: F) -> F:
            self.registry.schedules.provide(name, provider)
            return provider

        return decorate

    def quota(
        self,
        kind: str,
        *,
        max_concurrency: int | None = None,
        max_queued: int | None = None,
        rate: RateOption = None,
    ) -> None:
        """Declare a quota for each scope of a kind, over all jobs: `app.quota("tenant", max_concurrency=5)`.

        It is stored when an engine starts. A quota that a person set, for one scope or for all, has precedence.
        """
        kind, _ = checked_place(kind, None)
        if kind in self.registry.quotas:
            raise Conflict(f"the quota of {kind!r} is declared twice", hint="leave one of them out")
        self.registry.quotas[kind] = quota_of(max_concurrency, max_queued, rate)

    async def connect(self) -> Client:
        """Return the client of the running event loop, created at the first use."""
        loop = asyncio.get_running_loop()
        task = self._clients.get(loop)
        if task is not None and task.done() and not task.cancelled() and task.exception() is None:
            return task.result()
        with self._lock:  # threads with other loops change the same dict
            task = self._clients.get(loop)
            if task is None or (task.done() and (task.cancelled() or task.exception())):
                task = self._clients[loop] = loop.create_task(self._open_until_the_loop_ends())
        return await asyncio.shield(task)  # other callers wait for it, too

    async def _open_until_the_loop_ends(self) -> Client:
        """Open a client that is closed with its event loop: a loop that shuts down closes its async generators."""
        client = await self.open_client()
        client.owner = self
        closing = self._close_at_the_end(client)
        await anext(closing)
        self._closing[asyncio.get_running_loop()] = closing
        return client

    async def _close_at_the_end(self, client: Client) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            self._clients.pop(asyncio.get_running_loop(), None)
            await client.close()

    async def open_client(self) -> Client:
        """Open a client that the caller must close."""
        if self._opener is not None:
            client = await self._opener()
        else:
            from rota.client.client import Client  # a program that only declares needs neither client nor store

            url, settings = self._database_url, self.config
            store = await open_store(
                url, deadline=settings.deadline, accepts_copies=settings.accept_copies, pool=self._pool
            )
            client = Client(store, self.registry, self.config, self.meters)
        client.door = self
        return client

    @contextmanager
    def diverted(
        self,
        opener: Callable[[], Awaitable[Client]],
        *,
        blocking: BlockingClient | None = None,
        config: Config | None = None,
    ) -> Iterator[None]:
        """Take clients from `opener` until the block ends, for tests.

        A client opened in the block must be closed in it.
        """
        before = dict(vars(self))
        self._forget_connections()
        self._opener = opener
        if blocking is not None:
            self.blocking = blocking
        self._configure(config or self.config)
        try:
            yield
        finally:
            vars(self).pop("blocking", None)
            vars(self).update(before)

    def handle(self, run_id: str) -> Handle[Any]:
        """Return the handle of a run that was enqueued before, here or elsewhere. Nothing is looked up."""
        return handle_by(self, run_id, False)

    def _wait_for(self, verb: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
        """Run a verb of the client and wait for its result, for handles."""
        return self.blocking._wait_for(verb)

    async def _await(self, verb: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
        """Run a verb of the running loop's client, for handles."""
        return await verb(await self.connect())

    def __reduce__(self) -> tuple[Callable[..., Rota], tuple[str, str]]:
        """Pickle the app by its name, as functions are: the process that reads it must be able to import it."""
        return _app_named, _name_of(self)

    def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]:
        """Enqueue runs of any jobs, all or none: `app.enqueue_many([fetch.options(ref="a").order(url), …])`."""
        return self.blocking.enqueue_many(orders)

    async def aenqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]:
        """Enqueue runs of any jobs, all or none, in async code."""
        return await (await self.connect()).enqueue_many(orders)

    async def metrics(self) -> str:
        """Return metrics for Prometheus: this process's counters for this app, and gauges of its database."""
        return await (await self.connect()).metrics()

    async def start(
        self, *, name: str | None = None, queues: Queues | None = None, labels: Iterable[str] | None = None
    ) -> None:
        """Run the loops and a worker in this process, on the running event loop, until `stop()`."""
        if self._engine is not None:
            raise Conflict("this app has been started already", hint="stop it first")
        client = await self.connect()
        from rota.engine.engine import Engine  # whoever only enqueues needs none of its loops

        engine = self._engine = Engine(
            client.store, self.registry, self._labelled(labels), name=name, queues=queues, meters=self.meters
        )
        try:
            await engine.start()
        except BaseException:
            self._engine = None
            raise

    def _labelled(self, labels: Iterable[str] | None) -> Config:
        return changed(self.config, {"worker_labels": None if labels is None else ",".join(labels)})

    async def stop(self, grace: timedelta | None = None) -> None:
        """Stop claiming, let handlers end within `grace`, and end the loops."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.stop(grace)

    @asynccontextmanager
    async def running(
        self, *, name: str | None = None, queues: Queues | None = None, labels: Iterable[str] | None = None
    ) -> AsyncIterator[Client]:
        """Start the engine for a block: `async with app.running() as client:` starts, stops and closes."""
        await self.start(name=name, queues=queues, labels=labels)
        try:
            yield await self.connect()
        finally:
            await self.stop()
            await self.aclose()

    def asgi(self, *, trusted: bool = False) -> AsgiApp:
        """Return API and dashboard for any ASGI application to mount. It starts no engine: `app.start()` does.

        Without `auth`, only callers on this machine are answered, unless the application in front is `trusted` to
        authenticate them.
        """
        application: AsgiApp = importlib.import_module("rota.server").asgi(self, trusted=trusted)
        return application

    async def aclose(self) -> None:
        """Close the running loop's client."""
        loop = asyncio.get_running_loop()
        task = self._clients.pop(loop, None)
        if task is not None:
            await asyncio.wait([task])
        closing = self._closing.pop(loop, None)
        if closing is not None:
            await closing.aclose()


def _name_of(app: Rota) -> tuple[str, str]:
    """Return the module and the name under which an app can be imported."""
    # The script that runs comes last: it is another one in another process. multiprocessing has its own name for it.
    scripts = ("__main__", "__mp_main__")
    others = [module for module in [*sys.modules] if module not in scripts]
    for module in (*others, *scripts):
        # Anything may be among the modules: None, or an object that makes its attributes up.
        names = getattr(sys.modules.get(module), "__dict__", None)
        for name, value in [*names.items()] if isinstance(names, dict) else []:
            if value is app:
                return module, name
    from pickle import PicklingError  # imported late: whoever pickles has it already

    raise PicklingError(
        "this app is not a global variable of a module: keep the id of its handle, and call `app.handle(id)` there"
    )


def _app_named(module: str, name: str) -> Rota:
    app: Rota = getattr(importlib.import_module(module), name)
    return app


_all_apps: weakref.WeakSet[Rota] = weakref.WeakSet()


def _after_fork() -> None:
    """Forget connections in a forked child, which threads and sockets do not survive; it reconnects when needed."""
    for app in list(_all_apps):
        app._lock = threading.RLock()
        app._forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
