"""A remote client imports nothing that only servers and workers need."""

import subprocess
import sys


def test_no_driver_is_loaded() -> None:
    program = "import sys, rota.remote; print(sorted({'apsw', 'asyncpg', 'starlette', 'aiohttp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
