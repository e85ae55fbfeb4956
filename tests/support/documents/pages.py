"""Parse a documentation page for its test: fenced blocks, and instructions in comments.

```python, ```python file=jobs.py     written, and run
```toml file=rota.toml                written; of any language
```console                            typed, line by line; see `typed`
```console background=worker          started, and left running until the page ends
```console not-run: why               left alone
<!-- stop: worker -->                 also `kill`, and `start`: again, or another command beside the page
<!-- type: mkdir out -->              what readers need not see
<!-- needs: postgresql -->            ROTA_DATABASE_URL and DATABASE_URL; it also stands for every postgresql://…
"""

import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PART = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?P<words>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$"
    r"|^<!-- (?P<verb>\w+): (?P<object>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)
BESIDE = re.compile(r"(.*[^&\s])\s*&\s*(?:#.*)?", re.DOTALL)
EXIT_CODE = re.compile(r"# exit code (\d+)")


@dataclass(frozen=True)
class Part:
    """A fenced block with the words behind its language; or a comment to the test, whose verb is its language."""

    language: str
    words: str
    text: str
    is_comment: bool = False

    @property
    def options(self) -> dict[str, str]:
        words = shlex.split(self.words) if self.reason is None else []
        return {name: value for name, _, value in (word.partition("=") for word in words)}

    @property
    def reason(self) -> str | None:
        """Why it is not run; None if it is."""
        if not self.words.startswith("not-run"):
            return None
        return self.words.removeprefix("not-run").removeprefix(":").strip()


@dataclass
class Typed:
    """A command and what it is to print; nothing said of that: whatever it likes."""

    command: str
    answer: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        said = EXIT_CODE.search(self.command)
        return int(said[1]) if said else 0

    @property
    def beside(self) -> str | None:
        """The command without its `&`, if it has one: then it goes on while others are typed."""
        said = BESIDE.fullmatch(self.command)
        return said[1] if said else None

    def is_answered_by(self, output: str) -> bool:
        """Spaces are alike; `…` stands for anything in its line, alone in a line for any lines."""
        if not self.answer:
            return True
        lines = ["(?:.*\n)*?" if line.strip() == "…" else pattern(line) + "\n" for line in self.answer]
        said = "".join(" ".join(line.split()) + "\n" for line in output.strip().splitlines())
        return re.fullmatch("".join(lines), said) is not None


def pattern(line: str) -> str:
    return ".*".join(map(re.escape, re.split(" ?… ?", " ".join(line.split()))))


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def parts(page: Path) -> list[Part]:
    found = PART.finditer(page.read_text())
    return [
        Part(one["verb"], "", one["object"], is_comment=True)
        if one["verb"]
        else Part(one["language"], one["words"].strip(), textwrap.dedent(one["text"]))
        for one in found
    ]


def typed(text: str) -> list[Typed]:
    """Split a console block into commands. With `$` before commands, other lines are output; else all are commands."""
    result: list[Typed] = []
    prompt = "$ " if re.search(r"^\$ ", text, re.MULTILINE) else ""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(prompt):
            result.append(Typed(whole(line.removeprefix(prompt), lines)))
        elif result:
            result[-1].answer.append(line)
    return [one for one in result if one.command.strip()]


def whole(command: str, following: Iterator[str]) -> str:
    """Add the lines that a shell would still ask for: after a backslash, inside quotes, loops, here-documents."""
    while is_unfinished(command):
        line = next(following, None)
        if line is None:
            break
        command += "\n" + line
    return command


def is_unfinished(command: str) -> bool:
    if command.endswith("\\"):
        return True
    if not re.search(r"""['"(<{]|\b(?:do|then|in)\b""", command):
        return False
    looked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
    return bool(looked.stderr)
