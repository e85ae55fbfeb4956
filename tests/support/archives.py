"""Unpack archives that we made ourselves."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack_tar(path: Path, folder: Path) -> None:
    with tarfile.open(path) as archive:
        # Python 3.11.3 and older (Debian 12 has 3.11.2) know no filter; 3.12 warns of a call without one.
        filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **filters)  # type: ignore[arg-type]
