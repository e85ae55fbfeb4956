"""`rota migrate` against a server that does not answer."""

import socket
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from rota.cli import root


@pytest.mark.parametrize("command", [["migrate", "--check"], ["prune"]], ids=" ".join)
def test_upkeep_keeps_to_the_deadline_it_is_given(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DEADLINE", "200ms")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://someone@127.0.0.1:{silent.getsockname()[1]}/nothing"
        began = time.monotonic()
        done = CliRunner().invoke(root, [*command, "--database", url])
    assert done.exit_code == 69
    assert time.monotonic() - began < 3
