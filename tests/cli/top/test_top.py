"""The picture of `rota top`: it fits any screen, and texts cannot control the terminal."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rota.cli.connect import without_password
from rota.cli.terminal.progress import RunSnapshot
from rota.cli.top.canvas import Frame, picture, rebucketed, run_picture, shares, whole_picture
from rota.cli.top.data import Snapshot
from rota.cli.top.keys import PANES, Action, Row, View, pressed
from rota.cli.top.panes import rows_of
from rota.cli.top.run_page import run_lines
from rota.cli.top.screen import Keyboard
from rota.core.jobs.queues import Pause, Queue
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.charts import Bucket, Series
from rota.core.monitoring.counters import LastDay
from rota.core.monitoring.error_groups import ErrorGroup
from rota.core.monitoring.overview import Late, Live, NextRun, Overview, WorkerCounts
from rota.core.progress.notes import Progress
from rota.core.runs.run import Run, RunError
from rota.core.states import RunState
from rota.core.workers.worker import Worker, WorkerState
from rota.values.scope import Scope

NOW = datetime(2026, 1, 31, 8, 0, tzinfo=UTC)
PAUSE = Pause("mail", NOW, None, None)
FRAME = Frame(where="postgresql://rota@db/rota", every=timedelta(seconds=2))
HOSTILE = "\x1b]0;a title\x07\x1b[2J\u009b31m 数据同步任务 " + "very " * 40 + "\nlong\tname"
SIZES = [(80, 24), (120, 40), (20, 4), (1, 1)]


def run(no: int, state: RunState = RunState.RUNNING, job: str = "crawl", **facts: object) -> Run:
    ended = NOW - timedelta(seconds=no) if state.is_final else None
    known: dict[str, object] = {
        "id": f"01a1e506-3956-757b-af40-{no:012x}", "job": job, "job_version": 1, "queue": "default", "priority": 0,
        "scope": Scope("global", "global"), "key": None, "state": state, "reason": None, "fence": 1, "attempt": 1,
        "max_attempts": 3, "payload": {}, "result": None, "error": None, "created_at": NOW - timedelta(minutes=5),
        "run_at": NOW, "started_at": NOW - timedelta(minutes=1, seconds=no), "finished_at": ended, "retry_of": None,
        "worker_id": "web@aa11", "tags": (), "metadata": {},
    }  # fmt: skip
    return Run(**{**known, **facts})  # type: ignore[arg-type]


def worker(name: str) -> Worker:
    return Worker(
        id=f"{name}@aa11", name=name, host=name, pid=1, version="1", state=WorkerState.WORKING, queues={name: 1},
        jobs=(name,), slots=10, held=2, runs=(), started_at=NOW, seen_at=NOW - timedelta(seconds=3), heartbeat=None,
        poll=None, asked=None, asked_by=None,
    )  # fmt: skip


def bucket(minute: int, **runs: int) -> Bucket:
    at = NOW - timedelta(minutes=30 - minute)
    return Bucket(
        at=at, runs=runs, duration_p50_ms=1, duration_p95_ms=1, lag_p50_ms=1, lag_p95_ms=1, queued=0, running=0
    )


def group(name: str, jobs: int) -> ErrorGroup:
    return ErrorGroup(
        fingerprint=f"{jobs}", job=name, job_count=jobs, type="KeyError", message=name, count=1234, first_at=NOW,
        last_at=NOW - timedelta(seconds=7), last_run_id="", states={}, histogram=(),
    )  # fmt: skip


def seen(name: str = "crawl", many: int = 3) -> Snapshot:
    failure = RunError(type="ValueError", message=name, traceback=None)
    fire = NextRun(schedule=name, job=name, at=NOW + timedelta(seconds=90), zone="UTC", rule="every minute")
    told = Attention(
        kind="queue_unserved", subject=name, severity="problem", since=NOW - timedelta(seconds=9), text=name, hint=name
    )
    said = Progress(percentage=42.5, summary=name, at=NOW)
    overview = Overview(
        at=NOW,
        live=Live(running=many, queued=7, oldest_queued_at=NOW - timedelta(seconds=12)),
        late=Late(1, 0),
        last_day=LastDay({}, None),
        workers=WorkerCounts(1, 0, 10, 2),
        schedules={"active": 1},
        attention=[told],
        attention_count=1,
        next_fires=[fire],
    )
    return Snapshot(
        overview=overview,
        series=Series(
            from_at=NOW,
            to_at=NOW,
            step=timedelta(minutes=1),
            buckets=[bucket(minute, succeeded=minute, failed=minute % 3) for minute in range(30)],
        ),
        runs=[run(no, job=name, progress=said) for no in range(many)],
        failures=[run(100 + no, RunState.FAILED, name, error=failure) for no in range(many)],
        errors=[group(name, 3), group(name, 1)],
        queues=[
            Queue(
                queue=name,
                running=3,
                queued=7,
                paused=PAUSE,
                oldest_at=NOW - timedelta(seconds=12),
            )
        ],
        workers=[worker(name)],
    )


EMPTY = msgspec.structs.replace(
    seen(),
    overview=msgspec.structs.replace(seen().overview, attention=(), attention_count=0, next_fires=(), live=Live()),
    **dict.fromkeys(("runs", "failures", "errors", "queues", "workers"), ()),
)


def plain(lines: list[Text]) -> str:
    return "\n".join(line.plain for line in lines)


def no_commands(lines: list[Text]) -> bool:
    return not any(unicodedata.category(character) == "Cc" for line in lines for character in line.plain)


VIEWS = [
    *(View(pane=pane) for pane in PANES),
    View(helping=True),
    View(message=HOSTILE),
    View(asking=Action("cancel", name=HOSTILE)),
]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize(("name", "many"), [("crawl", 0), (HOSTILE, 100)], ids=["usual", "hostile"])
def test_it_fits_any_screen_and_obeys_no_escape_codes(width: int, height: int, name: str, many: int) -> None:
    found, frame = seen(name, many), Frame(where=name, every=timedelta(seconds=2), away=name if many else None)
    for view in VIEWS:
        lines = picture(found, NOW, view, frame, width, height)
        assert len(lines) == height
        assert max(line.cell_len for line in lines) <= width
        assert no_commands(lines)
    once = whole_picture(found, NOW, Frame(where=name), width)
    assert max(line.cell_len for line in once) <= width
    assert no_commands(once)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 30)])
def test_everything_is_there(width: int, height: int) -> None:
    shown = plain(picture(seen(), NOW, View(), FRAME, width, height))
    for words in (
        "postgresql://rota@db/rota", "08:00:00 UTC  every 2s",
        "▶ 3 running of 10", "7 queued (oldest 12s)", "! 1 late", "1 worker",
        "435 succeeded", "30 failed", "█",
        "needs attention 1", "! crawl", "9s",
        "▸ running 3", "00000002", "▶ running", "1m2s", "████░░░░░░ 42 %", "web@aa11",
        "failed 3", "✗ failed", "ValueError: crawl",
        "errors of a day 2", "KeyError: crawl", "1234", "3 jobs", "7s ago",
        "queues 1", "12s", "⏸ paused",
        "workers 1", "▶ working", "2/10", "3s ago",
        "next runs 1", "in 1m30s", "every minute",
        "q quit",
    ):  # fmt: skip
        assert words in shown, words


def test_bars_tell_all_that_was_counted() -> None:
    for most in range(1, 40):
        parts = rebucketed(range(30), most)
        assert sum(parts) == sum(range(30))
        assert len(parts) <= most
    assert rebucketed([1, 2, 3, 4, 5], 3) == [1, 5, 9]
    assert rebucketed([1, 2], 5) == [1, 2]
    assert rebucketed([], 5) == []


def test_what_there_is_not_is_said_in_a_word() -> None:
    shown = plain(picture(EMPTY, NOW, View(), FRAME, 80, 24))
    for words in ("needs attention 0  nothing", "running 0  no runs", "start `rota dev`", "next runs 0  none"):
        assert words in shown


def test_times_go_on_between_two_looks() -> None:
    later = plain(picture(seen(), NOW + timedelta(seconds=30), View(), FRAME, 80, 24))
    assert "in 1m" in later
    assert "1m32s" in later
    assert "08:00:30" in later


def test_the_chosen_row_is_always_on_the_screen() -> None:
    found = seen(many=100)
    for run_id in (found.runs[0].id, found.runs[50].id, found.runs[99].id):
        view = View(chosen={"runs": run_id})
        for width, height in ((80, 24), (120, 40), (80, 12)):
            shown = plain(picture(found, NOW, view, FRAME, width, height))
            assert f"› {run_id[-8:]}" in shown
    small = plain(picture(found, NOW, View(chosen={"runs": found.runs[99].id}), FRAME, 80, 12))
    assert re.search(r"^▸ running 100 .*↑97$", small, re.MULTILINE)


@pytest.mark.parametrize("room", range(40))
def test_rows_are_shared_out(room: int) -> None:
    wanted = {"attention": 0, "runs": 30, "failures": 5, "errors": 3, "queues": 2, "workers": 1, "fires": 10}
    given = shares(wanted, "runs", room)
    assert "runs" in given
    assert sum(given.values()) + len(given) <= max(1, room)
    assert all(rows <= wanted[name] for name, rows in given.items())
    if room >= len(wanted) + 3:
        assert set(given) == set(wanted)
        assert sum(given.values()) + len(given) == room  # nothing is left empty while somebody wants more
        assert given["runs"] >= (room - len(wanted)) // 2


def test_a_runs_own_page_is_scrolled() -> None:
    error = RunError(type="ValueError", message=HOSTILE, traceback="\n".join(f"line {no}" for no in range(50)))
    look = RunSnapshot(
        run(1, RunState.FAILED, error=error), Progress(percentage=None, summary=HOSTILE, at=NOW), (), NOW
    )
    lines = run_lines(look, Console(), 60)
    assert no_commands(lines)
    assert max(line.cell_len for line in lines) <= 60
    top = run_picture(lines, View(), FRAME, 60, 20)
    end = run_picture(lines, View(offset=1 << 30), FRAME, 60, 20)
    assert len(top) == len(end) == 20
    assert no_commands(run_picture(lines, View(message=HOSTILE), Frame(where=HOSTILE, away=HOSTILE), 60, 20))
    assert "crawl (version 1)" in plain(top)
    assert "↓" in top[-1].plain
    assert lines[-1].plain in plain(end)


def test_keys_in_pieces() -> None:
    keyboard = Keyboard()
    assert keyboard.typed(b"jk\x1b[A\x1bOB\t\x1b[Z\r") == ["j", "k", "up", "down", "tab", "backtab", "enter"]
    assert [keyboard.typed(piece) for piece in (b"\x1b[", b"5", b"~q")] == [[], [], ["pageup", "q"]]
    assert keyboard.typed(b"\x1b") == ["escape"]
    assert keyboard.typed(b"\x1b\x1b") == ["escape", "escape"]
    assert keyboard.typed("é\xff".encode("latin1") + "数".encode())[-1] == "数"
    assert keyboard.typed(b"\x00\x07\x1b[200~") == []


def typed(view: View, keys: str, rows: list[Row]) -> tuple[View, Action | None]:
    wish = None
    for key in keys.split():
        view, wish = pressed(view, key, rows)
    return view, wish


ROWS = rows_of("runs", seen())
FIRST, SECOND, THIRD = (row.id for row in ROWS)


def test_rows_are_chosen() -> None:
    assert typed(View(), "j", ROWS)[0].chosen == {"runs": FIRST}
    assert typed(View(), "k", ROWS)[0].chosen == {"runs": THIRD}
    assert typed(View(), "j down j j", ROWS)[0].chosen == {"runs": THIRD}
    assert typed(View(), "G k", ROWS)[0].chosen == {"runs": SECOND}
    assert typed(View(), "G g", ROWS)[0].chosen == {"runs": FIRST}
    assert typed(View(), "j", [])[0].chosen == {}
    around = typed(View(), "j tab", ROWS)[0]
    assert (around.pane, typed(around, "backtab", ROWS)[0].place(ROWS)) == ("failures", 0)
    assert typed(View(), "tab " * len(PANES), ROWS)[0].pane == "runs"


def test_cancelling_asks_and_only_y_says_yes() -> None:
    asking, wish = typed(View(), "j j c", ROWS)
    assert wish is None
    assert f"cancel run {SECOND[-8:]} of crawl?" in plain(picture(seen(), NOW, asking, FRAME, 80, 24))
    assert typed(asking, "y", ROWS) == (asking.changed(asking=None), Action("cancel", SECOND, "crawl"))
    for other in ("n", "q", "enter", "c", "escape"):
        assert typed(asking, other, ROWS) == (asking.changed(asking=None), None)
    assert typed(View(), "j r", ROWS)[1] == Action("retry", FIRST, "crawl")


def test_nothing_is_done_to_a_row_that_slipped_away() -> None:
    chosen = typed(View(), "j j", ROWS)[0]
    left = [row for row in ROWS if row.id != SECOND]
    for key in ("c", "r", "enter"):
        view, wish = pressed(chosen, key, left)
        assert wish is None
        assert view.asking is None
        assert view.shown is None
        assert "select a run" in view.message
    assert pressed(View(pane="queues", chosen={"queues": "crawl"}), "c", rows_of("queues", seen()))[1] is None


def test_a_run_is_shown_and_left_again() -> None:
    shown = typed(View(), "j enter", ROWS)[0]
    assert shown.shown == FIRST
    assert typed(shown, "j j k", ROWS)[0].offset == 1
    assert typed(shown, "c y", [])[1] == Action("cancel", FIRST)  # it may have left the list meanwhile
    for back in ("q", "escape", "enter"):
        left, wish = pressed(shown, back, ROWS)
        assert (left.shown, wish) == (None, None)
    assert typed(View(), "q", ROWS)[1] == Action("quit")
    assert typed(View(), "? q", ROWS) == (View(), None)
    assert typed(View(), "p", ROWS)[0].paused
    assert not typed(View(), "p p", ROWS)[0].paused


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ada:s%40e@db/rota?sslmode=require", "postgresql://ada:…@db/rota?sslmode=require"),
        ("postgresql://db/rota?user=ada&password=s&port=1", "postgresql://db/rota?user=ada&password=…&port=1"),
        ("sqlite:///rota.db", "sqlite:///rota.db"),
    ],
)
def test_passwords_are_left_out_of_addresses(url: str, told: str) -> None:
    assert without_password(url) == told


def test_wide_letters_are_measured() -> None:
    lines = whole_picture(seen("数据同步任务" * 20), NOW, FRAME, 80)
    assert any(line.plain.endswith("…") or "…" in line.plain for line in lines)
    assert all(cell_len(line.plain) <= 80 for line in lines)
