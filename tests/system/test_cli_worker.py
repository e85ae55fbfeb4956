"""Test `rota dev`, `rota server` and `rota worker` as real processes: what they load and print, and how they stop."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from rota import Order
from rota.app import Rota
from rota.cli import root
from rota.cli.load_app import load_app
from rota.cli.servers.worker import WorkerOptions
from rota.errors import Conflict, Invalid
from tests.support.wait import PATIENCE, wait_for

JOBS = """
import os, time
from rota import Rota

app = Rota()
number = 3

@app.job
def pid() -> int:
    return os.getpid()

@app.job(max_attempts=1)
def slow(path: str) -> None:
    open(path, "w").close()
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", f"sqlite:///{tmp_path / 'rota.db'}")
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if name.startswith(("shop_", "broken_")):
            del sys.modules[name]


@pytest.mark.usefixtures("folder")
def test_an_app_is_loaded_from_the_working_directory() -> None:
    assert sorted(load_app("shop_jobs:app").registry.known()) == ["pid", "slow"]
    assert load_app("shop_jobs") is load_app("shop_jobs:app")


@pytest.mark.parametrize(
    ("target", "error", "hint"),
    [
        ("shop_job:app", "no module 'shop_job'", "did you mean 'shop_jobs'?"),
        ("shop_jobs:ap", "has no 'ap'", "did you mean 'shop_jobs:app'?"),
        ("shop_jobs:number", "is a int, not a Rota", "did you mean 'shop_jobs:app'?"),
        ("shop_jobs.py:app", "is a file", "did you mean 'shop_jobs:app'?"),
        ("broken_import:app", "ModuleNotFoundError: No module named 'no_such_thing'", "broken_import.py, line 2"),
        ("broken_syntax:app", "SyntaxError", "broken_syntax.py, line 1"),
        (":app", "is not the name of a module", "MODULE:APP"),
    ],
)
def test_what_cannot_be_loaded_says_why(folder: Path, target: str, error: str, hint: str) -> None:
    (folder / "broken_import.py").write_text("\nimport no_such_thing\n")
    (folder / "broken_syntax.py").write_text("def (:\n")
    with pytest.raises(Invalid) as caught:
        load_app(target)
    assert error in caught.value.message
    assert hint in (caught.value.hint or "")
    assert CliRunner().invoke(root, ["worker", target]).exit_code == 2


def test_flags_win_over_the_apps_own_settings_until_it_is_connected(sqlite_url: str) -> None:
    app = Rota("postgresql://elsewhere/db", concurrency=3)
    app.configure(database_url=sqlite_url, concurrency=None)
    assert (app.config.database_url, app.config.concurrency, app.dialect.name) == (sqlite_url, 3, "sqlite")
    app.blocking.jobs()
    with pytest.raises(Conflict):
        app.configure(concurrency=4)
    app.close()


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "rota", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def rota(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "rota", *arguments], capture_output=True, text=True, check=False)


def line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("folder")
def test_dev_prints_where_the_page_is_and_what_to_try() -> None:
    with started("dev", "--port", "0") as child:
        assert child.stdout is not None
        page, _, first, second, third, _ = [child.stdout.readline() for _ in range(6)]
        with urllib.request.urlopen(page.split()[1] + "/healthz", timeout=PATIENCE) as answer:
            assert answer.status == 200
        tries = [rota(*line.replace("next", "").split()[1:]) for line in (first, second, third)]
        assert [done.returncode for done in tries] == [0, 0, 0]
        assert tries[0].stdout.split("\t")[1] == "succeeded"
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) == 0
        assert child.stderr is not None
        assert "Traceback" not in child.stderr.read()


@pytest.mark.usefixtures("folder")
def test_a_server_knows_the_apps_jobs_but_does_not_run_them() -> None:
    with started("server", "shop_jobs:app", "--port", "0", "--json") as child:
        assert json.loads(line_of(child))["url"].startswith("http://127.0.0.1:")
        added = rota("run", "enqueue", "pid").stdout.strip()
        assert rota("run", "wait", added, "--timeout", "300ms").returncode == 75
        child.terminate()
        assert child.wait(PATIENCE) == 0


@pytest.mark.usefixtures("folder")
def test_a_worker_works_until_it_is_told_to_stop() -> None:
    with started("worker", "shop_jobs:app", "--name", "w", "--json") as child:
        assert json.loads(line_of(child)) == {"worker": "w", "jobs": ["pid", "slow"]}
        done = rota("run", "enqueue", "pid", "--wait", "--json")
        assert json.loads(done.stdout)["result"] == child.pid
        child.terminate()
        assert child.wait(PATIENCE) == 0


@pytest.mark.usefixtures("folder")
def test_a_worker_without_an_app_runs_jobs_that_need_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_HTTP_ALLOW", "127.0.0.1")
    with started("worker", "--name", "w", "--json", "--metrics-port", "0") as child:
        ready = json.loads(line_of(child))
        assert (ready["worker"], ready["jobs"]) == ("w", [])
        assert rota("job", "create", "ping", "--url", ready["metrics"].replace("metrics", "healthz")).returncode == 0
        done = json.loads(rota("run", "enqueue", "ping", "--wait", "--json").stdout)
        assert (done["state"], done["result"]["status"]) == ("succeeded", 200)
        child.terminate()
        assert child.wait(PATIENCE) == 0


def test_two_processes_stop_together(folder: Path) -> None:
    with started("worker", "shop_jobs:app", "--processes", "2", "--name", "w", "--json") as child:
        names = sorted(json.loads(line_of(child))["worker"] for _ in range(2))
        assert names == ["w-1", "w-2"]
        child.terminate()
        assert child.wait(PATIENCE) == 0


