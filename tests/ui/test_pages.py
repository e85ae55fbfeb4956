"""The dashboard's page: where it is served, its security headers, and that it contains no data."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from rota.app import Rota
from rota.server import asgi
from rota.ui import ADDRESSES, files, pages


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """HTTP client of a server without a database: the page needs none."""
    transport = httpx2.ASGITransport(app=asgi(Rota("sqlite:///no/such/folder/rota.db", auth=True)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682") as client:
        yield client


@pytest.mark.parametrize("address", ADDRESSES)
async def test_every_address_is_the_same_page_for_everybody(http: httpx2.AsyncClient, address: str) -> None:
    answer = await http.get(re.sub(r"\{\w+\}", "a%2Fb", address))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert '<base href="/" />' in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("address", ["/nothing", "/runs/a/b/c", "/api", "/assets"])
async def test_an_unknown_address_is_a_page_for_browsers_and_a_problem_for_programs(
    http: httpx2.AsyncClient, address: str
) -> None:
    shown = await http.get(address, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert shown.headers["content-security-policy"] == (await http.get("/")).headers["content-security-policy"]
    told = await http.get(address)
    assert (told.status_code, told.json()["code"]) == (404, "not-found")
    assert (await http.post(address, headers={"accept": "text/html"})).status_code == 404


async def test_an_unknown_address_of_the_api_is_a_problem_for_everybody(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/api/v1/nothing", headers={"accept": "text/html"})
    assert answer.headers["content-type"] == "application/problem+json"


async def test_nothing_inline_and_nothing_from_elsewhere(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"<script(?![^>]* src=)|<style|style=|\son\w+=|https?://", answer.text)


async def test_its_files_are_kept_for_ever_and_sent_small(http: httpx2.AsyncClient) -> None:
    names = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', (await http.get("/")).text)
    assert {name.rpartition(".")[2] for name in names} == {"js", "css"}
    for name in names:
        answer = await http.get(f"/{name}")
        assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip")
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        plain = await http.get(f"/{name}", headers={"accept-encoding": "identity"})
        assert plain.content == answer.content
    assert (await http.get("/rota.svg")).headers["content-type"] == "image/svg+xml"


@pytest.mark.parametrize("name", ["nothing.js", "..%2Findex.html", "%2Fetc%2Fpasswd", "stamp", "index.html"])
async def test_there_are_no_other_files(http: httpx2.AsyncClient, name: str) -> None:
    assert (await http.get(f"/assets/{name}")).status_code == 404


async def test_where_it_is_mounted_is_escaped(http: httpx2.AsyncClient) -> None:
    transport = httpx2.ASGITransport(app=asgi(Rota("sqlite:///x.db")), root_path='/a"><script>')
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as mounted:
        text = (await mounted.get("/runs")).text
    assert '<base href="/a&quot;&gt;&lt;script&gt;/" />' in text


async def test_one_that_is_not_built_says_so(http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "page_source", lambda: None)
    answer = await http.get("/")
    assert answer.status_code == 503
    assert "python3 dev.py build" in answer.text
    assert files.page_source() is not None
