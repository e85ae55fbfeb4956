"""The frame of every page, and the page that says what went wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rota.api.addresses import at
from rota.app import Rota
from rota.client import Client
from rota.errors import BadConfig, RotaError, Unavailable
from rota.ui.html import Content, Html, join, tag
from rota.ui.static import address
from rota.version import __version__

Page = Callable[[Request], Awaitable[Response]]
_SECONDS = 2


async def client_of(request: Request) -> Client:
    app: Rota = request.app.state.rota
    return await app.connect()


def document(request: Request, title: str, *content: Content, live: bool = False, status: int = 200) -> Response:
    """A `live` page loads itself again, unless the reader has stopped that."""
    stopped = request.query_params.get("refresh") == "off"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="refresh", content=_SECONDS) if live and not stopped else None,
        tag("title", title),
        tag("link", rel="icon", href=address("rota.svg")),
        tag("link", rel="stylesheet", href=address("rota.css")),
    )
    body = tag("body", _header(request, live=live, stopped=stopped), tag("main", *content), _footer())
    return HTMLResponse(f"<!doctype html>{tag('html', head, body, lang='en')}", status)


def _header(request: Request, *, live: bool, stopped: bool) -> Html:
    path = request.url.path
    switch = tag("a", "refresh again", href=path) if stopped else tag("a", "stop", href=f"{path}?refresh=off")
    state = "paused" if stopped else f"refreshes every {_SECONDS} s"
    return tag(
        "header",
        tag("a", "rota", href=at("/"), class_="name"),
        tag("p", "Durable jobs: on time, once, and you know what happened."),
        tag("p", state, " · ", switch, class_="refresh") if live else None,
    )


def _footer() -> Html:
    links = [tag("a", path, href=at(path)) for path in ("/api/v1/runs", "/api/v1/jobs", "/readyz")]
    return tag("footer", f"rota {__version__} · ", join(links[0], " · ", links[1], " · ", links[2]))


def section(title: str, *content: Content, **attributes: Content) -> Html:
    return tag("section", tag("h2", title), *content, **attributes)


def command(text: str) -> Html:
    """One that is to be copied: `user-select: all` takes it whole."""
    return tag("pre", tag("code", text), class_="command")


def with_errors_shown(page: Page) -> Page:
    @wraps(page)
    async def shown(request: Request) -> Response:
        try:
            return await page(request)
        except RotaError as error:
            away = isinstance(error, Unavailable | BadConfig)
            words = [tag("h1", "The database does not answer" if away else "Not here"), tag("p", error.message)]
            if error.hint:
                words.append(tag("p", error.hint, class_="quiet"))
            status = Unavailable.status if away else error.status
            return document(request, "rota", *words, live=away, status=status)

    return shown
