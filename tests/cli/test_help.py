"""Help of every command: a line that says what it does, examples, option texts, --json, and completion."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from rota.app import Rota
from rota.cli import EXIT_CODES, root
from rota.cli.program import sections_of
from rota.cli.shell_completion import CompletedName
from rota.store import Store, open_database
from tests.support.processes.command_line import rota

SOURCES = Path(__file__).parents[2] / "src/rota"
WITHOUT_DATABASE = {"rota init", "rota cron", "rota completion"}
NOT_OFFERED = {
    "rota job create",
    "rota schedule create",
    "rota notification create",
    "rota token create",
    "rota worker",
}


def below(command: click.Command, path: str = "rota") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from below(one, f"{path} {name}")


EVERY = dict(below(root))
COMMANDS = {path: command for path, command in EVERY.items() if not isinstance(command, click.Group)}


def options_of(command: click.Command) -> set[str]:
    return {word for param in command.params for word in (*param.opts, *param.secondary_opts)}


def test_there_are_many() -> None:
    assert len(COMMANDS) > 70


@pytest.mark.parametrize("path", EVERY)
def test_it_says_what_it_does_and_how_it_is_typed(path: str) -> None:
    command = EVERY[path]
    first, *rest = (command.help or "").split("\n")
    assert first.endswith(".")
    assert len(first) <= 110
    assert rest[:1] in ([], [""])  # one line, then more if there is more
    shown = rota(*path.split()[1:], "--help").stdout
    examples = shown.partition("Examples:")[2]
    assert re.search(rf"^ +(\w+=\$\(|eval \"\$\()?{path}\b", examples, re.MULTILINE), shown
    told = {param.name: param.help for param in command.params if isinstance(param, click.Option) and not param.hidden}
    assert [name for name, words in told.items() if not words] == []


def test_every_command_takes_json_and_names_its_database() -> None:
    assert {path for path, command in COMMANDS.items() if "--json" not in options_of(command)} == set()
    without = {path for path, command in COMMANDS.items() if "--database" not in options_of(command)}
    assert without == WITHOUT_DATABASE


def test_its_examples_are_of_options_that_it_has() -> None:
    for path, command in COMMANDS.items():
        for line in (command.epilog or "").splitlines():
            if f"{path} " in line:
                typed = re.split(r" {2,}| [|>] ?| \|\| | && |\)", line.partition(f"{path} ")[2])[0]
                known = options_of(command) | {"--help"}
                assert [word for word in re.findall(r"(?<!\S)--[a-z-]+", typed) if word not in known] == [], line


def test_every_command_has_its_place() -> None:
    placed = sections_of(list(root.commands))
    assert sorted(name for names in placed.values() for name in names) == sorted(root.commands)
    assert "Other commands" not in placed
    assert sections_of(["run", "something"]) == {"Monitoring": ["run"], "Other commands": ["something"]}
    shown = rota("--help").stdout
    assert {name for name in root.commands if re.search(rf"^  {name} +\S", shown, re.MULTILINE)} == set(root.commands)


def test_every_exit_code_is_told() -> None:
    told = re.findall(r"^ +(\d+) ", EXIT_CODES, re.MULTILINE)
    assert {"0", "1", "2", "3", "4", "5", "6", "69", "75", "78", "130"} <= set(told)


def test_names_and_ids_are_offered_wherever_they_are_wanted() -> None:
    wanted = {"job", "name", "id", "who", "queue", "schedule"}
    for path, command in COMMANDS.items():
        for param in command.params:
            if param.name in wanted and isinstance(param.type, click.types.StringParamType):
                assert (path in NOT_OFFERED and param.name == "name") or isinstance(param.type, CompletedName), (
                    path,
                    param,
                )


@pytest.fixture
def used(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create a job, a schedule and a run; return the run's id."""
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    app = Rota(sqlite_url)

    @app.job(queue="mail")
    def greet() -> None:
        """Greets
        somebody."""

    async def introduce() -> None:
        store = Store(open_database(sqlite_url))
        await store.save_jobs(app.registry.definitions())
        await store.close()

    asyncio.run(introduce())
    assert rota("schedule", "create", "news", "greet", "--every", "1h").exit_code == 0
    return rota("run", "enqueue", "greet", "--delay", "1h").stdout.strip()


