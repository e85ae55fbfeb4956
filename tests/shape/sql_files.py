"""The SQL files of the store, without migrations: what shape tests read."""

from importlib import resources
from pathlib import Path

FOLDER = Path(str(resources.files("rota.store") / "sql"))


def sql_files() -> dict[str, str]:
    """Return the text of each file by its path below `sql/`; the databases' own forms come last."""
    paths = [path for path in FOLDER.rglob("*.sql") if "migrations" not in path.parts]
    paths.sort(key=lambda path: ("databases" in path.parts, path))
    texts = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    assert len(texts) > 30, "the files are not where they were"
    return texts
