"""Main program of a child process: take one call at a time from its socket, run the handler and answer."""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import logging
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from types import ModuleType, TracebackType
from typing import Any, cast

import msgspec

from rota.engine.isolation.protocol import (
    Answer,
    Began,
    Call,
    Cancel,
    Downward,
    Frames,
    Note,
    ProcessCall,
    Reply,
    Setup,
    Shutdown,
    Upward,
    frame,
    memory_peak_mb,
)
from rota.engine.isolation.rlimits import confined, out_of_memory
from rota.engine.observability.logs import log_to_stderr
from rota.errors import BadConfig

MAIN_NAME = "__rota_main__"
_TEXT_LIMIT = 8 * 1024
_PARENT_CHECK_MS = 2_000
LEAVE_WITHIN = 3.0  # seconds that a child has to leave its lifespans
_OWN = ("rota.engine.", "rota.registry.")

logger = logging.getLogger(__name__)


class Link:
    """The connection of one call to the parent: notes and requests go up, cancel and shutdown come down."""

    def __init__(self, serial: int, send: Callable[[Upward], None]) -> None:
        self.serial = serial
        self.cancelled = False
        self.on_shutdown: Callable[[], None] = lambda: None
        self._send = send
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._asked = 0
        self._replies: dict[int, SimpleQueue[bytes]] = {}

    def next_no(self) -> int:
        with self._lock:
            self._asked += 1
            self._replies[self._asked] = SimpleQueue()
            return self._asked

    def ask(self, no: int, body: bytes) -> bytes:
        """Send a request and block until the parent replies."""
        self.send("ask", body)
        reply = self._replies[no].get()
        del self._replies[no]
        return reply

    def reply(self, no: int, body: bytes) -> None:
        if no in self._replies:
            self._replies[no].put(body)

    def send(self, kind: str, body: bytes) -> None:
        self._send(Note(self.serial, kind, body))

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Register `callback`, which runs in the reading thread; call it at once if the call is cancelled already."""
        with self._lock:
            if not self.cancelled:
                self._callbacks.append(callback)
                return
        callback()

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:
                logger.exception("a cancel callback failed")

    def close(self) -> None:
        """Drop the callbacks: a late cancel must not reach what the call left behind, such as a closed event loop."""
        with self._lock:
            self._callbacks = []


class ParentSocket:
    """The socket to the parent, read by a thread of its own, so that a busy handler can be told to stop."""

    def __init__(self, sock: socket.socket) -> None:
        self.calls: SimpleQueue[tuple[Link, ProcessCall] | None] = SimpleQueue()
        """Calls to execute, and None once there will be no more."""
        self.busy = False
        self.leaves: Callable[[], None] | None = None
        """Function that leaves the lifespans of this process, once they are entered."""
        self.left = threading.Event()
        self._sock = sock
        self._sending = threading.Lock()
        self._link: Link | None = None

    def send(self, message: Upward) -> None:
        data = frame(message)
        with self._sending:  # threads of a handler send, too: frames must not interleave
            self._sock.sendall(data)

    def read(self) -> None:
        """Read until the parent hangs up or dies, then end the process: nobody would take an answer."""
        try:
            self._read_all()
        finally:
            if self.leaves is not None and not self.busy:
                self.calls.put(None)
                self.left.wait(LEAVE_WITHIN)
            end_group()

    def _read_all(self) -> None:
        frames = Frames(cast("msgspec.msgpack.Decoder[Downward]", msgspec.msgpack.Decoder(Downward)))
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        parent = os.getppid()
        while True:
            if poll.poll(_PARENT_CHECK_MS):
                data = self._sock.recv(1 << 18)
                if not data:
                    return
                for message in frames.feed(data):
                    self._receive(message)
            elif os.getppid() != parent:  # a fork of the dead parent may still hold its end of the socket open
                return

    def _receive(self, message: Downward) -> None:
        match message:
            case Setup():
                _set_up(message)
            case Call():
                self.busy = True
                self._link = Link(message.serial, self.send)
                self.calls.put((self._link, message.call))
            case Cancel() if self._link is not None and self._link.serial == message.serial:
                self._link.cancel()
            case Shutdown() if self._link is not None and self._link.serial == message.serial:
                self._link.on_shutdown()
            case Reply() if self._link is not None and self._link.serial == message.serial:
                self._link.reply(message.no, message.body)


class Usage:
    """Resources that this process has used since the call began."""

    def __init__(self, serial: int) -> None:
        self.memory_fresh = _reset_memory_peak() or serial == 1
        self.cpu_ms = _cpu_ms()

    def cpu_time_ms(self) -> int:
        return _cpu_ms() - self.cpu_ms

    def memory_peak_mb(self) -> int | None:
        return memory_peak_mb(os.getpid()) if self.memory_fresh else None


def _cpu_ms() -> int:
    own, waited_for = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return round((own.ru_utime + own.ru_stime + waited_for.ru_utime + waited_for.ru_stime) * 1000)


def _reset_memory_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        return False
    return True


_preparations: list[str] = []


def _prepare() -> None:
    """Call the preparations at the first call, not at setup: an error is then the call's own, and is retried."""
    while _preparations:
        prepare = cast("Callable[[], object]", find(*_preparations[0].split(":")))
        prepare()
        del _preparations[0]


