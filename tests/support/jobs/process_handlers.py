"""Handlers for tests of the process pool, and the entry point that calls them inside a child."""

from __future__ import annotations

import inspect
import mmap
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from typing import Any, ClassVar, NoReturn

import msgspec

from rota.engine.isolation.child_main import Link


def invoke(target: object, payload: bytes, context: bytes, link: Link) -> bytes:
    assert callable(target)
    arguments: dict[str, Any] = msgspec.json.decode(payload)
    offered = {"link": link, "context": msgspec.json.decode(context)}
    wanted = inspect.signature(target).parameters
    return msgspec.json.encode(target(**arguments, **{name: it for name, it in offered.items() if name in wanted}))


class Job:
    def __init__(self, fn: object) -> None:
        self.fn = fn


def add(a: int, b: int) -> int:
    return a + b


add_job = Job(add)


def process_id() -> int:
    return os.getpid()


def surroundings() -> dict[str, Any]:
    return {"path": sys.path, "argv": sys.argv, "pythonpath": os.environ.get("PYTHONPATH"), "stdin": sys.stdin.read()}


class Again(Exception):
    __rota_signal__: ClassVar = {"retry": 5}


def fail(message: str) -> NoReturn:
    raise LookupError(message)


def fail_over_a_file_name() -> NoReturn:
    raise LookupError(os.fsdecode(b"\xff"))


def ask_again() -> NoReturn:
    raise Again


def leave(code: int) -> NoReturn:
    sys.exit(code)


def vanish(code: int) -> NoReturn:
    os._exit(code)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def burn_elsewhere(seconds: float) -> None:
    code = f"import time\nwhile time.process_time() < {seconds}: pass"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)


def hold(megabytes: int) -> int:
    return len(bytearray(b"x") * (megabytes << 20))


def hold_and_spin(megabytes: int, link: Link) -> NoReturn:
    held = bytearray(b"x") * (megabytes << 20)
    burn(0.2)
    link.send("held", str(len(held)).encode())
    while True:
        pass


def sleep_in_subprocess(link: Link) -> int:
    sleeper = subprocess.Popen(["sleep", "1000"])
    link.send("sleeper", f"{os.getpid()} {sleeper.pid}".encode())
    return sleeper.wait()


def vanish_leaving_a_fork(link: Link) -> NoReturn:
    forked = os.fork()
    if forked == 0:
        time.sleep(1000)
    link.send("sleeper", f"{os.getpid()} {forked}".encode())
    os._exit(3)


def until_cancelled(link: Link) -> str:
    told = threading.Event()
    link.on_cancel(told.set)
    link.send("waiting", b"")
    assert told.wait(60)
    return f"cancelled: {link.cancelled}"


def cancelled_yet(link: Link) -> bool:
    return link.cancelled


def signal_self() -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    return "still here"


def end_a_fork() -> int | None:
    forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,))
    forked.start()
    forked.terminate()
    forked.join()
    return forked.exitcode


def rendezvous(link: Link) -> int:
    """Returns only when cancelled, so that a test sees how many run at once."""
    until_cancelled(link)
    return os.getpid()


def outer() -> object:
    def inner() -> None: ...

    return inner


def hold_mapped(megabytes: int) -> int:
    return len(mmap.mmap(-1, megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


_kept: list[bytearray] = []


def keep(megabytes: int) -> int:
    _kept.append(bytearray(b"x") * (megabytes << 20))
    return os.getpid()


def many_threads(count: int) -> int:
    """Each takes a little, of memory that is reserved in large pieces."""
    release = threading.Event()
    threads = [threading.Thread(target=lambda: (bytes(1000), release.wait())) for _ in range(count)]
    for thread in threads:
        thread.start()
    release.set()
    for thread in threads:
        thread.join()
    return count


def soft_limits() -> list[int]:
    return [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA)]


def kill_self(number: int) -> NoReturn:
    os.kill(os.getpid(), number)
    time.sleep(60)
    raise AssertionError("unreachable")
