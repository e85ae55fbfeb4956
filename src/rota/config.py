"""Configuration: flags over `ROTA_*` over `rota.toml` over defaults. An invalid combination is refused as a whole."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import msgspec

from rota.errors import BadConfig, BadDuration, did_you_mean
from rota.values.durations import parse_duration

LOG_FORMATS = ("text", "json")
_FILE = "rota.toml"
_SECOND = timedelta(seconds=1)
_BOUNDS = {
    "concurrency": (1, 10_000),
    "port": (0, 65_535),
    "max_payload": (64, 16_777_216),
    "log_limit": (0, 67_108_864),
}
_SHORTEST_SECRET = 32
_SECRETS = ("database_url", "smtp_url", "jwt_secret", "jwt_jwks")
_MASK = "…"
_PROXY_WORDS = {"loopback": ("127.0.0.0/8", "::1/128"), "none": ()}
_BASE_PATH = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]{1,100}){0,10}")
_RATE = re.compile(r"none|[1-9]\d{0,8}/[1-9]?\d{0,3}[smhd]")
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting; its environment variable is `ROTA_` and the name in capitals."""

    database_url: str = "sqlite:///rota.db"
    server: str = ""
    token: str = ""
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=10)
    reaper: timedelta = timedelta(seconds=5)
    poll: timedelta = _SECOND
    deadline: timedelta = timedelta(seconds=15)
    janitor: timedelta = timedelta(minutes=5)
    expect: timedelta = timedelta(seconds=10)
    start_wait: timedelta = timedelta(minutes=1)
    accept_copies: bool = False
    shutdown_grace: timedelta = timedelta(seconds=20)
    concurrency: int = 10
    worker_labels: str = ""
    worker_version: str = ""
    max_payload: int = 262_144
    log_limit: int = 1_048_576
    host: str = "127.0.0.1"
    auth: bool = False
    allowed_hosts: str = ""
    enqueue_rate: str = "60000/1m"
    trusted_proxies: str = "loopback"
    base_path: str = ""
    jwt_secret: str = ""
    jwt_jwks: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_role_claim: str = "role"
    jwt_scope_claim: str = "scope"
    port: int = 7682
    log_format: str = "text"
    log_runs: bool = False
    tracing: bool = False
    http_allow: str = ""
    dashboard_url: str = ""
    smtp_url: str = ""
    smtp_from: str = ""
    enable_command: bool = False

    def __post_init__(self) -> None:
        for name in ("lease", "heartbeat", "reaper", "poll", "deadline", "janitor", "expect"):
            if getattr(self, name) <= timedelta(0):
                raise BadConfig(f"{name} must be positive")
        if self.lease < _SECOND:
            raise BadConfig(f"lease is {self.lease.total_seconds():g}s; the minimum is 1s")
        if self.lease < 3 * self.heartbeat:
            raise BadConfig(
                f"lease ({self.lease.total_seconds():g}s) must be at least 3 × heartbeat "
                f"({self.heartbeat.total_seconds():g}s)",
                hint="one lost heartbeat must not cost a lease; set ROTA_LEASE or ROTA_HEARTBEAT",
            )
        for name, (low, high) in _BOUNDS.items():
            if not low <= getattr(self, name) <= high:
                raise BadConfig(f"{name} must be {low} to {high}, not {getattr(self, name)}")
        _check_networks("http_allow", self.http_allow, "10.0.0.0/8,127.0.0.1")
        _check_networks("trusted_proxies", self.trusted_proxies, "loopback,10.0.0.0/8; or none", known=_PROXY_WORDS)
        if not is_base_path(self.base_path):
            hint = "write it as in an address, from the first slash on: /rota"
            raise BadConfig(f"base_path cannot be {self.base_path!r}", hint=hint)
        _check_dashboard(self.dashboard_url)
        self._check_jwt()
        if not _RATE.fullmatch(self.enqueue_rate):
            raise BadConfig(f"enqueue_rate cannot be {self.enqueue_rate!r}", hint='write "60000/1m", or "none"')
        if self.log_format not in LOG_FORMATS:
            raise BadConfig(f"log_format must be {' or '.join(LOG_FORMATS)}, not {self.log_format!r}")

    def _check_jwt(self) -> None:
        if self.jwt_secret and len(self.jwt_secret.encode(errors="replace")) < _SHORTEST_SECRET:
            hint = "`python3 -c 'import secrets; print(secrets.token_urlsafe(32))'` makes a good one"
            raise BadConfig(f"jwt_secret must have at least {_SHORTEST_SECRET} bytes", hint=hint)

    def __repr__(self) -> str:
        """Show all settings, with secrets masked."""
        shown = (
            (name, _MASK if name in _SECRETS and getattr(self, name) else getattr(self, name)) for name in SETTINGS
        )
        return f"Config({', '.join(f'{name}={value!r}' for name, value in shown)})"


