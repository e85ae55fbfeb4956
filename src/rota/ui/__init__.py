"""The pages: what is going on, for people, without a script."""

from __future__ import annotations

from starlette.routing import BaseRoute

from rota.api.operations import operation
from rota.api.routing import declared
from rota.core.access import Role
from rota.ui.overview import overview
from rota.ui.run_page import run_page
from rota.ui.signing_in import sign_in, sign_in_page, sign_out
from rota.ui.static import static


def routes() -> list[BaseRoute]:
    see, anybody = operation(Role.VIEWER, query=None), operation(None, query=None)
    return [
        declared("/", GET=see(overview), page=True),
        declared("/runs/{id}", GET=see(run_page), page=True),
        declared("/sign-in", GET=anybody(sign_in_page), POST=anybody(sign_in), page=True),
        declared("/sign-out", POST=anybody(sign_out), page=True),
        declared("/static/{name}", GET=anybody(static), page=True),
    ]
