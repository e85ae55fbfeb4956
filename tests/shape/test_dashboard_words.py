"""Words of the dashboard: what the program can say has Chinese, and one thing has one word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rota.core.monitoring.attention import KINDS

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web" / "src"
CORE = ROOT / "src" / "rota" / "core"

SAID = (
    *("monitoring/attention_rules.py", "ledger/explain_run.py", "ledger/explain_plan_time.py"),
    *("calendar/describe.py", "calendar/cron_words.py"),
)
"""Modules whose sentences the dashboard shows."""
COMMANDS = re.compile(r"^(rota |--)")
WORDS = {
    "调度": "计划",
    "日程": "计划",
    "(?<!使)用时": "耗时",
    "作业": "任务",
    "工作者": "工作进程",
    "工人": "工作进程",
    "登陆": "登录",
}
"""Words that people use for the same thing → the one that the dashboard uses."""
SAME_IN_BOTH = re.compile(
    r"^(\W|\d|p50|p95|UTC|JSON Schema|JSON|ID|API|URL|CSV|NDJSON|rota\b|cron\b|H\b|[A-Z]{2,}|payload|\$\{[^}]*\})*$"
)


def test_each_kind_of_attention_has_a_name_in_both_languages() -> None:
    text = (WEB / "views" / "overview" / "attentionWords.ts").read_text(encoding="utf-8")
    kinds = text[text.index("export const kindWords") : text.index("export const attentionWords")]
    for language in kinds.split("  zh: {"):
        assert re.findall(r"^    (\w+): ", language, re.MULTILINE) == list(KINDS)


def test_each_kind_of_attention_has_a_line_in_the_runbook() -> None:
    page = (ROOT / "docs" / "howto" / "operate.md").read_text(encoding="utf-8")
    named = set(
        re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in page.splitlines() if line.count("|") == 4))
    )
    assert set(KINDS) - named == set()


def test_each_sentence_of_the_server_has_chinese() -> None:
    known = set(catalogue())
    said = {template for module in SAID for template in templates(CORE / module)} | set(shared_words())
    assert sorted(it for it in said - known if f"{{}} {it}" not in known) == []


def test_a_new_sentence_is_found() -> None:
    """The reader of templates sees sentences, and neither docstrings nor commands."""
    module = 'def f(x):\n    """Say it."""\n    g("rota run ls")\n    return f"the run {x} is " + f"lost to {x:.1f}"\n'
    assert list(_templates(module)) == ["the run {} is ", "lost to {}"]


def test_one_thing_has_one_word_in_chinese() -> None:
    found = [
        f"{path.relative_to(WEB)}: {word}, which is {WORDS[word]} elsewhere"
        for path in sorted(WEB.rglob("*.ts*"))
        for word in WORDS
        if re.search(word, path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_every_word_is_translated() -> None:
    """A Chinese value without a Chinese character is left over from English, unless it is a name or a sign."""
    left = []
    for path in sorted(WEB.rglob("*ords.ts")):
        for block in re.findall(r"\n  zh: \{\n(.*?)\n  \},", path.read_text(encoding="utf-8"), re.DOTALL):
            for name, value in re.findall(r'^    ("?[\w.-]+"?): (?:\([^)]*\) => )?["`](.*)["`],$', block, re.MULTILINE):
                if not re.search(r"[\u4e00-\u9fff]", value) and re.search(r"[a-z]{3}", value) and not _is_a_name(value):
                    left.append(f"{path.relative_to(WEB)}: {name}: {value}")
    assert left == []


def _is_a_name(value: str) -> bool:
    return bool(SAME_IN_BOTH.match(value)) or " " not in value.strip() or bool(re.search(r"[:=/{<$]", value))


def catalogue() -> Iterator[str]:
    """Yield the templates that the dashboard translates."""
    text = (WEB / "i18n" / "sentences.ts").read_text(encoding="utf-8")
    for double, single in re.findall(r"""^  \[(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'), """, text, re.MULTILINE):
        yield double or single


def shared_words() -> Iterator[str]:
    """Yield the words and hints that attention shares with `rota doctor`."""
    for node in ast.parse((CORE / "monitoring" / "doctor.py").read_text(encoding="utf-8")).body:
        named = node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node).partition(" ")[0]
        if re.search("_hint$|_HINT$|^why_|^held_words$", named):
            yield from _templates(ast.unparse(node))


def templates(path: Path) -> Iterator[str]:
    yield from _templates(path.read_text(encoding="utf-8"))


def _templates(source: str) -> Iterator[str]:
    """Yield texts of several words of a module, with `{}` for what is filled in; neither docstrings nor commands."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) and node.format_spec
              for part in ast.walk(node.format_spec)}  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text.strip("{}") and re.search(r"[a-z]{2}", text) and not COMMANDS.match(text):
            yield text
