"""The pages: what is going on, for people, without a script."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from rota.ui.overview import overview
from rota.ui.run_page import run_page
from rota.ui.static import static


def routes() -> list[BaseRoute]:
    return [Route("/", overview), Route("/runs/{id}", run_page), Route("/static/{name}", static)]
