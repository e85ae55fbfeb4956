"""HTTP jobs as values: the request template, the request of one run, and what a response means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from rota.core.alerts.webhook_signature import checked_secret
from rota.core.jobs.placeholders import Facts, check_places, filled_json, filled_text, for_url, places_in
from rota.errors import Invalid
from rota.values.sizes import parse_size

TIMEOUT = timedelta(seconds=10)
MOST_REDIRECTS = 5
USUAL_RESPONSE = 65_536
RETRIED = ("408", "425", "429", "5xx")
LONGEST_RETRY_AFTER = timedelta(days=1)
WITH_BODY = ("POST", "PUT", "PATCH")
_LONGEST_URL = 8_000
_MOST_HEADERS = 100
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_AUTHORITY = re.compile(r"[a-z]+://[^/?#]*", re.IGNORECASE)
_STATUSES = re.compile(r"([1-5])xx|([1-5]\d\d)(?:-([1-5]\d\d))?", re.IGNORECASE)
_RESERVED = (
    "host", "content-length", "transfer-encoding", "connection", "upgrade", "trailer", "te", "expect",
    "idempotency-key", "x-rota-run-id", "x-rota-attempt", "webhook-id", "webhook-timestamp", "webhook-signature",
)  # fmt: skip

StatusOption = int | str | list[int | str] | tuple[int | str, ...]


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request template of an HTTP job.

    `body` is text or JSON; without one, methods that have a body send the run's payload. `redirects`: whether they are
    followed; None: those of GET and HEAD only.
    """

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: Any = None
    expect_status: tuple[str, ...] = ("2xx",)
    retry_on: tuple[str, ...] = RETRIED
    redirects: bool | None = None
    max_response: int = USUAL_RESPONSE
    secret: str | None = None

    @property
    def follows(self) -> bool:
        return self.method in ("GET", "HEAD") if self.redirects is None else self.redirects


HTTP_OPTIONS = HttpRequest.__struct_fields__


class Filled(msgspec.Struct, frozen=True):
    """Request as it is sent for one run."""

    url: str
    headers: dict[str, str]
    body: bytes | None


def request_of(given: Mapping[str, Any]) -> HttpRequest:
    """Validate the HTTP options of a job; None counts as not given."""
    options = {name: given[name] for name in HTTP_OPTIONS if given.get(name) is not None}
    if "url" not in options:
        raise Invalid("an HTTP job needs a url", hint='url="https://example.com/hook"')
    return HttpRequest(
        url=_checked_template(options["url"]),
        method=_method(options.get("method", "GET")),
        headers=_headers(options.get("headers", {})),
        body=_body(options.get("body")),
        expect_status=_statuses(options.get("expect_status", "2xx"), "expect_status"),
        retry_on=_statuses(options.get("retry_on", RETRIED), "retry_on"),
        redirects=_redirects(options.get("redirects")),
        max_response=parse_size(options.get("max_response", USUAL_RESPONSE), "max_response"),
        secret=checked_secret(options.get("secret")),
    )


def _checked_template(url: object) -> str:
    """Validate the URL. Its host must be literal: the job decides where requests go, never the payload."""
    if not isinstance(url, str):
        raise Invalid(f"a url must be text, not {url!r:.80}")
    check_places(url, "the url")
    authority = _AUTHORITY.match(url)
    if any(places_in(authority.group() if authority else url)):
        raise Invalid("the host of a url must not contain placeholders", hint="only its path and its query may")
    return checked_url(url)


def checked_url(url: str) -> str:
    if len(url) > _LONGEST_URL or any(ord(letter) <= 32 or letter in "\\\x7f" for letter in url):
        raise Invalid(f"a url has no spaces, backslashes or control characters, and at most {_LONGEST_URL} characters")
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError as error:
        raise Invalid(f"{url!r:.80} is not a url: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{url!r:.80} is not an absolute http or https url", hint="https://example.com/path")
    if "@" in parts.netloc:
        raise Invalid("a url must not contain a user or a password", hint='put them into headers={"Authorization": …}')
    return url


