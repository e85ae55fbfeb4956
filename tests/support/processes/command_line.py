"""Run the command line inside the test process and read its output."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from rota.cli import root


def rota(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(root, arguments, input=stdin)


def answer(*arguments: str, stdin: str | None = None) -> Any:
    done = rota(*arguments, "--json", stdin=stdin)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def refused(code: int, *arguments: str, stdin: str | None = None) -> str:
    done = rota(*arguments, stdin=stdin)
    assert (done.exit_code, done.stdout) == (code, "")
    return done.stderr