def test_a_process_that_dies_is_replaced(folder: Path) -> None:
    with started("worker", "shop_jobs:app", "--processes", "2", "--json") as child:
        [line_of(child) for _ in range(2)]
        first = json.loads(rota("run", "enqueue", "pid", "--wait", "--json").stdout)["result"]
        assert first != child.pid
        os.kill(first, signal.SIGKILL)
        assert json.loads(line_of(child))["jobs"] == ["pid", "slow"]
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) == 0


@pytest.mark.usefixtures("folder")
def test_a_worker_can_be_watched_and_logs_for_programs() -> None:
    flags = ["--metrics-port", "0", "--log-format", "json", "--name", "w", "--json"]
    with started("worker", "shop_jobs:app", *flags) as child:
        address = json.loads(line_of(child))["metrics"]
        rota("run", "enqueue", "pid", "--wait")
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            text = answer.read().decode()
            assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address.replace("/metrics", "/api/v1/runs"), timeout=PATIENCE)
        assert 'rota_runs_total{job="pid",queue="default",status="succeeded"} 1\n' in text
        assert 'rota_workers{state="alive"} 1\n' in text
        child.terminate()
        assert child.wait(PATIENCE) == 0
        assert child.stderr is not None
        lines = [json.loads(line) for line in child.stderr]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()
    assert lines[-1]["message"] == "stopped"


def test_processes_are_watched_one_port_after_the_other(folder: Path) -> None:
    wanted = WorkerOptions(
        target="a:b", name="w", queues=None, concurrency=None, labels=("gpu",), app_version="1.4", database=None,
        log_level="info", log_format="json", metrics_port=9200, as_json=False,
    )  # fmt: skip
    assert "--metrics-port=9201" in wanted.command(2)
    assert "--log-format=json" in wanted.command(2)
    assert {"--label=gpu", "--app-version=1.4"} <= set(wanted.command(2))
    assert "--metrics-port=0" in msgspec.structs.replace(wanted, metrics_port=0).command(2)


@pytest.mark.usefixtures("folder")
def test_a_worker_says_which_app_it_runs_and_that_it_stopped() -> None:
    with started("worker", "shop_jobs", "--name", "w", "--json") as child:
        line_of(child)
        child.terminate()
        assert child.wait(PATIENCE) == 0
        assert child.stderr is not None
        said = [line.partition("rota.worker: ")[2].rstrip() for line in child.stderr]
    database, *others = [line for line in said if line]
    assert database.startswith("the database is sqlite:////"), "absolute: a relative path is another file elsewhere"
    assert others == ["worker w runs shop_jobs:app: pid, slow", "stopping", "stopped"]


def test_a_second_signal_kills_at_once(folder: Path) -> None:
    with started("worker", "shop_jobs:app", "--processes", "2", "--json") as child:
        [line_of(child) for _ in range(2)]
        begun = folder / "begun"
        rota("run", "enqueue", "slow", json.dumps({"path": str(begun)}))
        wait_for(begun.exists)
        child.terminate()
        assert child.stderr is not None
        assert any("rota.worker: stopping: 1 handler has 20s to finish" in line for line in child.stderr)
        child.terminate()
        assert child.wait(PATIENCE) == 128 + signal.SIGKILL


def test_children_do_not_outlive_a_supervisor_that_was_killed(folder: Path) -> None:
    with started("worker", "shop_jobs:app", "--processes", "2", "--json") as child:
        [line_of(child) for _ in range(2)]
        pid = json.loads(rota("run", "enqueue", "pid", "--wait", "--json").stdout)["result"]
        child.kill()
        wait_for(lambda: not is_alive(pid))


@pytest.mark.usefixtures("folder")
def test_a_mistake_that_stays_one_is_not_started_again() -> None:
    with started("worker", "shop_job:app", "--processes", "2") as child:
        assert child.wait(PATIENCE) == 2


LIFESPAN = """
import os
from rota import Rota, injected

app = Rota()

class Pool:
    pass

@app.lifespan
async def pool(app):
    if os.path.exists("broken"):
        raise ConnectionRefusedError("no pool today")
    print("opened", flush=True)
    yield Pool()
    print("closed", flush=True)

@app.job
def use(pool: Pool = injected) -> str:
    print("used", flush=True)
    return type(pool).__name__
"""


def test_a_worker_enters_its_lifespan_and_leaves_it_at_a_signal(folder: Path) -> None:
    (folder / "shop_lifespan.py").write_text(LIFESPAN)
    app = load_app("shop_lifespan:app")
    command = [sys.executable, "-m", "rota", "worker", "shop_lifespan:app"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        try:
            handle = app.blocking.enqueue(Order("use", {}, {}))
            assert handle.result(timeout=f"{PATIENCE}s") == "Pool"
        finally:
            app.close()
            worker.send_signal(signal.SIGTERM)
            out, _ = worker.communicate(timeout=PATIENCE)
    assert [line for line in out.splitlines() if line in ("opened", "used", "closed")] == ["opened", "used", "closed"]
    assert worker.returncode == 0


def test_a_worker_whose_lifespan_fails_says_so_and_exits(folder: Path) -> None:
    (folder / "shop_lifespan.py").write_text(LIFESPAN)
    (folder / "broken").touch()
    command = [sys.executable, "-m", "rota", "worker", "shop_lifespan:app"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 69
    assert "the lifespan pool could not be entered: ConnectionRefusedError: no pool today" in done.stderr
