"""Methods that declare what is around jobs: middleware, hooks of events, lifespans. Part of `Rota`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from rota.engine.handlers.current_run import claimed_run
from rota.errors import Invalid
from rota.job import Job, job_name
from rota.registry.jobs import FunctionOptions, Registry

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rota.app import Rota
    from rota.registry.hooks.events import EventWord

A = TypeVar("A", bound=Callable[..., Any])
L = TypeVar("L", bound="Callable[[Rota], AsyncIterator[Any] | AbstractAsyncContextManager[Any]]")


class Hooks:
    """Methods of the app that declare what is around jobs."""

    registry: Registry
    job: Any

    def on(
        self,
        *events: EventWord,
        jobs: Iterable[Job[..., Any] | str] = (),
        schedules: Iterable[str] = (),
        include_payload: bool = False,
        **options: Unpack[FunctionOptions],
    ) -> Callable[[A], A]:
        """Call a function for events: `@app.on("run.failed")` above `def page(event: dict[str, Any])`.

        The function is a job, `on.page`; each event makes a run of it: after the commit, at least once, in any worker
        of this app, and retried as `options` say. Ends of such runs call no hooks.
        """

        from rota.registry.hooks.events import checked_events, job_of, notification_to

        checked_events(events)

        def decorate(hook: A) -> A:
            declared: Mapping[str, Any] = {"name": job_of(hook), **options}
            job = self.job(**declared)(hook)
            if job.handler.payload.first is None:
                raise Invalid(f"the hook {job.name} takes no event", hint="def hook(event: dict[str, Any]): …")
            names = [job_name(other, "jobs") for other in jobs]
            told = notification_to(job.name, events, names, schedules, include_payload=include_payload)
            self.registry.notifications.declare(job.name, told)
            return hook

        return decorate

    def around_enqueue(self, around: A) -> A:
        """Add middleware around enqueues: a generator with one `yield` that takes the `Enqueue`.

        It is called for each run that this app enqueues, `enqueue_in` included, not for what schedules create.
        """
        from rota.registry.hooks.enqueue_middleware import EnqueueMiddleware

        if self.registry.around_enqueue is None:
            self.registry.around_enqueue = EnqueueMiddleware()
        self.registry.around_enqueue.add(around)
        return around

    def around(self, around: A) -> A:
        """Add middleware, a context manager or a generator with one `yield`: `app.around(web.app_context)`.

        It may take one argument, the `Call`: job, run, attempt, arguments and, after the `yield`, the result.
        """
        self.registry.surround(around, claimed_run)
        return around

    def lifespan(self, lifespan: L) -> L:
        """Add an async context manager around each worker's life: `@app.lifespan` above `async def open_pool(app): …`.

        It is entered before the first claim, in child processes too, and left after the last handler. What it yields is
        `ctx.state`, and the argument of parameters such as `pool: Pool = injected`.
        """
        self.registry.lifespans.add(self, lifespan)
        return lifespan
