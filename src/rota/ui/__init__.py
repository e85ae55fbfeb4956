"""The dashboard: one page for every address, and its assets. Its data comes from the API."""

from __future__ import annotations

from starlette.routing import BaseRoute

from rota.api.operations.operation import operation
from rota.api.operations.routing import declared
from rota.ui.pages import asset, icon, missing, page

__all__ = ["ADDRESSES", "missing", "routes"]

# The dashboard does its own routing (web/src/views). The server only needs to know which paths exist.
ADDRESSES = (
    *("/", "/runs", "/runs/{id}", "/timeline", "/upcoming", "/error-groups", "/error-groups/{id}", "/audit"),
    *("/schedules", "/schedules/{name}", "/schedules/{name}/edit", "/schedules:new"),
    *("/workers", "/workers/{id}", "/queues", "/queues/{name}", "/jobs", "/jobs/{name}"),
    *("/scopes", "/scopes/{kind}/{id}", "/alerts", "/access", "/system"),
)


def routes() -> list[BaseRoute]:
    anybody = operation(None, query=None)
    return [
        *(declared(address, GET=anybody(page), page=True) for address in ADDRESSES),
        declared("/assets/{name}", GET=anybody(asset), page=True),
        declared("/rota.svg", GET=anybody(icon), page=True),
    ]