def _set_up(setup: Setup) -> None:
    _preparations.extend(setup.preparations)
    sys.path[:] = setup.sys_path
    sys.argv[:] = setup.argv
    if setup.logs:
        log_to_stderr(*setup.logs)
    if setup.pythonpath is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = setup.pythonpath


def serve(parent_socket: ParentSocket, invoke: str) -> None:
    while taken := parent_socket.calls.get():
        link, call = taken
        answer = execute(call, link, parent_socket, invoke)
        link.close()
        _flush_output()
        parent_socket.busy = False  # before the answer: the parent may send the next call as soon as it has it
        parent_socket.send(answer)
    if parent_socket.leaves is not None:
        parent_socket.leaves()
    _flush_output()
    parent_socket.left.set()


def execute(call: ProcessCall, link: Link, parent_socket: ParentSocket, invoke: str) -> Answer:
    usage: Usage | None = None
    try:
        run = cast("Callable[[object, bytes, bytes, Link], bytes]", find(*invoke.split(":")))
        _prepare()
        target = find(call.module, call.qualname, call.main_path)
        job = _job_of(target)
        _enter_lifespans(job, parent_socket)
        usage = Usage(link.serial)  # after imports and lifespans, which are no call's own work
        parent_socket.send(Began(link.serial, usage.cpu_ms, usage.memory_fresh))
        with confined(call.cpu_limit, call.memory_limit):
            value = run(_callable(target, job), call.payload, call.context, link)
        return Answer(link.serial, "returned", value, usage.cpu_time_ms(), usage.memory_peak_mb())
    except BaseException as error:  # SystemExit too: a handler may end its call, not its process
        cpu, memory = (usage.cpu_time_ms(), usage.memory_peak_mb()) if usage else (None, None)
        limit = out_of_memory(error, call.memory_limit, memory)
        return Answer(link.serial, "raised", describe(error, limit), cpu, memory)


def find(module: str, qualname: str, main_path: str | None = None) -> object:
    if "<" in qualname:
        raise BadConfig(
            f"{module}.{qualname} cannot be reached from another process", hint="define it at the top of its module"
        )
    target: object = _main_module(main_path) if module == "__main__" else importlib.import_module(module)
    for name in qualname.split("."):
        target = getattr(target, name)
    return target


def _job_of(target: Any) -> Any:
    """Return the job of a function, also if they have different names, or None."""
    if _is_job(target):
        return target
    module = sys.modules.get(getattr(target, "__module__", None) or "")
    jobs = [value for value in vars(module).values() if _is_job(value)] if module else []
    return next((job for job in jobs if job.fn is target), None)


