"""What a server does not offer: said in so many words."""

from __future__ import annotations

from rota.errors import Invalid


class NotOffered(Invalid):
    """It needs the database itself."""

    code = "not-offered"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not offered over HTTP", hint="ask the database itself: app.connect(), --database")
