"""Keeps a database of the newest schema, of both kinds: `python -m tests.golden.make`, after a new migration.

Another program is named by its folder and schema: `python -m tests.golden.make ../older/src 6`.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import apsw

from rota.store.databases.statements import schema_version
from tests.support.databases.postgres import PostgresCluster, find_binaries

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def make(source: Path, schema: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rota.db"
        live(source, f"sqlite:///{file}", schema)
        connection = apsw.Connection(str(file))
        connection.execute("pragma journal_mode = delete; vacuum")
        connection.close()
        keep(f"schema-{schema}.sqlite.xz", file.read_bytes())
    with PostgresCluster() as cluster:
        url = cluster.create_database()
        live(source, url, schema)
        keep(f"schema-{schema}.postgres.sql.xz", dumped(url))


def live(source: Path, url: str, schema: int) -> None:
    if url.startswith("postgresql"):
        subprocess.run([sys.executable, "-P", "-m", "rota", "migrate", "--database", url], check=True, env=path(source))
    subprocess.run([sys.executable, "-P", HERE / "life.py", url, str(schema)], check=True, env=path(source))


def path(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source)}


def dumped(url: str) -> bytes:
    """As statements that any connection to any version can execute, without what is for psql or for the session."""
    parts = urlsplit(url)
    where = ["-h", str(parts.hostname), "-p", str(parts.port), "-U", str(parts.username), parts.path[1:]]
    plain = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    text = subprocess.run([find_binaries() / "pg_dump", *plain, *where], check=True, capture_output=True).stdout
    lines = [line for line in text.splitlines() if line and not line.startswith((b"\\", b"--", b"SET "))]
    return b"\n".join(lines) + b"\n"


def keep(name: str, content: bytes) -> None:
    packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    (HERE / name).write_bytes(packed)
    print(f"{name}: {len(packed)} bytes")


if __name__ == "__main__":
    given = sys.argv[1:]
    make(*((Path(given[0]).absolute(), int(given[1])) if given else (ROOT / "src", schema_version())))
