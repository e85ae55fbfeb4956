"""Test `app.run()` and `app.background()` in programs without an event loop."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rota import Invalid, Rota, RunState, every
from rota.engine.engine import Engine
from tests.support.processes.rota_process import Processes

PROGRAM = """
from rota import Rota, every

app = Rota("sqlite:///own.db")

@app.job
def tick() -> None:
    print("ticked", flush=True)

app.schedule("tick", tick, every("1s"))
if __name__ == "__main__":
    app.run()
    print("and went on", flush=True)
"""


def test_work_is_done_beside_the_program(database_url: str) -> None:
    app = Rota(database_url)

    @app.job
    def whereabouts() -> str:
        return threading.current_thread().name

    with app.background(name="beside") as client:
        first = client.wait(whereabouts.enqueue().id, "60s")
        assert (first.state, first.result != threading.current_thread().name) == (RunState.SUCCEEDED, True)
    later = whereabouts.enqueue()
    assert app.blocking.get(later.id).state is RunState.QUEUED
    with app.background():  # and once more
        assert app.blocking.wait(later.id, "60s").state is RunState.SUCCEEDED
    app.close()


def left_since(before: set[threading.Thread]) -> set[str]:
    """The threads of a loop's executor are told to end, and not waited for."""
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(2)
    return {thread.name for thread in left if thread.is_alive()}


def test_a_block_that_raises_stops_the_work(sqlite_url: str) -> None:
    app = Rota(sqlite_url)
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError), app.background():
        raise ZeroDivisionError
    app.close()
    assert left_since(before) == set()


@pytest.mark.parametrize("at", ["start", "stop"])
def test_an_interrupt_leaves_nothing_at_work(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """A heartbeat that nobody stopped would hold on to its runs for as long as the program lives."""
    before, act = set(threading.enumerate()), getattr(Engine, at)

    async def interrupted(engine: Engine, *how: object) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # it is told when this is over
        await act(engine, *how)

    monkeypatch.setattr(Engine, at, interrupted)
    app = Rota(sqlite_url)
    with pytest.raises(KeyboardInterrupt), app.background() as client:
        client.time()
    app.close()
    assert left_since(before) == set()
    monkeypatch.undo()
    with app.background():
        """It can be started again."""
    app.close()


def test_a_program_works_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PROGRAM)
    with Processes(tmp_path) as processes, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))  # as systemd does for services of Type=notify
        manager.settimeout(60)
        program = processes.python("own.py", environment={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert manager.recv(100) == b"READY=1"
        program.until_said("ticked").terminate()
        assert manager.recv(100) == b"STOPPING=1"
        assert program.wait() == 0
        assert "and went on" in program.log


def test_what_comes_after_a_stop_is_not_ended_with_it(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rota worker` must be over by then; a program may have things to put in order."""
    ended: list[int] = []
    before = set(threading.enumerate())

    async def told_to_stop(*_: object, on_signal: Callable[[float], None], **__: object) -> int:
        on_signal(0.05)
        return 0

    monkeypatch.setattr("rota.server.serve", told_to_stop)
    monkeypatch.setattr("rota.process.os._exit", ended.append)
    Rota(sqlite_url).run()
    assert (left_since(before), ended) == (set(), [])


def test_only_the_main_thread_hears_signals(sqlite_url: str) -> None:
    app = Rota(sqlite_url)
    app.schedule("never", app.job(never), every("1h"))
    refused: list[Invalid] = []

    def elsewhere() -> None:
        try:
            app.run()
        except Invalid as error:
            refused.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "main thread" in str(refused)


def never() -> None: ...