SETTING_WORDS: dict[str, str] = {
    "database_url": "`sqlite:///relative.db`, `sqlite:////absolute/path.db`, `postgresql://user:password@host/database`",
    "server": "a server that the command line uses instead of a database",
    "token": "the API token for that server; keep it in the environment, not in `rota.toml`",
    "lease": "how long a worker may be silent before its runs are reclaimed; at least 1s, and at least 3 × `heartbeat`",
    "heartbeat": "how often a worker renews its leases",
    "reaper": "how often expired leases are reclaimed",
    "poll": "how often a process polls for work while hints do not arrive or something waits; at rest, every 20 polls",
    "deadline": "the timeout of any database call",
    "janitor": "how often old runs are deleted",
    "expect": "how often expectations are checked",
    "start_wait": "how long a starting server or worker waits for PostgreSQL and for `rota migrate`; `0s`: not at all",
    "accept_copies": "whether a copy of a PostgreSQL database goes on without `rota database accept`; for tests",
    "shutdown_grace": "how long handlers may continue after SIGTERM; the process ends at most 6 s later",
    "concurrency": "how many runs a worker executes at once",
    "worker_labels": "labels of a worker, for jobs that require them: `gpu,zone=eu`",
    "worker_version": "the version of your application, for jobs that require a minimum; by default rota's own",
    "max_payload": "the maximum size of a payload or result, in bytes of JSON",
    "log_limit": "the maximum size of an attempt's log, in bytes; `0` keeps nothing",
    "host": "the address on which the server listens",
    "auth": "whether callers of the server must present a token",
    "allowed_hosts": "further host names of the server, separated by commas",
    "enqueue_rate": "how many runs a token of the role `enqueue` may enqueue at each server; `none`: no limit",
    "trusted_proxies": "proxies whose `X-Forwarded-For`, `-Proto`, `-Host` and `-Prefix` are trusted: addresses and "
    "networks separated by commas, `loopback` for this machine, `none` for none",
    "base_path": "the path under which a proxy serves it, if not the root: `/rota`",
    "jwt_secret": "the secret, at least 32 bytes, of JSON Web Tokens signed with HS256; requires `rota[jwt]`",
    "jwt_jwks": "a JSON Web Key Set, or a file with one, for JSON Web Tokens signed with RS256; requires "
    "`jwt_issuer` and `jwt_audience`",
    "jwt_issuer": "the required `iss` of a JSON Web Token",
    "jwt_audience": "the required `aud` of a JSON Web Token",
    "jwt_role_claim": "the claim with the caller's role",
    "jwt_scope_claim": "the claim with the scope that the token is limited to",
    "port": "the port on which the server listens",
    "log_format": "the log format of `rota dev`, `rota server` and `rota worker`: `text`, or JSON lines (`json`)",
    "log_runs": "whether a worker logs the start and end of every run; this costs more than a short run itself",
    "tracing": "OpenTelemetry spans of enqueues, attempts and steps; requires `rota[tracing]`",
    "http_allow": "private addresses and networks that HTTP jobs and webhooks may connect to: `10.1.0.0/16,127.0.0.1`",
    "dashboard_url": "where people open the dashboard, for links in notifications: `https://rota.example.com`",
    "smtp_url": "the SMTP server: `smtp://user:password@host:587?starttls=1`",
    "smtp_from": "the sender address of e-mail",
    "enable_command": "whether a worker runs command jobs",
}


