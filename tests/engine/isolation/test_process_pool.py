"""Test the process pool with real child processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from rota.engine.isolation import child_main
from rota.engine.isolation.process_pool import ProcessCall, ProcessOutcome, ProcessPool
from rota.errors import Unavailable
from tests.support.jobs import process_handlers
from tests.support.wait import until

HANDLERS = process_handlers.__name__
INVOKE = f"{HANDLERS}:invoke"
SOON = timedelta(seconds=5)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def call(qualname: str, /, *, module: str = HANDLERS, main_path: str | None = None, **arguments: object) -> ProcessCall:
    return ProcessCall(module, qualname, main_path, msgspec.json.encode(arguments), b"{}")


def value(outcome: ProcessOutcome) -> Any:
    return msgspec.json.decode(outcome.value)


def alive(pid: int) -> bool:
    """A zombie that the test's surroundings have yet to reap counts as dead."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def reaped(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


class Messages:
    """Messages that children sent, and a way to wait for them."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bytes]] = []

    def __call__(self, key: str, kind: str, body: bytes) -> None:
        self.seen.append((key, kind, body))

    def kinds(self, key: str) -> list[str]:
        return [kind for seen_key, kind, _ in self.seen if seen_key == key]

    async def first(self, kind: str) -> bytes:
        await until(lambda: any(seen == kind for _, seen, _ in self.seen))
        return next(body for _, seen, body in self.seen if seen == kind)


@pytest.fixture
def messages() -> Messages:
    return Messages()


@pytest.fixture
async def pool(messages: Messages) -> AsyncIterator[ProcessPool]:
    pool = ProcessPool(4, on_message=messages, invoke=INVOKE)
    yield pool
    await pool.close(SOON)


async def test_a_result_comes_back(pool: ProcessPool, messages: Messages) -> None:
    outcome = await pool.run("a", call("add", a=2, b=3))
    assert (outcome.status, value(outcome)) == ("returned", 5)
    assert messages.kinds("a") == ["began"]


async def test_a_job_object_stands_for_its_function(pool: ProcessPool) -> None:
    assert value(await pool.run("a", call("add_job", a=2, b=3))) == 5


async def test_a_large_payload_goes_both_ways(pool: ProcessPool) -> None:
    text = "ü" * 1_000_000
    assert value(await pool.run("b", call("add", a=text, b="!"))) == text + "!"


async def test_imports_behave_like_the_parents(pool: ProcessPool) -> None:
    seen = value(await pool.run("a", call("surroundings")))
    assert seen == {
        "path": sys.path,
        "argv": sys.argv,
        "pythonpath": os.environ.get("PYTHONPATH"),
        "stdin": "",
    }


async def test_an_exception_is_told_without_our_own_frames(pool: ProcessPool) -> None:
    outcome = await pool.run("a", call("fail", message="no such row"))
    told = value(outcome)
    assert outcome.status == "raised"
    assert (told["type"], told["message"], told["signal"]) == ("LookupError", "no such row", None)
    assert "in fail" in told["traceback"]
    assert "child.py" not in told["traceback"]


async def test_a_long_or_odd_message_is_cut_and_made_readable(pool: ProcessPool) -> None:
    told = value(await pool.run("a", call("fail", message="ü" * 20_000 + "the end")))
    assert told["message"].endswith("the end")
    assert len(told["message"].encode()) <= 8 * 1024 >= len(told["traceback"].encode())
    odd = value(await pool.run("b", call("fail_over_a_file_name")))
    assert odd["message"] == "\\udcff"


async def test_a_wish_in_an_exception_is_passed_on(pool: ProcessPool) -> None:
    told = value(await pool.run("a", call("ask_again")))
    assert told["type"] == f"{HANDLERS}.Again"
    assert told["signal"] == {"retry": 5}


async def test_exit_ends_the_call_and_not_the_process(pool: ProcessPool) -> None:
    pid = value(await pool.run("a", call("process_id")))
    outcome = await pool.run("b", call("leave", code=7))
    assert (outcome.status, value(outcome)["type"], value(outcome)["message"]) == ("raised", "SystemExit", "7")
    assert value(await pool.run("c", call("process_id"))) == pid


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (call("missing"), "AttributeError"),
        (call("f", module="no.such.module"), "ModuleNotFoundError"),
        (call("outer.<locals>.inner"), "rota.errors.BadConfig"),
        (call("f", module="__main__"), "rota.errors.BadConfig"),
    ],
)
async def test_a_handler_that_cannot_be_found(pool: ProcessPool, wanted: ProcessCall, kind: str) -> None:
    outcome = await pool.run("a", wanted)
    assert (outcome.status, value(outcome)["type"]) == ("raised", kind)


async def test_a_handler_in_the_parents_script(pool: ProcessPool, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(
        "import sys\n"
        "def where(): return [__name__, sys.modules['__main__'].__name__]\n"
        "if __name__ == '__main__': sys.exit('this part belongs to the parent')\n"
    )
    for key in ("first", "again"):
        outcome = await pool.run(key, call("where", module="__main__", main_path=str(script)))
        assert value(outcome) == ["__rota_main__", "__rota_main__"]


async def test_cpu_time_counts_the_call_and_the_programs_it_ran(pool: ProcessPool) -> None:
    burnt = await pool.run("a", call("burn", seconds=0.2))
    idle = await pool.run("b", call("add", a=1, b=1))
    elsewhere = await pool.run("c", call("burn_elsewhere", seconds=0.2))
    assert burnt.cpu_time_ms is not None
    assert idle.cpu_time_ms is not None
    assert elsewhere.cpu_time_ms is not None
    assert 190 <= burnt.cpu_time_ms < 400
    assert idle.cpu_time_ms < 50
    assert 190 <= elsewhere.cpu_time_ms < 600


@linux_only
async def test_memory_peak_is_each_calls_own(pool: ProcessPool) -> None:
    own = bytearray(b"x") * (150 << 20)  # the parent's size is none of the child's business
    outcomes = [await pool.run(str(size), call("hold", megabytes=size)) for size in (0, 100, 1)]
    small, large, small_again = [outcome.memory_peak_mb or 0 for outcome in outcomes]
    assert len(own) == 150 << 20
    assert 5 < small < 80
    assert 100 < large < small + 130
    assert abs(small_again - small) < 20


@pytest.mark.parametrize(("serial", "fresh"), [(1, True), (2, False)])
def test_a_memory_peak_that_cannot_be_reset_is_only_the_first_calls(
    monkeypatch: pytest.MonkeyPatch, serial: int, fresh: bool
) -> None:
    monkeypatch.setattr(child_main, "_reset_memory_peak", lambda: False)
    usage = child_main.Usage(serial)
    assert usage.memory_fresh is fresh
    assert fresh or usage.memory_peak_mb() is None


async def test_kill_ends_a_busy_loop_and_says_what_it_used(pool: ProcessPool, messages: Messages) -> None:
    running = asyncio.create_task(pool.run("a", call("hold_and_spin", megabytes=60)))
    await messages.first("held")
    pool.kill("a")
    outcome = await running
    assert (outcome.status, value(outcome)) == ("died", {"exit_code": None, "signal": signal.SIGKILL, "ours": True})
    assert outcome.cpu_time_ms is not None
    assert 190 <= outcome.cpu_time_ms < 2_000
    if sys.platform == "linux":
        assert outcome.memory_peak_mb is not None
        assert 60 < outcome.memory_peak_mb < 140
    assert (await pool.run("b", call("add", a=1, b=1))).status == "returned"


async def test_kill_takes_the_handlers_programs_along(pool: ProcessPool, messages: Messages) -> None:
    running = asyncio.create_task(pool.run("a", call("sleep_in_subprocess")))
    pid, sleeper = map(int, (await messages.first("sleeper")).split())
    assert alive(sleeper)
    pool.kill("a")
    assert (await running).status == "died"
    await until(lambda: not alive(sleeper))
    assert reaped(pid)


async def test_kill_before_a_child_is_there(pool: ProcessPool) -> None:
    running = asyncio.create_task(pool.run("a", call("vanish", code=9)))
    await asyncio.sleep(0)
    pool.kill("a")
    outcome = await running
    assert (outcome.status, value(outcome)) == ("died", {"exit_code": None, "signal": signal.SIGKILL, "ours": True})


async def test_cancelling_the_caller_kills_the_child(pool: ProcessPool, messages: Messages) -> None:
    running = asyncio.create_task(pool.run("a", call("sleep_in_subprocess")))
    pid, sleeper = map(int, (await messages.first("sleeper")).split())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: reaped(pid) and not alive(sleeper))
    assert value(await pool.run("a", call("process_id"))) != pid


async def test_cancelling_the_caller_while_its_child_starts(pool: ProcessPool) -> None:
    running = asyncio.create_task(pool.run("a", call("vanish", code=9)))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await pool.run("a", call("add", a=1, b=1))).status == "returned"


async def test_a_request_to_cancel_reaches_the_handler(pool: ProcessPool, messages: Messages) -> None:
    running = asyncio.create_task(pool.run("a", call("until_cancelled")))
    await messages.first("waiting")
    pool.request_cancel("a")
    assert value(await running) == "cancelled: True"
    assert value(await pool.run("b", call("cancelled_yet"))) is False


async def test_a_request_to_cancel_before_a_child_is_there(pool: ProcessPool) -> None:
    running = asyncio.create_task(pool.run("a", call("until_cancelled")))
    await asyncio.sleep(0)
    pool.request_cancel("a")
    assert value(await running) == "cancelled: True"
    pool.request_cancel("a")
    pool.kill("a")


async def test_a_child_that_vanishes(pool: ProcessPool) -> None:
    outcome = await pool.run("a", call("vanish", code=9))
    assert (outcome.status, value(outcome)) == ("died", {"exit_code": 9, "signal": None})
    assert outcome.cpu_time_ms is not None
    assert (await pool.run("b", call("add", a=1, b=1))).status == "returned"


async def test_a_fork_left_behind_neither_hides_the_death_nor_survives_it(
    pool: ProcessPool, messages: Messages
) -> None:
    outcome = await pool.run("a", call("vanish_leaving_a_fork"))
    assert value(outcome) == {"exit_code": 3, "signal": None}
    _, forked = map(int, (await messages.first("sleeper")).split())
    await until(lambda: not alive(forked))


async def test_a_child_killed_while_idle_is_noticed_and_replaced(pool: ProcessPool) -> None:
    pid = value(await pool.run("a", call("process_id")))
    os.kill(pid, signal.SIGKILL)
    outcome = await pool.run("b", call("process_id"))  # at once, before its end can have been noticed
    assert value(outcome) != pid
    os.kill(value(outcome), signal.SIGKILL)
    await until(lambda: reaped(value(outcome)))


async def test_signals_for_the_whole_service_leave_a_child_and_not_its_forks(pool: ProcessPool) -> None:
    assert value(await pool.run("a", call("signal_self"))) == "still here"
    assert value(await pool.run("b", call("end_a_fork"))) == -signal.SIGTERM


async def test_four_at_a_time_and_the_fifth_waits(pool: ProcessPool, messages: Messages) -> None:
    keys = ["a", "b", "c", "d", "e"]
    running = [asyncio.create_task(pool.run(key, call("rendezvous"))) for key in keys]
    await until(lambda: [kind for _, kind, _ in messages.seen].count("waiting") == 4)
    assert messages.kinds("e") == []
    for key in keys:
        pool.request_cancel(key)
    pids = [value(outcome) for outcome in await asyncio.gather(*running)]
    assert len(set(pids[:4])) == 4
    assert pids[4] in pids[:4]


async def test_a_key_is_one_call_at_a_time(pool: ProcessPool) -> None:
    running = asyncio.create_task(pool.run("a", call("until_cancelled")))
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="running"):
        await pool.run("a", call("add", a=1, b=1))
    pool.request_cancel("a")
    await running


async def test_a_child_is_replaced_after_its_last_call() -> None:
    pool = ProcessPool(1, max_calls_per_child=2, invoke=INVOKE)
    first, second, third = [value(await pool.run(key, call("process_id"))) for key in "abc"]
    assert first == second != third
    await until(lambda: reaped(first))
    await pool.close(SOON)


async def test_an_idle_child_is_let_go() -> None:
    pool = ProcessPool(1, idle_limit=timedelta(milliseconds=1), invoke=INVOKE)
    pid = value(await pool.run("a", call("process_id")))
    await until(lambda: reaped(pid))
    await pool.close(SOON)


async def test_close_ends_idle_and_busy_children(messages: Messages) -> None:
    pool = ProcessPool(2, on_message=messages, invoke=INVOKE)
    running = asyncio.create_task(pool.run("a", call("sleep_in_subprocess")))
    pid, sleeper = map(int, (await messages.first("sleeper")).split())
    idle = value(await pool.run("b", call("process_id")))
    await pool.close(SOON)
    assert (await running).status == "died"
    assert reaped(pid)
    assert reaped(idle)
    await until(lambda: not alive(sleeper))
    with pytest.raises(Unavailable):
        await pool.run("c", call("add", a=1, b=1))


async def test_close_kills_a_child_that_does_not_end(messages: Messages) -> None:
    pool = ProcessPool(1, on_message=messages, invoke=INVOKE)
    running = asyncio.create_task(pool.run("a", call("sleep_in_subprocess")))
    pid = int((await messages.first("sleeper")).split()[0])
    os.kill(pid, signal.SIGSTOP)
    closing = asyncio.create_task(pool.close(timedelta(milliseconds=50)))
    await asyncio.sleep(0)
    pool.request_cancel("a")  # comes too late, which is no error
    await closing
    assert (await running).status == "died"
    assert reaped(pid)


async def test_a_failing_listener_harms_nobody() -> None:
    def refuse(key: str, kind: str, body: bytes) -> None:
        raise RuntimeError(kind)

    pool = ProcessPool(1, on_message=refuse, invoke=INVOKE)
    assert (await pool.run("a", call("add", a=1, b=1))).status == "returned"
    await pool.close(SOON)


PARENT = f"""
import asyncio
from rota.engine.isolation.process_pool import ProcessCall, ProcessPool