def _method(method: object) -> str:
    if not isinstance(method, str) or not _TOKEN.fullmatch(method) or method.upper() in ("CONNECT", "TRACE"):
        raise Invalid(f"{method!r:.80} is not an HTTP method", hint="GET, POST, PUT, PATCH, DELETE, HEAD")
    return method.upper()


def _headers(headers: object) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise Invalid(f"headers must map names to values, not {headers!r:.80}")
    if len(headers) > _MOST_HEADERS:
        raise Invalid(f"there may be at most {_MOST_HEADERS} headers, not {len(headers)}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise Invalid(f"{name!r:.80} is not a valid name of a header")
        if name.lower() in _RESERVED:
            raise Invalid(f"the header {name} is set by rota itself")
        check_places(_header_value(name, value), f"the header {name}")
    return dict(headers)


def _header_value(name: str, value: object) -> str:
    """Validate a header's value: a line break would begin another header, or another request."""
    if not isinstance(value, str) or any((ord(letter) < 32 and letter != "\t") or letter == "\x7f" for letter in value):
        raise Invalid(f"the value of the header {name} must be text without control characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Invalid(f"the value of the header {name} contains an unpaired surrogate") from None
    return value


def _body(body: Any) -> Any:
    check_places(body, "the body")
    return body


def _redirects(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise Invalid(f"redirects must be true or false, not {value!r:.80}")


def _statuses(value: StatusOption, what: str) -> tuple[str, ...]:
    """Validate statuses: `200`, `"2xx"`, `"200-204"`, or a list of them."""
    words = tuple(str(word) for word in (value if isinstance(value, list | tuple) else (value,)))
    for word in words:
        match = _STATUSES.fullmatch(word)
        if not match or (match[3] and match[3] < match[2]):
            raise Invalid(f"{what} cannot be {word!r:.80}", hint='statuses: 200, "2xx", "200-204", or a list of them')
    return words


@lru_cache(maxsize=1_000)
def meant(words: tuple[str, ...]) -> frozenset[int]:
    """Return the statuses that these patterns match."""
    statuses: set[int] = set()
    for word in words:
        match = _STATUSES.fullmatch(word)
        assert match
        if match[1]:
            statuses.update(range(int(match[1]) * 100, int(match[1]) * 100 + 100))
        else:
            statuses.update(range(int(match[2]), int(match[3] or match[2]) + 1))
    return frozenset(statuses)


def has_places(request: HttpRequest) -> bool:
    return any(True for _ in places_in([request.url, list(request.headers.values()), request.body]))


def filled(request: HttpRequest, facts: Facts, payload: str) -> Filled:
    """Fill the placeholders for one run; `payload` is its JSON text. Raises `Invalid` where it does not fit."""
    headers = {name: _header_value(name, filled_text(value, facts)) for name, value in request.headers.items()}
    url = checked_url(filled_text(request.url, facts, for_url))  # again: filling may have made it too long
    body = filled_text(request.body, facts) if isinstance(request.body, str) else filled_json(request.body, facts)
    return Filled(url, *_content(request, headers, body, payload))


def unfilled(request: HttpRequest, payload: str) -> Filled:
    """Return the request of one run for a template without placeholders."""
    return Filled(request.url, *_content(request, dict(request.headers), request.body, payload))


def _content(
    request: HttpRequest, headers: dict[str, str], body: Any, payload: str
) -> tuple[dict[str, str], bytes | None]:
    if isinstance(body, str):
        return headers, body.encode() or None
    if body is None and request.method not in WITH_BODY:
        return headers, None
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return headers, payload.encode() if body is None else msgspec.json.encode(body)


def retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Parse a `Retry-After` header, seconds or a date; clamped, since a server may be wrong about itself."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        wait = timedelta(seconds=min(int(text[:9]), LONGEST_RETRY_AFTER.total_seconds()))
    else:
        from email.utils import parsedate_to_datetime  # seldom needed, and it imports much

        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return min(max(wait, timedelta(0)), LONGEST_RETRY_AFTER)


def same_origin(url: str, other: str) -> bool:
    first, second = urlsplit(url), urlsplit(other)
    return (first.scheme, first.netloc.lower()) == (second.scheme, second.netloc.lower())