def _check_dashboard(url: str) -> None:
    if url and not url.startswith(("http://", "https://")):
        raise BadConfig(f"dashboard_url cannot be {url!r}", hint="https://rota.example.com")


def _check_networks(name: str, text: str, example: str, known: Collection[str] = ()) -> None:
    for part in _listed(text):
        try:
            if part not in known:
                ip_network(part)
        except ValueError as error:
            hint = f"networks or addresses, separated by commas: {example}"
            raise BadConfig(f"{name} has {part!r}, which is not a network: {error}", hint=hint) from None


def is_base_path(text: str) -> bool:
    """Return whether `text` is a valid base path; a trailing slash is ignored."""
    return _BASE_PATH.fullmatch(text.rstrip("/")) is not None


def networks_of(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Parse a list of networks; `loopback` is this machine, `none` is empty."""
    named = (network for part in _listed(text) for network in _PROXY_WORDS.get(part, (part,)))
    return tuple(ip_network(network) for network in named)


def _listed(text: str) -> list[str]:
    return [word for word in (part.strip() for part in text.split(",")) if word]


SETTINGS = tuple(field.name for field in msgspec.structs.fields(Config))
_TYPES: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Config)}


def load_config(
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Config:
    """Load the configuration. Flags that are None count as not given. `file` defaults to `rota.toml`, if it exists."""
    environment = os.environ if environment is None else environment
    values: dict[str, tuple[object, str]] = {}
    values |= {name: (value, f"{name} in {file or _FILE}") for name, value in _from_file(file).items()}
    values |= {name: (value, _variable(name)) for name, value in _from_environment(environment).items()}
    values |= {name: (value, name) for name, value in (flags or {}).items() if value is not None}
    typed: dict[str, Any] = {name: _typed(name, value, source) for name, (value, source) in values.items()}
    return Config(**typed)


def changed(config: Config, settings: Mapping[str, object]) -> Config:
    """Return `config` with these settings replaced; those that are None count as not given."""
    typed: dict[str, Any] = {name: _typed(name, value) for name, value in settings.items() if value is not None}
    return msgspec.structs.replace(config, **typed)


def _from_file(file: Path | None) -> dict[str, object]:
    path = file or Path(_FILE)
    if not path.exists():
        if file:
            raise BadConfig(f"there is no file {file}")
        return {}
    try:
        content = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise BadConfig(f"{path}: {error}") from error
    for name in content:
        if name not in SETTINGS:
            raise BadConfig(f"{path} has a setting {name!r} that rota does not know", hint=did_you_mean(name, SETTINGS))
    return content


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """Read `ROTA_*` variables. Unknown names are ignored: other programs may own them."""
    return {name: environment[key] for name in SETTINGS if (key := _variable(name)) in environment}


def _variable(name: str) -> str:
    return f"ROTA_{name.upper()}"


def _typed(name: str, value: Any, source: str | None = None) -> object:
    """Convert a setting to its type. `source` says where it was set, for the error message."""
    if name not in _TYPES:
        raise BadConfig(f"rota has no setting {name!r}", hint=did_you_mean(name, SETTINGS))
    kind = _TYPES[name]
    try:
        if kind is timedelta:
            return parse_duration(value)
        if kind is bool:
            return _WORDS[str(value).lower()]
        if kind is int:
            return int(str(value))
        return str(value)
    except (BadDuration, ValueError, KeyError) as error:
        hint = getattr(error, "hint", None) or ("write true or false" if kind is bool else "write a whole number")
        raise BadConfig(f"{source or name} cannot be {value!r}", hint=hint) from error
