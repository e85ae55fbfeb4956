"""HTTP jobs: send one request per attempt and turn the response into an outcome."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

import msgspec

from rota.core.alerts.webhook_signature import signing_headers
from rota.core.jobs.http import (
    MOST_REDIRECTS,
    Filled,
    HttpRequest,
    checked_url,
    filled,
    has_places,
    meant,
    retry_after,
    same_origin,
    unfilled,
)
from rota.core.jobs.placeholders import Facts
from rota.core.jobs.secrets import is_secret, masked_url
from rota.core.progress.control_flow import Fail, NotBefore, Retry
from rota.core.runs.claim import Claim
from rota.engine.handlers.current_run import claimed_run
from rota.engine.jobs.http_client import CONNECTION_FAILED, Answer, HttpClient, NotSent, current_client
from rota.errors import Invalid
from rota.values.instants import maybe_instant
from rota.values.json import Limits

_SHOWN_BODY = 500
_AROUND_BODY = 6_000  # the other parts of a result, at most
_MOVED = (301, 302, 303, 307, 308)


class HttpJob:
    """Handler of one HTTP job."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._has_places = has_places(request)
        self._expected = meant(request.expect_status)
        self._retried = meant(request.retry_on)

    async def send(self, payload: str) -> dict[str, Any]:
        """Send the request of an HTTP job."""
        async with current_client() as client:
            return await self._send(client, claimed_run(), payload)

    async def _send(self, client: HttpClient, claim: Claim, payload: str) -> dict[str, Any]:
        begins = time.perf_counter()
        try:
            sending = self._filled(claim, payload)
        except Invalid as error:
            raise Fail(str(error), code="bad_request") from None
        answer = await self._follow(client, sending)
        if answer.status not in self._expected:
            raise self._unexpected(answer, sending.url)
        return _result(answer, round((time.perf_counter() - begins) * 1_000), client.room)

    def _filled(self, claim: Claim, payload: str) -> Filled:
        request = self._request
        sending = filled(request, facts_of(claim, payload), payload) if self._has_places else unfilled(request, payload)
        headers = sending.headers
        headers["Idempotency-Key"] = claim.idempotency_key
        headers["X-Rota-Run-Id"] = claim.run_id
        headers["X-Rota-Attempt"] = str(claim.attempt)
        if request.secret is not None:
            now = int(time.time())
            headers.update(signing_headers(request.secret, claim.idempotency_key, now, sending.body or b""))
        return sending

    async def _follow(self, client: HttpClient, sending: Filled) -> Answer:
        method, url, headers, body = self._request.method, sending.url, sending.headers, sending.body
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._ask(client, method, url, headers, body)
            if not self._request.follows or answer.status not in _MOVED or not answer.location:
                return answer
            target = self._target(url, answer.location)
            if not same_origin(url, target):
                headers = {name: value for name, value in headers.items() if not is_secret(name)}
            if answer.status < 307 and method not in ("GET", "HEAD"):
                method, body = "GET", None
                headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
            url = target
        raise Fail(f"{self._name(sending.url)}: more than {MOST_REDIRECTS} redirects", code="too_many_redirects")

    def _target(self, url: str, location: str) -> str:
        try:
            return checked_url(urljoin(url, location))
        except (Invalid, ValueError) as error:
            raise Fail(f"{self._name(url)}: bad redirect: {error}", code="bad_redirect") from None

    async def _ask(
        self, client: HttpClient, method: str, url: str, headers: dict[str, str], body: bytes | None
    ) -> Answer:
        cap = min(self._request.max_response, max(0, client.room - _AROUND_BODY))
        try:
            return await client.ask(method, url, headers, body, cap)
        except NotSent as error:
            kind = Retry if error.code == CONNECTION_FAILED else Fail
            raise kind(f"{self._name(url)}: {error}", code=error.code) from None

    def _unexpected(self, answer: Answer, url: str) -> Retry | Fail:
        body = " ".join(answer.text[:_SHOWN_BODY].split())
        message = f"{self._name(url)} answered {answer.status}" + (f": {body}" if body else "")
        if answer.status not in self._retried:
            return Fail(message, code="http_status")
        after = retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
        return NotBefore(message, after=after, code="http_status")

    def _name(self, url: str) -> str:
        return f"{self._request.method} {masked_url(url)}"


def _result(answer: Answer, elapsed_ms: int, room: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "status": answer.status,
        "headers": answer.headers,
        "body": answer.body(Limits(room)),
        "truncated": answer.truncated,
        "elapsed_ms": elapsed_ms,
    }
    if len(answer.content) * 6 + _AROUND_BODY > room:  # JSON escapes a byte as up to six characters
        while len(msgspec.json.encode(result)) > room:
            text = result["body"] if isinstance(result["body"], str) else answer.text
            result |= {"body": text[: len(text) // 2], "truncated": True}
    return result


def facts_of(claim: Claim, payload: str) -> Facts:
    """Return the values for the placeholders in a job's texts."""
    planned = maybe_instant(claim.plan_time)
    return {
        "payload": msgspec.json.decode(payload),
        "plan_time": None if planned is None else planned.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "scope.kind": claim.scope_kind,
        "scope.id": claim.scope_id,
        "run_id": claim.run_id,
        "attempt": claim.attempt,
        "idempotency_key": claim.idempotency_key,
    }
