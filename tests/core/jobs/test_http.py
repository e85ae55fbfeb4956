"""HTTP jobs as values: what may be declared, how it is filled, what answers mean."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.core.jobs.http import Filled, HttpRequest, filled, meant, request_of, retry_after, same_origin, unfilled
from rota.errors import Invalid, RotaError

URL = "https://example.com/x"
FACTS = {
    "payload": {"id": 7, "who": "Ada", "deep": {"er": [1, None]}, "text": "a/b c", "dots": ".."},
    "plan_time": "2026-01-31T08:00:00Z",
    "scope.kind": "account",
    "scope.id": "42",
    "run_id": "r",
    "attempt": 2,
    "idempotency_key": "k",
}


def request(**options: Any) -> HttpRequest:
    return request_of({"url": URL, **options})


def sent(**options: Any) -> Filled:
    return filled(request(**options), FACTS, '{"id":7}')


@pytest.mark.parametrize(
    "url",
    [
        "example.com", "/path", "//example.com", "ftp://example.com", "file:///etc/passwd", "http://", "https:///x",
        "javascript:alert(1)", "http://user:secret@example.com/", "http://user@example.com/", "http://a b/",
        "http://example.com/\r\nHost: evil", "http://example.com\\@evil.example/", "http://example.com:99999/",
        "http://[::1/", "https://{payload.host}/", "https://example.com{payload.host}/x", "{payload.url}",
        "https://example.com:{payload.port}/", "https://example.com/" + "x" * 8_000, 5,
        "https://example.com/{payloads}",
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: object) -> None:
    with pytest.raises(RotaError):
        request(url=url)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "GET\r\n"}, {"method": ""}, {"method": "CONNECT"}, {"method": 5},
        {"headers": {"X": "a\r\nY: b"}}, {"headers": {"X": "a\nb"}}, {"headers": {"X\n": "a"}},
        {"headers": {"X Y": "a"}},
        {"headers": {"": "a"}}, {"headers": {"X": 5}}, {"headers": ["X"]}, {"headers": {"X": "\ud800"}},
        {"headers": {"Host": "a"}}, {"headers": {"content-length": "1"}}, {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"X": "{payloads.x}"}}, {"headers": {f"X-{n}": "" for n in range(101)}},
        {"headers": {"Webhook-Signature": "v1,x"}}, {"body": {"a": ["{run_ids}"]}},
        {"expect_status": "2x"}, {"expect_status": 99}, {"expect_status": "204-200"}, {"expect_status": [200, "6xx"]},
        {"retry_on": "all"},
        {"redirects": 3}, {"max_response": 0}, {"max_response": "much"}, {"secret": ""}, {"secret": "whsec_???"},
    ],
)  # fmt: skip
def test_options_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        request(**options)


def test_without_a_url_there_is_nothing_to_send() -> None:
    with pytest.raises(Invalid, match="has a url"):
        request_of({})


@pytest.mark.parametrize(
    ("words", "inside", "external"),
    [("2xx", 299, 300), (200, 200, 201), ("200-204", 204, 205), (["2xx", 404], 404, 403), ("5XX", 503, 404)],
)
def test_statuses(words: Any, inside: int, external: int) -> None:
    statuses = meant(request(expect_status=words).expect_status)
    assert (inside in statuses, external in statuses) == (True, False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/users/{payload.id}", "/users/7"),
        ("/{payload.text}?q={payload.text}", "/a%2Fb%20c?q=a%2Fb%20c"),
        ("?at={plan_time}&s={scope.kind}-{scope.id}", "?at=2026-01-31T08%3A00%3A00Z&s=account-42"),
        ("/{payload.deep}", "/%7B%22er%22%3A%5B1%2Cnull%5D%7D"),
        ("/{other}/{}", "/{other}/{}"),
    ],
)
def test_a_url_is_filled(url: str, expected: str) -> None:
    assert sent(url=f"https://example.com{url}").url == f"https://example.com{expected}"


@pytest.mark.parametrize("url", ["/{payload.dots}/x", "/{payload.missing}", "/{payload.who.more}"])
def test_what_does_not_fit_into_a_url(url: str) -> None:
    with pytest.raises(Invalid):
        sent(url=f"https://example.com{url}")


@pytest.mark.parametrize(
    ("options", "body", "kind"),
    [
        ({}, None, None),
        ({"method": "post"}, b'{"id":7}', "application/json"),
        ({"method": "POST", "body": ""}, None, None),
        ({"method": "POST", "body": "n={payload.id}"}, b"n=7", None),
        ({"method": "POST", "body": "{payload.deep}"}, b'{"er":[1,null]}', None),
        ({"method": "DELETE", "body": {"n": "{payload.id}"}}, b'{"n":7}', "application/json"),
        ({"method": "PUT", "body": ["{payload.deep}", "<{attempt}>"]}, b'[{"er":[1,null]},"<2>"]', "application/json"),
        ({"method": "PUT", "body": {"{payload.who}": True}}, b'{"Ada":true}', "application/json"),
        ({"method": "PUT", "body": {}, "headers": {"content-type": "x/y"}}, b"{}", None),
    ],
)
def test_bodies(options: dict[str, Any], body: bytes | None, kind: str | None) -> None:
    found = sent(**options)
    assert (found.body, found.headers.get("Content-Type")) == (body, kind)


def test_one_without_places_is_sent_as_it_is() -> None:
    plain = request(method="POST", headers={"X": "y"})
    assert unfilled(plain, "{}") == Filled(URL, {"X": "y", "Content-Type": "application/json"}, b"{}")
    assert plain.headers == {"X": "y"}


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "\x00", "\x7f"])
def test_a_payload_cannot_break_a_header(value: str) -> None:
    with pytest.raises(Invalid, match="control characters"):
        filled(request(headers={"X": "{payload.v}"}), {**FACTS, "payload": {"v": value}}, "{}")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120), (" 5 ", 5), ("0", 0), ("99999999999999999999", 86_400), ("-5", None), ("soon", None), ("", None),
        (None, None), ("Sat, 31 Jan 2026 08:01:00 GMT", 60), ("Sat, 31 Jan 2026 07:00:00 GMT", 0),
        ("Sat, 31 Jan 2099 07:00:00 GMT", 86_400), ("Sat, 31 Jan 2026 08:01:00 -0000", 60), ("1.5", None),
    ],
)  # fmt: skip
def test_retry_after(value: str | None, seconds: int | None) -> None:
    found = retry_after(value, datetime(2026, 1, 31, 8, tzinfo=UTC))
    assert found == (None if seconds is None else timedelta(seconds=seconds))


def test_origins() -> None:
    assert same_origin("https://a.example/x", "https://A.example/y?z")
    assert not same_origin("https://a.example/", "http://a.example/")
    assert not same_origin("https://a.example/", "https://a.example:444/")
