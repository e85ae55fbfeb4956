"""What programs import at their start. Counts of modules, because times differ from machine to machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rota.cli.command_table import HOMES, CommandTable

ROOT = Path(__file__).parents[2]
COUNT = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
"""
DECLARATIONS = """
from rota import Rota, every
app = Rota("sqlite:///never.db", max_payload=1000)
@app.job(schedule=every("1h"), max_concurrency=2, unique=True, notify="mailto:ops@example.com")
def crawl(url: str = "a") -> str: ...
app.configure(lease="30s")
app.close()
"""
COMMAND = COUNT + "from rota.cli import root\nroot.main({})"
BELOW_OTHERS = {"run": {"monitoring", "external"}, "schedule": {"monitoring"}, "worker": {"workers"}}
"""Topics that a command needs besides its own: commands of theirs are below it, or it suggests them."""
SHARED = {"command_table", "connect", "load_app", "options", "program", "shell_completion", "terminal", "verbs"}
DRIVERS_AND_SERVERS = {"apsw", "asyncpg", "httpx", "starlette", "uvicorn"}


def imported_by(program: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(modules)


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "rota"}


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_the_root_command_imports_no_other(word: str) -> None:
    modules = imported_by(COMMAND.format([word]))
    assert {name for name in modules if name.startswith(("rota.client", "rota.store", "rota.engine"))} == set()
    assert not modules & (DRIVERS_AND_SERVERS | {"asyncio"})
    assert len(ours(modules)) <= 55, sorted(ours(modules))


@pytest.mark.parametrize("name", sorted(HOMES))
def test_a_command_imports_only_its_topic(name: str) -> None:
    modules = imported_by(COMMAND.format([name, "--help"]))
    topic = HOMES[name].module.split(".")[2]
    topics = {module.split(".")[2] for module in modules if module.startswith("rota.cli.")}
    assert topics - SHARED == {topic} | BELOW_OTHERS.get(name, set())
    assert not modules & DRIVERS_AND_SERVERS


def test_importing_rota_imports_nothing_of_it() -> None:
    assert ours(imported_by(COUNT + "import rota")) == {"rota", "rota.late", "rota.version"}


def test_an_app_imports_no_driver_no_server_and_no_command() -> None:
    modules = imported_by(COUNT + "from rota import Rota")
    assert not modules & DRIVERS_AND_SERVERS
    above = {"cli", "api", "ui", "server", "testing", "django", "remote"}
    assert {name for name in ours(modules) if name.split(".")[1:2] and name.split(".")[1] in above} == set()
    assert len(modules) <= 360, len(modules)


def test_an_app_that_declares_imports_neither_client_nor_store_nor_engine() -> None:
    modules = ours(imported_by(COUNT + DECLARATIONS))
    assert not modules & {"rota.client.client", "rota.client.parts", "rota.store.store", "rota.engine.engine"}
    assert len(modules) <= 190, sorted(modules)


def test_summaries_are_the_first_sentences_of_help() -> None:
    table = CommandTable()
    for name in HOMES:
        assert table.short_help(name, 1000) == table[name].get_short_help_str(limit=1000), name


def test_the_table_is_a_mapping_like_any_other() -> None:
    table = CommandTable()
    assert (list(table), len(table)) == (list(HOMES), len(HOMES))
    table["mine"] = table["cron"]
    assert table.short_help("mine", 80) == table.short_help("cron", 80)
    assert "mine" in table
    assert len(table) == len(HOMES) + 1
    del table["mine"], table["cron"]
    assert "mine" not in table
    assert len(table) == len(HOMES) - 1
    with pytest.raises(KeyError):
        table["cron"]
