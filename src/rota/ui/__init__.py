"""The dashboard: one page for every address, and its assets. Its data comes from the API."""

from __future__ import annotations

from starlette.routing import BaseRoute

from rota.api.operations.operation import operation
from rota.api.operations.routing import declared
from rota.ui.pages import asset, icon, page

# The dashboard does its own routing (web/src/views). The server only needs to know which paths exist.
ADDRESSES = (
    *("/", "/runs", "/runs/{id}", "/timeline", "/error-groups", "/error-groups/{id}", "/audit"),
    *("/schedules", "/schedules/{name}", "/schedules/{name}/edit", "/schedules:new"),
    *("/workers", "/workers/{id}", "/queues", "/queues/{name}", "/jobs", "/jobs/{name}"),
)


def routes() -> list[BaseRoute]:
    anybody = operation(None, query=None)
    return [
        *(declared(address, GET=anybody(page), page=True) for address in ADDRESSES),
        declared("/assets/{name}", GET=anybody(asset), page=True),
        declared("/rota.svg", GET=anybody(icon), page=True),
    ]