def show(key, kind, body):
    if kind == "sleeper":
        print(body.decode(), flush=True)

async def main():
    pool = ProcessPool(1, on_message=show, invoke="{INVOKE}")
    await pool.run("a", ProcessCall("{HANDLERS}", "sleep_in_subprocess", None, b"{{}}", b"{{}}"))

asyncio.run(main())
"""


@linux_only
async def test_a_child_does_not_outlive_its_parent() -> None:
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE, env=environ
    )
    assert parent.stdout is not None
    pid, sleeper = map(int, (await parent.stdout.readline()).split())
    assert alive(pid)
    assert alive(sleeper)
    parent.kill()
    await parent.communicate()
    await until(lambda: not alive(pid) and not alive(sleeper))


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _zombies() -> list[str]:
    tasks = Path("/proc/self/task").glob("*/children")
    return [pid for task in tasks for pid in task.read_text().split() if not alive(int(pid))]


async def _use_a_pool() -> None:
    messages = Messages()
    pool = ProcessPool(2, on_message=messages, invoke=INVOKE)
    running = asyncio.create_task(pool.run("a", call("hold_and_spin", megabytes=0)))
    assert value(await pool.run("b", call("add", a=2, b=3))) == 5
    await messages.first("held")
    pool.kill("a")
    assert (await running).status == "died"
    assert (await pool.run("c", call("vanish", code=1))).status == "died"
    await pool.close(SOON)


@linux_only
async def test_nothing_is_left_open_and_no_zombie_stays() -> None:
    before = _open_files()
    await _use_a_pool()
    assert _open_files() == before
    assert not _zombies()


def test_it_works_on_uvloop() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_use_a_pool())
