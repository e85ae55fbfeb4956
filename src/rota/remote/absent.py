"""What a server does not offer: said in so many words."""

from __future__ import annotations

from typing import Any, NoReturn

from rota.errors import Invalid


class NotOffered(Invalid):
    """It needs the database itself."""

    code = "not-offered"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not offered over HTTP", hint="ask the database itself: app.connect(), --database")


class Absent:
    """A part of the client that no route serves: whatever is asked of it is refused."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("__"):
            raise AttributeError(verb)

        async def refuse(*_: Any, **__: Any) -> NoReturn:
            raise NotOffered(f"client.{self._name}.{verb}")

        return refuse
