"""A connection to an SQLite file and the thread that alone uses it: whole transactions per hop, group commit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import msgspec

from rota.errors import BadConfig, DatabaseMoved, FileReplaced, Invalid, RotaError, Unavailable
from rota.store.databases import fork
from rota.store.databases.database import Work, drive

if TYPE_CHECKING:
    from rota.store.databases.sqlite.sqlite import SqliteTx

T = TypeVar("T")

_GROUP = 64
_REST_AFTER = 0.05
FROZEN = "rota: promoted to "
"""What triggers say, and to where, in a file that nobody may write to any more."""


class Job(msgspec.Struct):
    """A transaction that somebody waits for. `woken`: the queues that it woke, once it is done."""

    work: Work[Any]
    future: Future[Any]
    reads: bool = False
    woken: set[str | None] = msgspec.field(default_factory=set)


class _Drop:
    """Asks the thread to close its connection."""


class ServingThread:
    """Opened at the first use, and again at the first after it was stopped."""

    def __init__(
        self, name: str, connect: Callable[[], SqliteTx], serve: Callable[[SqliteTx, list[Job]], None]
    ) -> None:
        self._name = name
        self._connect = connect
        self._serve = serve
        self._inbox: queue.SimpleQueue[Job | _Drop | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.unanswered: set[Future[Any]] = set()
        """Of jobs that wait here or are being served. Any thread may add or discard: each is one step of Python."""
        fork.close_at_forks(self)

    async def submit(
        self, work: Work[T], path: str, *, reads: bool = False, tell: Callable[[set[str | None]], None] | None = None
    ) -> T:
        """Run `work` in the thread, and return its result when it is committed; then `tell` whom it woke."""
        job = Job(work, Future(), reads)
        # One lock over both: a job that was put behind the end of a stopping thread would never be answered.
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                self._thread.start()
            self.unanswered.add(job.future)
            job.future.add_done_callback(self.unanswered.discard)  # before the caller learns of its end
            self._inbox.put(job)
        try:
            result: T = await asyncio.wrap_future(job.future)
        except apsw.Error as error:
            raise translated(error, path) from error
        except (UnicodeError, OverflowError) as error:
            raise Invalid(f"a value cannot be stored: {error}") from error
        if job.woken and tell is not None:
            tell(job.woken)
        return result

    def stop(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        """End the thread. What was submitted before is done first; what comes later begins anew."""
        thread, self._thread = self._thread, None
        if thread:
            self._inbox.put(None)
            # Under the caller's lock: no other thread opens the file before this one has closed it.
            thread.join()

    def before_fork(self) -> None:
        # Kept until after the fork: nobody may open the file in between.
        self._lock.acquire()
        self._end()

    def after_fork(self, *, in_child: bool) -> None:
        self._lock.release()

    def drop(self) -> None:
        """Close the connection soon, and open another for whoever comes then. Never waits: two may tell each other."""
        self._inbox.put(_Drop())

    def _loop(self) -> None:
        tx: SqliteTx | None = None
        while (jobs := self._next_jobs(tx)) is not None:
            try:
                if tx and tx.is_stale:
                    _close(tx)
                    tx = None
                if jobs:
                    tx = tx or self._connect()
                    self._serve(tx, jobs)
            except Exception as error:  # this thread serves everybody: no error may end it
                if tx and isinstance(error, FileReplaced):
                    tx.lose_file(error)
                    _close(tx)
                    tx = None
                for job in jobs:
                    _settle(job.future, error=error)
            # A future keeps its traceback and thereby this frame: drop what it would keep alive.
            jobs.clear()
        if tx:
            tx.close()

    def _next_jobs(self, tx: SqliteTx | None) -> list[Job] | None:
        """Return the jobs that wait: None at the end; empty if there is only a connection to close."""
        first = self._first(tx)
        if first is None:
            return None
        jobs = [first] if isinstance(first, Job) else []
        while len(jobs) < _GROUP and not self._inbox.empty():
            job = self._inbox.get()
            if job is None:
                # Put back: the jobs in hand are served first, then the next look meets it.
                self._inbox.put(None)
                break
            if isinstance(job, Job):
                jobs.append(job)
        return jobs

    def _first(self, tx: SqliteTx | None) -> Job | _Drop | None:
        # Checkpoints are made when nobody waits: one takes longer than most transactions.
        if tx is not None and tx.wants_rest:
            try:
                return self._inbox.get(timeout=_REST_AFTER)
            except queue.Empty:
                tx.rest()
        return self._inbox.get()


def write_group(tx: SqliteTx, jobs: list[Job]) -> None:
    """Group commit: one fsync for all that waited; each job fails alone.

    The first needs no savepoint, which would keep a copy of every page that it changes: with it all is undone.
    """
    if reading := [job for job in jobs if job.reads]:
        read_each(tx, reading)
    writing = [job for job in jobs if not job.reads] if reading else jobs
    if not writing:
        return
    with tx.writing():
        done = _committed(tx, writing)
    # Between the commit and the answers: what is in a file or a log that nobody will find, nobody may rely on.
    tx.require_same_file()
    for job, result in done:
        _settle(job.future, result=result)
    if tx.needs_rest:
        tx.rest()


def _committed(tx: SqliteTx, jobs: list[Job]) -> list[tuple[Job, Any]]:
    """Run and commit jobs; return those that did not fail, with their results."""
    done: list[tuple[Job, Any]] = []
    try:
        for job in jobs:
            # Immediate: a transaction that reads first and writes later fails at once if another process wrote in
            # between.
            tx.control("savepoint job" if done else "begin immediate")
            tx.woken = set()  # one connection serves all jobs, and each job tells for itself
            try:
                result = drive(job.work(tx))
            # The disk is full for all of them: the whole group is undone, or each would fail in turn.
            except apsw.FullError:
                raise
            except Exception as error:
                if not tx.in_transaction:
                    raise  # SQLite has undone all of it, as when the disk fails
                tx.control("rollback to job; release job" if done else "rollback")
                _fail(tx, job, error)
            else:
                if done:
                    tx.control("release job")
                # Only now: whom a failed job would have woken is not told.
                job.woken = tx.woken
                done.append((job, result))
        if done:
            tx.control("commit")
    except (apsw.Error, FileReplaced):
        if tx.in_transaction:
            tx.control("rollback")
        tx.require_same_file()
        raise
    return done


def read_each(tx: SqliteTx, jobs: list[Job]) -> None:
    tx.require_same_file()
    for job in jobs:
        # From here on it counts as unanswered even if the caller gives up; a question nobody waits for is not asked.
        if not job.future.set_running_or_notify_cancel():
            continue
        tx.control("begin")
        try:
            _settle(job.future, result=drive(job.work(tx)))
        except Exception as error:
            _fail(tx, job, error)
        finally:
            if tx.in_transaction:  # after some errors there is none any more
                tx.control("commit")


def _fail(tx: SqliteTx, job: Job, error: Exception) -> None:
    """Fail a job. What SQLite does not understand may come from a file that is another one by now: then all fail with
    that.
    """
    if isinstance(error, apsw.Error):
        tx.require_same_file()
    _settle(job.future, error=error)


def _close(tx: SqliteTx) -> None:
    with contextlib.suppress(apsw.Error):
        tx.close()


def _settle(future: Future[Any], *, result: Any = None, error: BaseException | None = None) -> None:
    if future.done() or not (future.running() or future.set_running_or_notify_cancel()):
        return  # cancelled, or failed alone before the group it was in failed as a whole
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def is_frozen(error: apsw.Error) -> bool:
    return FROZEN in str(error)


def translated(error: apsw.Error, path: str) -> RotaError:
    if is_frozen(error):
        return DatabaseMoved(str(error).partition(FROZEN)[2])
    reasons: dict[type[apsw.Error], RotaError] = {
        apsw.BusyError: Unavailable(f"{path} is locked by another process"),
        apsw.FullError: Unavailable(f"the disk that holds {path} is full", hint="nothing was written; make room"),
        apsw.NotADBError: BadConfig(f"{path} is not an SQLite database"),
        apsw.CantOpenError: _cannot_open(path),
        apsw.ReadOnlyError: Unavailable(f"{path} is read-only"),
    }
    return reasons.get(type(error), Unavailable(f"SQLite: {error}"))


def _cannot_open(path: str) -> Unavailable:
    folder = os.path.dirname(path) or "."
    if os.path.exists(path) or not os.access(folder, os.W_OK):
        return Unavailable(f"cannot open {path}", hint="does its folder exist, and may you write there?")
    # A deleted file is not made again by itself: an empty one would be in the way of whoever restores it.
    return Unavailable(f"{path} is gone", hint="restore it, or make a new one with `rota migrate`")
