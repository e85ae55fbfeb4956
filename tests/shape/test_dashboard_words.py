"""Words of the dashboard: what the program can say has Chinese, and one thing has one word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rota import errors
from rota.core.monitoring.attention import KINDS

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web" / "src"
ROTA = ROOT / "src" / "rota"

SAID = (
    *("core/monitoring/attention_rules.py", "core/ledger/explain_run.py", "core/ledger/explain_plan_time.py"),
    *("core/calendar/describe.py", "core/calendar/cron_words.py"),
    *("core/monitoring/doctor.py", "core/monitoring/doctor_host.py", "core/ledger/database_state.py"),
    "client/monitoring/doctor.py",
    *("core/planning/catch_up.py", "core/planning/overlap_and_failure.py", "core/planning/tick.py"),
    "core/runs/admit.py",
)
"""Modules whose sentences the dashboard shows."""
RAISED = (
    *("errors", "values", "verbs", "api/access", "api/auth", "api/http", "api/operations", "api/runs"),
    *("client/access", "client/alerts", "client/jobs", "client/limits", "client/monitoring", "client/runs"),
    *("client/schedules", "core/access", "core/alerts", "core/calendar", "core/jobs", "core/ledger", "core/limits"),
    *("core/monitoring", "core/planning", "core/runs", "core/schedules", "core/workers"),
    *("store/access", "store/alerts", "store/jobs", "store/ledger", "store/runs", "store/schedules", "store/workers"),
    *("store/databases/postgres", "store/databases/sqlite"),
)
"""Folders whose errors a request of the dashboard may meet."""
UNSEEN = {
    "core/jobs/": ("status.py", "retry.py", "unique.py", "payload_template.py"),
    "client/jobs/": ("jobs.py", "executions.py"),
}
"""Of these folders, only these: the dashboard does not create or change jobs."""
ELSEWHERE = (
    *("core/schedules/diff.py", "core/schedules/vocabulary.py", "core/runs/dependencies.py"),
    *("core/workers/replicas.py", "core/workers/requirements.py", "store/workers/restrict.py"),
    *("store/databases/postgres/shared_pool.py", "store/jobs/data_jobs.py", "store/jobs/pipeline_stages.py"),
    *("client/runs/enqueue.py", "core/alerts/webhook_signature.py"),
    *("core/monitoring/executions.py", "store/jobs/executions.py"),
)
"""Errors of files, other schedulers' words, dependencies and parts, which the dashboard does not send."""
COMMANDS = re.compile(r"^(rota |pip |--)")
WORDS = {
    "调度": "计划",
    "日程": "计划",
    "(?<!使)用时": "耗时",
    "作业": "任务",
    "工作者": "工作进程",
    "工人": "工作进程",
    "登陆": "登录",
    "处理函数": "处理程序",
    "补跑范围": "补跑窗口",
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
    said = {template for module in SAID for template in templates(ROTA / module)}
    assert sorted(it for it in said - known if f"{{}} {it}" not in known) == []


def test_each_problem_of_a_request_has_chinese() -> None:
    assert sorted(set(problems()) - set(catalogue())) == []


def test_a_new_sentence_is_found() -> None:
    """The reader of templates sees sentences, and neither docstrings nor commands."""
    module = 'def f(x):\n    """Say it."""\n    g("rota run ls")\n    return f"the run {x} is " + f"lost to {x:.1f}"\n'
    assert list(_templates(module)) == ["the run {} is lost to {}"]


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
    for path in sorted((WEB / "i18n" / "sentences").glob("*.ts")):
        text = path.read_text(encoding="utf-8")
        pairs = re.findall(r"""^  \[(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'), """, text, re.MULTILINE)
        yield from ((double or single).replace('\\"', '"') for double, single in pairs)


def problems() -> Iterator[str]:
    """Yield details and hints of the errors that a request of the dashboard may meet."""
    yield from (template for path in (ROTA / "errors").glob("*.py") for template in templates(path))
    for folder in RAISED:
        for path in (ROTA / folder).rglob("*.py"):
            name = path.relative_to(ROTA).as_posix()
            seen = next((only for start, only in UNSEEN.items() if name.startswith(start)), None)
            if name not in ELSEWHERE and (seen is None or path.name in seen):
                yield from raised(path.read_text(encoding="utf-8"))


def raised(source: str) -> Iterator[str]:
    """Yield the texts that a module gives to errors."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in errors.__all__:
            yield from _templates(ast.unparse(node))


def templates(path: Path) -> Iterator[str]:
    yield from _templates(path.read_text(encoding="utf-8"))


def _templates(source: str) -> Iterator[str]:
    """Yield texts of several words of a module, with `{}` for what is filled in; neither docstrings nor commands."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) for part in _parts(node)}
    for node in ast.walk(tree):
        text = None if id(node) in parts else _text(node)
        if text and " " in text.strip("{}") and re.search(r"[a-z]{2}", text) and not COMMANDS.match(text):
            yield text


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the texts that a node is made of, which are none by themselves."""
    match node:
        case ast.Expr(value=ast.Constant() as docstring):
            yield docstring
        case ast.JoinedStr(values=values):
            yield from values
        case ast.FormattedValue(format_spec=ast.JoinedStr() as spec):
            yield from ast.walk(spec)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from (side for side in (left, right) if isinstance(side, ast.Constant | ast.JoinedStr | ast.BinOp))


def _text(node: ast.AST) -> str | None:
    """Return a text, formatted or joined of several, with `{}` for its other parts; None if it is none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) or "{}" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if (_text(left) or _text(right)) is not None:
            return (_text(left) or "{}") + (_text(right) or "{}")
        case _:
            return None
