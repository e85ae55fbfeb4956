"""Masking of secrets in data jobs: only workers see them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from rota.core.jobs.http import HttpRequest
from rota.core.jobs.job import JobDefinition
from rota.errors import MaskedSecret

MASK = "…"
_SECRET = re.compile(r"auth|cookie|token|key|secret|passw|credential|signature", re.IGNORECASE)
_QUERY = re.compile(r"([^&=;]+)=([^&;]*)")
_HARMLESS = ("idempotency-key", "keep-alive")


def is_secret(name: str) -> bool:
    """Return whether the field's name suggests a secret (password, token, …)."""
    return _SECRET.search(name) is not None and name.lower() not in _HARMLESS


def masked(definition: JobDefinition) -> JobDefinition:
    http, command = definition.http, definition.command
    if http is not None:
        http = msgspec.structs.replace(
            http,
            url=masked_url(http.url),
            headers=_masked(http.headers),
            body=_masked(http.body),
            secret=None if http.secret is None else MASK,
        )
    if command is not None:
        command = msgspec.structs.replace(command, env=_masked(command.env))
    if http is definition.http and command is definition.command:
        return definition
    return msgspec.structs.replace(definition, http=http, command=command)


def without_headers(request: HttpRequest) -> HttpRequest:
    """Return a request for whoever may not change jobs: any header may be a secret, whatever it is called."""
    return msgspec.structs.replace(request, headers=dict.fromkeys(request.headers, MASK))


def without_path(url: str) -> str:
    """Return the address of a webhook for whoever may not change it: the path of many is a secret. Mail stays."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/{MASK}" if parts.netloc else url


def require_unmasked(value: Any, path: str = "$") -> None:
    """Refuse masked secrets, so that a definition that was read and sent back does not overwrite the secret."""
    if isinstance(value, str) and (value == MASK or f"={MASK}" in value):
        raise MaskedSecret(path)
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, item in items:
        require_unmasked(item, f"$.{name}" if path == "$" else f"{path}[{name!r}]")


def masked_url(url: str) -> str:
    """Mask values in the query whose names suggest a secret."""
    parts = urlsplit(url)
    if not parts.query:
        return url
    query = _QUERY.sub(lambda pair: f"{pair[1]}={MASK}" if is_secret(pair[1]) else pair[0], parts.query)
    return urlunsplit(parts._replace(query=query))


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: MASK if is_secret(name) else _masked(item) for name, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list | tuple) else value
