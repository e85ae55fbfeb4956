"""What docs/remote.md shows works against a server."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

from rota.api import asgi
from rota.app import Rota
from tests.support.serving import serving

PAGE = Path(__file__).parents[2] / "docs" / "remote.md"
SNIPPET = re.compile(r"^```python not-run\n(.*?)^```", re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:7682"


async def test_its_snippets_run(sqlite_url: str, tmp_path: Path) -> None:
    app = Rota(sqlite_url)

    @app.job
    def hello(name: str = "you") -> str:
        return f"hello, {name}"

    snippets = SNIPPET.findall(PAGE.read_text())
    assert len(snippets) == 3
    async with app.running():
        with serving(asgi(app), app) as site:
            for code in snippets:
                assert ADDRESS in code
                done = await asyncio.to_thread(run, code.replace(ADDRESS, site.url), tmp_path)
                assert done.returncode == 0, done.stderr
    await app.aclose()


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Somewhere without a database."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_no_driver_is_loaded() -> None:
    program = "import sys, rota.remote; print(sorted({'apsw', 'asyncpg', 'starlette', 'aiohttp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