def offered(*words: str) -> dict[str, str | None]:
    *before, incomplete = words
    shell = ShellComplete(root, {}, "rota", "_ROTA_COMPLETE")
    return {item.value: item.help for item in shell.get_completions(before, incomplete)}


def test_what_is_offered(used: str) -> None:
    assert offered("job", "get", "") == {"greet": "Greets somebody."}
    assert offered("job", "get", "x") == {}
    assert offered("run", "ls", "--job", "gr") == {"greet": "Greets somebody."}
    assert offered("run", "enqueue", "") == {"greet": "Greets somebody."}
    assert offered("schedule", "pause", "n") == {"news": "greet"}
    assert offered("schedule", "create", "") == {}
    assert offered("run", "get", used[:4]) == {used: "scheduled greet"}
    assert offered("queue", "pause", "m") == {"mail": None}
    assert "top" in offered("t")
    for words in (("workers", "get"), ("token", "revoke"), ("notification", "get")):
        assert set(offered(*words, "")) <= {"web"}


def test_what_a_shell_would_obey_is_not_offered(used: str) -> None:
    """Bash inserts a completion unquoted, so a name could be executed at Enter."""
    for name in ("$(touch me)", "`id`", "a b", "a;b", "--database=x", "~root", "*", "Grüße:a/b@c,d_e-f.g"):
        assert rota("schedule", "create", "--every", "1h", "--", name, "greet").exit_code == 0
    assert set(offered("schedule", "pause", "")) == {"news", "Grüße:a/b@c,d_e-f.g"}


def test_nothing_is_offered_while_the_database_is_away(used: str, tmp_path: Path) -> None:
    away = f"sqlite:///{tmp_path / 'nothing.db'}"
    assert offered("job", "get", "--database", away, "") == {}
    assert offered("--server", "http://127.0.0.1:1", "job", "get", "") == {}
    assert not (tmp_path / "nothing.db").exists()


def test_short_forms_mean_the_long_ones_which_help_and_completion_show() -> None:
    assert rota("run", "ls", "--help").stdout == rota("run", "list", "--help").stdout
    assert rota("job", "rm", "--help").stdout.startswith("Usage: rota job delete ")
    assert "Short forms: ls for list, rm for delete." in rota("job", "--help").stdout
    assert "Short forms: ls for list." in rota("run", "--help").stdout
    assert "Short forms" not in rota("import", "--help").stdout
    assert {"list", "delete"} <= set(offered("job", ""))
    assert not {"ls", "rm"} & set(offered("job", ""))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("job add", "create"),
        ("run add", "enqueue"),
        ("run show", "get"),
        ("schedule edit", "update"),
        ("quota set", "update"),
        ("schedule remove", "delete"),
        ("token remove", "revoke"),
        ("workers lst", "list"),
        ("notify", "notification"),
        ("run explain", "rota explain"),
        ("schedule explain", "rota explain"),
    ],
)
def test_a_word_of_other_programs_is_answered_with_ours(typed: str, meant: str) -> None:
    done = rota(*typed.split())
    assert done.exit_code == 2
    assert done.stderr == f"error: no such command '{typed.rsplit(maxsplit=1)[-1]}'\nhint: did you mean {meant}?\n"


def named_commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the words after `rota` of each command that texts in the sources name, as far as they are literal."""
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for mark, named in re.findall(r"(^|`)rota ((?:[a-z][a-z-]*(?: |$|(?=`)))+)", node.value):
                    words = named.split()
                    if mark or words[0] in root.commands:  # else it is a sentence about rota
                        yield file.name, words


def test_messages_name_commands_that_exist() -> None:
    """What follows a command that is no group is its argument."""
    count = 0
    for file, words in named_commands():
        command: click.Command | None = root
        for word in words:
            if isinstance(command, click.Group):
                command = command.get_command(click.Context(command), word)
                assert command is not None, f"{file}: rota {' '.join(words)}"
                count += 1
    assert count > 500
