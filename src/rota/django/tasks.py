"""Backend of `django.tasks` (Django 6, or the package `django-tasks`): tasks are runs of one job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from traceback import format_exception
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.module_loading import import_string

from rota.client.client import Client, Order
from rota.client.handle import Handle
from rota.core.calendar.triggers import Trigger
from rota.core.progress.control_flow import Fail, Signal
from rota.core.runs.run import Attempt, Run, RunError
from rota.core.states import RunState
from rota.django.application import the_app
from rota.engine.handlers.context import SyncContext
from rota.errors import BlocksEventLoop, NotFound
from rota.job import Job

if TYPE_CHECKING:  # both have the same names
    from django.tasks import Task, TaskContext, TaskResult, TaskResultStatus, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import TaskError
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
else:
    try:
        from django.tasks import Task, TaskContext, TaskResult, TaskResultStatus, task_backends
        from django.tasks.backends.base import BaseTaskBackend
        from django.tasks.base import TaskError
        from django.tasks.exceptions import TaskResultDoesNotExist
        from django.tasks.signals import task_enqueued, task_finished, task_started
        from django.utils.json import normalize_json
    except ImportError:
        try:
            from django_tasks import task_backends
            from django_tasks.backends.base import BaseTaskBackend
            from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
            from django_tasks.exceptions import TaskResultDoesNotExist
            from django_tasks.signals import task_enqueued, task_finished, task_started
            from django_tasks.utils import normalize_json
        except ImportError as missing:
            raise ImproperlyConfigured("tasks need Django 6, or the package django-tasks") from missing

P = ParamSpec("P")
R = TypeVar("R")
_PATH = "rota.django.tasks.RotaBackend"
_STATUS = {
    RunState.SCHEDULED: TaskResultStatus.READY,
    RunState.QUEUED: TaskResultStatus.READY,
    RunState.RUNNING: TaskResultStatus.RUNNING,
    RunState.WAITING: TaskResultStatus.RUNNING,
    RunState.CANCELLING: TaskResultStatus.RUNNING,
    RunState.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
}
"""What Django calls the state of a run; every other end is FAILED."""


class RotaBackend(BaseTaskBackend):
    """`TASKS = {"default": {"BACKEND": "rota.django.tasks.RotaBackend", "OPTIONS": {"max_attempts": 3}}}`.

    OPTIONS are those of the job. A task is tried once unless they say otherwise.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.app = the_app()
        name = "django.task" if alias == "default" else f"django.task.{alias}"
        if name in self.app.registry.names():  # settings have changed, in a test
            self.job: Job[..., Any] = Job(self.app, self.app.registry.newest[name])
        else:
            self.job = self.app.job(**{"max_attempts": 1, **self.options, "name": name})(self._perform)

    def enqueue(self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult[P, R]:
        self.validate_task(task)
        result = self._result(task, args, kwargs)
        with _async_form("enqueue", "`await task.aenqueue(…)`"):
            handle = self.app.blocking.enqueue(self._order(result))
        return self._enqueued(result, handle)

    async def aenqueue(self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult[P, R]:
        self.validate_task(task)
        result = self._result(task, args, kwargs)
        return self._enqueued(result, await (await self.app.connect()).enqueue(self._order(result)))

    def get_result(self, result_id: str) -> TaskResult[..., Any]:
        with _async_form("reading a result", "`await task.aget_result(…)` or `await result.arefresh()`"):
            found = self.app.blocking._wait_for(lambda client: _read(client, result_id))
        return self._found(*found)

    async def aget_result(self, result_id: str) -> TaskResult[..., Any]:
        return self._found(*await _read(await self.app.connect(), result_id))

    def schedule(self, name: str, task: Task[..., Any], trigger: Trigger, *args: Any, **kwargs: Any) -> None:
        """Declare a periodic task: `backend.schedule("nightly", clean_up, cron("0 3 * * *"))`."""
        self.validate_task(task)
        self.app.schedule(name, self.job, trigger, payload=_payload(self._result(task, args, kwargs)))

    def _order(self, result: TaskResult[..., Any]) -> Order:
        task = result.task
        options: dict[str, Any] = {"priority": task.priority, "queue": task.queue_name, "tags": [task.module_path]}
        if task.run_after is not None:
            options["run_at"] = task.run_after if task.run_after.tzinfo else task.run_after.astimezone()
        return Order(self.job.name, _payload(result), options)

    def _enqueued(self, result: TaskResult[P, R], handle: Handle[Any]) -> TaskResult[P, R]:
        object.__setattr__(result, "id", handle.id)
        object.__setattr__(result, "enqueued_at", handle.created_at)
        task_enqueued.send(type(self), task_result=result)
        return result

    def _result(self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult[P, R]:
        return TaskResult(
            task=task,
            id="",
            status=TaskResultStatus.READY,
            enqueued_at=None,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=list(args),
            kwargs=dict(kwargs),
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def _perform(self, ctx: SyncContext, task: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        found = _task_of(task)
        result = self.get_result(ctx.run_id)
        task_started.send(sender=type(self), task_result=result)
        try:
            given = [TaskContext(task_result=result), *args] if found.takes_context else args
            returned = normalize_json(found.call(*given, **kwargs))
        except BaseException as error:  # as Django's own backends: SystemExit is a failure, too
            if isinstance(error, Fail) or (ctx.attempt >= ctx.max_attempts and not isinstance(error, Signal)):
                path, traceback = _path_of(type(error)), "".join(format_exception(error))
                result.errors.append(TaskError(exception_class_path=path, traceback=traceback))
                self._tell_finished(result, status=TaskResultStatus.FAILED)
            raise
        self._tell_finished(result, status=TaskResultStatus.SUCCESSFUL, _return_value=returned)
        return returned

    def _tell_finished(self, result: TaskResult[..., Any], **facts: object) -> None:
        """Send the signal before the run has ended: receivers get the result as it is going to be."""
        for name, fact in {"finished_at": timezone.now(), **facts}.items():
            object.__setattr__(result, name, fact)
        task_finished.send(type(self), task_result=result)

    def _found(self, run: Run, attempts: Sequence[Attempt]) -> TaskResult[..., Any]:
        payload: Any = run.payload
        if run.job != self.job.name:
            raise TaskResultDoesNotExist(run.id)
        task = _task_of(payload["task"]).using(priority=run.priority, queue_name=run.queue, backend=self.alias)
        result = self._result(task, payload["args"], payload["kwargs"])
        facts = {
            "id": run.id,
            "status": _STATUS.get(run.state, TaskResultStatus.FAILED),
            "enqueued_at": run.created_at,
            "started_at": attempts[0].started_at or attempts[0].claimed_at if attempts else None,
            "last_attempted_at": attempts[-1].started_at or attempts[-1].claimed_at if attempts else None,
            "finished_at": run.finished_at,
            "errors": [_error(attempt.error) for attempt in attempts if attempt.error is not None],
            "worker_ids": [attempt.worker_id for attempt in attempts],
            "_return_value": run.result,
        }
        for name, fact in facts.items():
            object.__setattr__(result, name, fact)
        return result


@contextmanager
def _async_form(call: str, instead: str) -> Iterator[None]:
    """Name Django's methods in the error of a synchronous call inside a coroutine."""
    try:
        yield
    except BlocksEventLoop:
        raise BlocksEventLoop(call, instead) from None


def install() -> None:
    """Let workers know the jobs of the backends that settings name, whichever task is imported first."""
    from django.conf import settings

    aliases = [alias for alias, it in getattr(settings, "TASKS", {}).items() if it.get("BACKEND") == _PATH]
    for alias in aliases:
        task_backends[alias]


async def _read(client: Client, run_id: str) -> tuple[Run, Sequence[Attempt]]:
    try:
        return await client.get(run_id, steps=False), await client.attempts(run_id)
    except NotFound as error:
        raise TaskResultDoesNotExist(run_id) from error


def _payload(result: TaskResult[..., Any]) -> dict[str, Any]:
    return {"task": result.task.module_path, "args": result.args, "kwargs": result.kwargs}


def _task_of(path: str) -> Task[..., Any]:
    found = import_string(path)
    if not isinstance(found, Task):
        raise TypeError(f"{path} is not a task")
    return found


def _path_of(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _error(error: RunError) -> TaskError:
    """Find the module of an exception where its traceback names it."""
    named = re.findall(rf"^([\w.]*\b{re.escape(error.type)})(?::|$)", error.traceback or "", re.MULTILINE)
    path = named[-1] if named and "." in named[-1] else f"builtins.{error.type}"
    return TaskError(exception_class_path=path, traceback=error.traceback or f"{error.type}: {error.message}")
