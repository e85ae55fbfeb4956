"""Sentences of the server in Chinese, as the built dashboard translates them: no part of one is taken for another."""

import json
import subprocess
from pathlib import Path

import pytest

from rota.core.jobs.status import JobVerb, Standing, decide_verb
from rota.core.limits.limits import Limit, gate_under, job_key
from rota.core.monitoring.doctor_host import FileUser, FileUsers, check_users
from rota.core.runs.admit import Full
from tests.support.processes.node import node

ASSETS = Path(__file__).parents[2] / "src" / "rota" / "ui" / "app" / "assets"
PROGRAM = """
const file = await import(process.argv[1]);
const translate = Object.values(file).find((each) => typeof each === "function");
console.log(JSON.stringify(JSON.parse(process.argv[2]).map((text) => translate(text))));
"""
OURS, SHELL = FileUser(3, "gunicorn", 1, 0), FileUser(12, "sqlite3", 0, 1)
MIXED = FileUser(4, "python", 1, 1, ("libsqlite3.so",))


def sharing(*users: FileUser, hidden: int = 0) -> str:
    return check_users(FileUsers(users, hidden)).words


def full(limit: Limit) -> str:
    return Full(gate_under(job_key("crawl"), limit), refused=False).reason


SAID = {
    sharing(OURS): "1 个 rota 进程打开了此文件",
    sharing(OURS, SHELL): "1 个 rota 进程打开了此文件；另被打开于 sqlite3 (pid 12)",
    sharing(OURS, hidden=3): "1 个 rota 进程打开了此文件；另有 3 个属于其他用户，无法查看",
    sharing(OURS, SHELL, hidden=3): (
        "1 个 rota 进程打开了此文件；另被打开于 sqlite3 (pid 12)；另有 3 个属于其他用户，无法查看"
    ),
    sharing(MIXED, MIXED): "rota 的某个进程中似乎有另一份 SQLite 打开了此文件："
    "python（pid 4），通过 libsqlite3.so；python（pid 4），通过 libsqlite3.so",
    f"schedule s skipped 3 runs within a day: {full(Limit(max=3))}": (
        "计划 s 一天内跳过 3 个运行：任务 'crawl' 的限制已满：同时 3 个"
    ),
    full(Limit(max=3, max_queued=4)): "任务 'crawl' 的限制已满：同时 3 个，4 个在等待",
    str(decide_verb("crawl", Standing.IDLE, JobVerb.CANCEL)).partition(" (")[0]: (
        "无法对任务 'crawl' 执行 cancel：它没有进行中或计划中的内容"
    ),
    "the last 3 runs of schedule s for account/42 failed: Error: no data": (
        "计划 s（account/42）最近 3 次运行均失败：Error: no data"
    ),
    "worker w went silent without a shutdown; it holds 4 runs (a, b, c and 1 more) and lost 1 run (f)": (
        "工作进程 w 未关闭却失去联系；持有 4 个运行（a, b, c 等，另有 1 个），丢失 1 个运行（f）"
    ),
    "It waits for the success of runs a, b, c and 2 more.": "等待运行 a, b, c 等另外 2 个成功。",
    "2 messages of notification ops could not be sent: HttpError: answered 404": (
        "通知 ops 的 2 条消息 未能发送：HttpError: answered 404"
    ),
    "worker w went silent without a shutdown; it lost 1 run (f)": ("工作进程 w 未关闭却失去联系；丢失 1 个运行（f）"),
    "no live worker knows any job: 5 runs wait (a, b, c and 2 more)": (
        "没有在线工作进程认识任何任务：5 个运行在等待（a, b, c 等，另有 2 个）"
    ),
}


@pytest.fixture(scope="module")
def translated() -> dict[str, str]:
    (chunk,) = ASSETS.glob("sentences-*.js")
    command = [node(), "--input-type=module", "-e", PROGRAM, str(chunk), json.dumps(list(SAID))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return dict(zip(SAID, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("text", SAID)
def test_a_sentence_in_chinese(text: str, translated: dict[str, str]) -> None:
    assert translated[text] == SAID[text]
