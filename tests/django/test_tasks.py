"""Test the backend of `django.tasks` in a generated project: the cases of Django's own backends, and what rota adds."""

from __future__ import annotations

from pathlib import Path

import django

from tests.django.test_django import database_at, run_in_project

OWN = django.VERSION >= (6,)  # from there on Django has tasks itself
MODULE = '''
from django_tasks import task


class Broken(Exception):
    """Raised by a task."""


@task
def add(a, b=1):
    return a + b


@task(priority=7, queue_name="mail")
async def greet(name):
    return {"hello": name}


@task(takes_context=True)
def tried(context):
    return [context.attempt, context.task_result.id]


@task
def fails():
    raise Broken("no\\npaper")


@task
def interrupted():
    raise KeyboardInterrupt("typed into the worker")


@task
def fails_with_an_error_inside():
    raise Broken(Broken("no\\ntoner"))


@task
def returns_what_json_cannot_hold():
    return object()
'''

CASES = """
import asyncio, datetime, logging
call_command("migrate", verbosity=0)
import shop_tasks as tasks
from django.utils import timezone
from django_tasks import TaskResultStatus, default_task_backend, task_backends
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch
from django_tasks.signals import task_enqueued, task_finished, task_started
from rota import every
from rota.errors import BlocksEventLoop
from rota.testing import adrain, drain

heard = []
for signal, word in ((task_enqueued, "enqueued"), (task_started, "started"), (task_finished, "finished")):
    def hear(sender, task_result, word=word, **_):
        heard.append((word, task_result.id, str(task_result.status), len(task_result.errors)))
    signal.connect(hear, weak=False)

backend = default_task_backend
for name in ("defer", "async_task", "get_result", "priority"):
    assert getattr(backend, "supports_" + name), name


def refused(error, call):
    try:
        call()
    except error as failure:
        return str(failure)
    raise AssertionError(error)


added = tasks.add.enqueue(1, b=2)
assert (added.status, added.is_finished, added.args, added.kwargs) == (TaskResultStatus.READY, False, [1], {"b": 2})
assert added.enqueued_at is not None and added.attempts == 0
refused(ValueError, lambda: added.return_value)
greeted = tasks.greet.using(priority=-3).enqueue("Ada")
later = tasks.add.using(run_after=timezone.now() + datetime.timedelta(hours=1)).enqueue(1)
failed, context, unusable = tasks.fails.enqueue(), tasks.tried.enqueue(), tasks.returns_what_json_cannot_hold.enqueue()
assert [(run.queue, run.priority, run.tags) for run in app.blocking.list() if run.id == greeted.id] == [
    ("mail", -3, ("shop_tasks.greet",))]
logged = []
record = logging.Handler()
record.emit = lambda entry: logged.append((entry.levelname, entry.getMessage().split(" path=")[0]))
logging.getLogger("django.tasks" if OWN else "django_tasks").addHandler(record)
interrupted, inside = tasks.interrupted.enqueue(), tasks.fails_with_an_error_inside.enqueue()
try:
    with transaction.atomic():
        rolled_back = tasks.add.enqueue(20, b=2)
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
drain(app)
for result in (interrupted, inside, rolled_back):
    result.refresh()
assert (interrupted.status, interrupted.errors[0].exception_class) == (TaskResultStatus.FAILED, KeyboardInterrupt)
assert (inside.status, inside.errors[0].exception_class) == (TaskResultStatus.FAILED, tasks.Broken)
assert rolled_back.return_value == 22  # it was enqueued at once
assert ("ERROR", f"Task id={inside.id}") in logged, logged
for result in (added, greeted, later, failed, context, unusable):
    result.refresh()
assert (added.status, added.return_value, added.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 1)
assert added.enqueued_at <= added.started_at <= added.last_attempted_at <= added.finished_at
assert greeted.return_value == {"hello": "Ada"}
assert (later.status, later.started_at) == (TaskResultStatus.READY, None)
assert (failed.status, failed.errors[0].exception_class) == (TaskResultStatus.FAILED, tasks.Broken), failed.errors
assert "no\\npaper" in failed.errors[0].traceback
assert refused(ValueError, lambda: failed.return_value) == "Task failed"
assert context.return_value == [1, context.id]
assert unusable.status == TaskResultStatus.FAILED
assert [it[::2] for it in heard if it[1] == added.id] == [
    ("enqueued", "READY"), ("started", "RUNNING"), ("finished", "SUCCESSFUL")], heard
assert {("finished", failed.id, "FAILED", 1), ("finished", unusable.id, "FAILED", 1)} <= set(heard), heard

assert tasks.add.get_result(added.id).return_value == 3
refused(TaskResultMismatch, lambda: tasks.greet.get_result(added.id))
refused(TaskResultDoesNotExist, lambda: tasks.add.get_result("01980000-0000-7000-8000-000000000000"))
refused(TaskResultDoesNotExist, lambda: tasks.add.get_result("nobody"))
refused(TaskResultDoesNotExist, lambda: tasks.add.get_result(greet.enqueue(names=[]).id))
refused(TypeError, lambda: tasks.add.enqueue(object()))
refused(InvalidTaskError, lambda: tasks.add.using(priority=101))
refused(InvalidTaskError, lambda: tasks.add.using(queue_name="unknown"))
refused(InvalidTaskError, lambda: tasks.add.using(run_after=datetime.datetime(2030, 1, 1)))


async def in_async_code():
    for call in (lambda: tasks.add.enqueue(1), lambda: tasks.add.get_result(added.id), added.refresh):
        try:
            call()
        except BlocksEventLoop as failure:
            assert failure.hint.split(chr(96))[1] in (
                "await task.aenqueue(…)", "await task.aget_result(…)"), failure.hint
        else:
            raise AssertionError(call)
    result = await tasks.greet.aenqueue(name="Bob")
    await adrain(app)
    await result.arefresh()
    assert result.return_value == {"hello": "Bob"}
    assert (await tasks.greet.aget_result(result.id)).status == TaskResultStatus.SUCCESSFUL
    await app.aclose()


asyncio.run(in_async_code())
retrying = tasks.fails.using(backend="retrying").enqueue()
drain(app)
retrying.refresh()
assert (retrying.attempts, len(retrying.errors), retrying.status) == (2, 2, TaskResultStatus.FAILED), retrying
assert [it for it in heard if it[:2] == ("finished", retrying.id)] == [("finished", retrying.id, "FAILED", 2)]
backend.schedule("adding", tasks.add, every("1h"), 5)
assert [it.definition.job for it in app.registry.schedules] == ["django.task"]
app.close()
"""


def of_django(code: str) -> str:
    """Return the code with Django's own names where it has them."""
    if not OWN:
        return code
    return code.replace("django_tasks", "django.tasks").replace("InvalidTaskError", "InvalidTask")


def run_cases(folder: Path, database: dict[str, object]) -> None:
    (folder / "shop_tasks.py").write_text(of_django(MODULE))
    queues = {"QUEUES": ["default", "mail"]}
    retrying = {"max_attempts": 2, "backoff": "0s"}
    backend = {"BACKEND": "rota.django.tasks.RotaBackend", **queues}
    run_in_project(
        of_django(f"OWN = {OWN}\n{CASES}"),
        folder,
        DATABASES={"default": database},
        INSTALLED_APPS=["rota.django"] if OWN else ["django_tasks", "rota.django"],
        TASKS={"default": backend, "retrying": {**backend, "OPTIONS": retrying}},
    )


def test_tasks_on_postgres(new_postgres_url: str, tmp_path: Path) -> None:
    run_cases(tmp_path, database_at(new_postgres_url))


def test_tasks_on_sqlite(tmp_path: Path) -> None:
    run_cases(tmp_path, {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db.sqlite3")})
