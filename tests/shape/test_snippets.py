"""Every snippet of the documentation works: files are written, Python is run, consoles are typed, in order."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases.postgres import PostgresServer
from tests.support.documents.pages import ROOT, Part, Typed, pages, parts, typed
from tests.support.documents.terminal import READY, Terminal
from tests.support.servers.ports import free_port

LANGUAGES_THAT_RUN = ("python", "console")
STAYS = re.compile(r"\brota (?:worker|server|dev)\b")
PORT = "127.0.0.1:7682"  # what pages say; a test has one of its own
POSTGRES = re.compile(r"postgresql://[^\s'\"]+")


def runs(part: Part) -> bool:
    return part.reason is None and part.language in LANGUAGES_THAT_RUN


def working_pages() -> list[Path]:
    return [page for page in pages() if any(map(runs, parts(page)))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


@pytest.fixture
def database(page: Path, request: pytest.FixtureRequest) -> Iterator[str | None]:
    if not any(part.is_comment and (part.language, part.text) == ("needs", "postgresql") for part in parts(page)):
        yield None
        return
    server: PostgresServer = request.getfixturevalue("postgres_cluster")
    url = server.create_database()
    yield url
    server.drop_database(url)


@pytest.mark.parametrize("page", working_pages(), ids=name_of)
def test_snippets_work_in_order(page: Path, tmp_path: Path, database: str | None) -> None:
    reader = Reader(tmp_path, free_port(), database)
    with Terminal(tmp_path, reader.environment) as terminal:
        for number, part in enumerate(parts(page)):
            reader.follow(terminal, number, part)


class Reader:
    """Does what a page says, in a folder of this machine."""

    def __init__(self, folder: Path, port: int, database: str | None) -> None:
        self._folder = folder
        self._port = port
        self._database = database

    @property
    def environment(self) -> dict[str, str]:
        urls = dict.fromkeys(["ROTA_DATABASE_URL", "DATABASE_URL"], self._database) if self._database else {}
        return {"ROTA_PORT": str(self._port), **urls}

    def follow(self, terminal: Terminal, number: int, step: Part) -> None:
        if step.is_comment:
            self._obey(terminal, step)
        elif step.reason is None:
            name = step.options.get("file")
            if step.language == "python":
                self._run(terminal, name or f"snippet_{number}.py", step.text)
            elif name:
                self._write(name, step.text)
            elif step.language == "console" and "background" in step.options:
                until = step.options.get("until", READY)
                terminal.start(step.options["background"] or "background", self._here(step.text), until)
            elif step.language == "console":
                for one in typed(step.text):
                    self._type(terminal, one)

    def _obey(self, terminal: Terminal, step: Part) -> None:
        if step.language == "type":
            self._type(terminal, Typed(step.text))
        elif step.language == "stop":
            terminal.end(step.text, signal.SIGTERM)
        elif step.language == "kill":
            terminal.end(step.text, signal.SIGKILL)
        elif step.language == "start" and not terminal.start_again(step.text):
            terminal.start("beside", self._here(step.text))

    def _run(self, terminal: Terminal, name: str, text: str) -> None:
        self._write(name, text)
        tool = "-m pytest -q " if Path(name).name.startswith("test_") else ""
        self._type(terminal, Typed(f"python {tool}{name}"))

    def _write(self, name: str, text: str) -> None:
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._here(text))

    def _type(self, terminal: Terminal, one: Typed) -> None:
        if one.beside:
            terminal.start("typed", self._here(one.beside), until=READY if STAYS.search(one.beside) else "")
            return
        code, output = terminal.type(self._here(one.command))
        output = output.replace(f"127.0.0.1:{self._port}", PORT)
        assert code == one.exit_code, f"{one.command}\nended with {code}:\n{output}"
        assert one.is_answered_by(output), f"{one.command}\nprinted:\n{output}\ninstead of:\n{one.answer}"

    def _here(self, text: str) -> str:
        """Addresses of this test instead of those that readers have."""
        text = text.replace(PORT, f"127.0.0.1:{self._port}")
        return POSTGRES.sub(self._database, text) if self._database else text


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_what_is_not_run_says_why_and_is_python_all_the_same(page: Path) -> None:
    for part in parts(page):
        if part.reason is not None and part.language == "python":
            compile(part.text, page.name, "exec")
        if part.reason is not None and part.language == "console":
            assert len(part.reason) > 10, f"{page.name}: say why, as in `console not-run: it needs the network`"


@pytest.mark.parametrize(
    ("answer", "output", "fits"),
    [
        ([], "anything", True),
        (["a  b"], "a b\n", True),
        (["a b"], "a b\nc\n", False),
        (["…  queued"], "01a1 queued", True),
        (["… queued"], "01a1 running", False),
        (["… queued … b"], "01a1 queued b", True),
        (["a", "…", "z"], "a\nb\nc\nz", True),
        (["a", "…", "z"], "a\nz", True),
        (["a", "…", "z"], "a\nb", False),
        (["…", "1 + 1"], "x\ny\n1 + 1\n", True),
    ],
)
def test_what_a_command_prints_is_compared(answer: list[str], output: str, fits: bool) -> None:
    assert Typed("x", answer).is_answered_by(output) is fits


def test_a_console_is_read_like_a_shell_would() -> None:
    text = "$ echo 'a\nb'  # exit code 3\na\nb\n$ curl x \\\n    -d 1\n$ for i in 1; do\n  echo $i\ndone\n1\n"
    assert [(one.exit_code, one.answer) for one in typed(text)] == [(3, ["a", "b"]), (0, []), (0, ["1"])]
    assert [one.command for one in typed("cd a\nID=$(x)\ncat <<END\nb\nEND\n# a comment")] == [
        "cd a",
        "ID=$(x)",
        "cat <<END\nb\nEND",
        "# a comment",
    ]