def _callable(target: Any, job: Any) -> object:
    """Return the job's function with its app's middleware around it."""
    return getattr(target, "fn", target) if job is None else job.handler.call


def _enter_lifespans(job: Any, parent_socket: ParentSocket) -> None:
    if job is not None and job.app.registry.lifespans:
        from rota.engine.isolation.child_lifetime import lifetime

        lifetime.enter(job.app.registry)
        parent_socket.leaves = lifetime.leave


def _is_job(value: object) -> bool:
    """Return whether an object is a job, by its class alone: attribute access may fail, as on a proxy."""
    return type(value).__module__ == "rota.job"


def _main_module(path: str | None) -> ModuleType:
    """Import the parent's script under another name, so that its `if __name__ == "__main__"` block does not run."""
    if path is None:
        raise BadConfig("a handler defined in an interactive session cannot run in its own process")
    if MAIN_NAME in sys.modules:
        return sys.modules[MAIN_NAME]
    loader = importlib.machinery.SourceFileLoader(MAIN_NAME, path)  # takes a script of any suffix
    spec = importlib.util.spec_from_loader(MAIN_NAME, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules["__main__"]
    sys.modules[MAIN_NAME] = sys.modules["__main__"] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[MAIN_NAME]
        sys.modules["__main__"] = before
        raise
    return module


def describe(error: BaseException, instead: Mapping[str, str]) -> bytes:
    """Describe an exception as JSON.

    A `__rota_signal__` (a JSON-able dict) is control flow, such as a retry; pass it on.

    `instead` replaces what is known better than the exception says it.
    """
    kind = type(error)
    lines = traceback.format_exception(kind, error, _without_own_frames(error.__traceback__))
    report = {
        "type": kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}",
        "message": _last_part(_text(error)),
        "traceback": _last_part("".join(lines)),
        "signal": getattr(error, "__rota_signal__", None),
        **instead,
    }
    return msgspec.json.encode(report)


def _without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith(_OWN):
        trace = trace.tb_next
    return trace


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<message cannot be shown>"


def _last_part(text: str) -> str:
    """Return the end of a text, which tells most in a traceback. File names in messages may contain invalid UTF-8."""
    return text.encode("utf-8", "backslashreplace")[-_TEXT_LIMIT:].decode("utf-8", "ignore")


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def end_group() -> None:
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _keep_running(_signal: int, _frame: object) -> None:
    """Ignore the signal.

    A service manager may signal the whole control group, but the parent decides when a child ends.
    """


class Forking:
    """Fork hooks that make a process forked by a handler an ordinary one: signals end it, and it closes our socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._mask = threading.local()

    def before(self) -> None:
        """Block signals during the fork: one sent to the new process at once would be swallowed by our handler."""
        self._mask.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})

    def in_parent(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask.before)

    def in_child(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._sock.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask.before)


def main() -> None:
    parser = argparse.ArgumentParser(prog="rota.engine.isolation.child_main")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--invoke", default="rota.engine.isolation.isolated_call:invoke")
    options = parser.parse_args()
    sock = socket.socket(fileno=options.fd)
    sock.set_inheritable(False)
    # Handlers rather than SIG_IGN, which the programs started by a handler would inherit.
    signal.signal(signal.SIGINT, _keep_running)
    signal.signal(signal.SIGTERM, _keep_running)
    forking = Forking(sock)
    os.register_at_fork(before=forking.before, after_in_parent=forking.in_parent, after_in_child=forking.in_child)
    parent_socket = ParentSocket(sock)
    threading.Thread(target=parent_socket.read, name="rota-parent-socket", daemon=True).start()
    serve(parent_socket, options.invoke)


if __name__ == "__main__":
    # Run the imported module, not this copy named `__main__`: otherwise there would be two `Link` classes.
    from rota.engine.isolation.child_main import main as imported_main

    imported_main()
