"""What a case is set in: an app on a fresh database, with its client and the names of what was arranged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from rota.app import Rota
from rota.client.client import Client
from rota.store import Store

_NAME = re.compile(r"<[\w ]+>")


class World:
    """`names` maps `<name>` to the id that it stands for. `stack` holds what the case opens."""

    def __init__(self, app: Rota, url: str, client: Client) -> None:
        self.app = app
        self.url = url
        self.client = client
        self.names: dict[str, str] = {}
        self.fence = 0
        self.stack = AsyncExitStack()

    @property
    def store(self) -> Store:
        return self.client.store

    def note(self, name: str, id: str) -> str:
        """Note an id, so that arguments can name it `<name>`."""
        self.names[f"<{name}>"] = id
        return id

    def filled(self, value: Any) -> Any:
        """Return a value with every `<name>` replaced."""
        match value:
            case str():
                return _NAME.sub(lambda match: self.names.get(match[0], match[0]), value)
            case Mapping():
                return {self.filled(name): self.filled(item) for name, item in value.items()}
            case list() | tuple() if type(value) in (list, tuple):
                return type(value)(self.filled(item) for item in value)
            case _:
                return value


def declared_app(url: str, **settings: Any) -> Rota:
    """Build the app of all cases."""
    app = Rota(url, **settings)

    @app.job(max_attempts=3, tags=["net"])
    def crawl(url: str, depth: int = 1) -> str:
        """Fetch a page."""
        return f"{url} to {depth}"

    @app.job
    def rest() -> None:
        """Do nothing."""

    app.external("label", max_attempts=3, backoff=["1h"])
    return app
