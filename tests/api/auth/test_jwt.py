"""JSON Web Tokens: which are accepted, and a table of known attacks on other implementations."""

import base64
import hashlib
import hmac
import json
import math
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jws
from joserfc.jwk import RSAKey

from rota.api.auth.identity import Authenticator
from rota.api.auth.jwt import jwt_verifier
from rota.app import Rota
from rota.config import Config, load_config
from rota.errors import BadConfig
from rota.server import asgi

BASE = "http://127.0.0.1:7682"
SECRET = "a-secret-of-at-least-thirty-two-bytes"
KEY, OTHER_KEY = RSAKey.generate_key(2_048), RSAKey.generate_key(2_048)
PUBLIC = KEY.as_dict(private=False)
JWKS = json.dumps({"keys": [{**PUBLIC, "kid": "one"}, {"kty": "EC", "crv": "P-256", "x": "?", "y": "?"}]})
SETTINGS: dict[str, Any] = {
    "auth": True, "jwt_secret": SECRET, "jwt_jwks": JWKS, "jwt_issuer": "https://id.example", "jwt_audience": "rota",
}  # fmt: skip


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url, **SETTINGS)

    @app.job
    def hello() -> None: ...

    await (await app.connect()).store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


@pytest.fixture
async def now(app: Rota) -> int:
    return math.floor((await (await app.connect()).time()).timestamp())


def claims(now: int, **others: Any) -> dict[str, Any]:
    given = {"sub": "ada", "role": "operator", "iss": "https://id.example", "aud": "rota", "exp": now + 600, **others}
    return {name: value for name, value in given.items() if value is not ...}


def part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_secret(content: object, secret: str | bytes = SECRET, **header: Any) -> str:
    """Build a token by hand: a library would refuse to make most of these."""
    text = f"{part({'alg': 'HS256', 'typ': 'JWT', **header})}.{part(content)}"
    raw = secret.encode() if isinstance(secret, str) else secret
    return f"{text}.{part(hmac.new(raw, text.encode(), hashlib.sha256).digest())}"


def by_key(content: object, key: RSAKey = KEY, **header: Any) -> str:
    return jws.serialize_compact({"alg": "RS256", **header}, json.dumps(content), key, algorithms=["RS256", "PS256"])


async def asked(http: httpx2.AsyncClient, text: str) -> httpx2.Response:
    return await http.get("/api/v1/whoami", headers={"Authorization": f"Bearer {text}"})


@pytest.mark.parametrize("make", [by_secret, by_key, lambda told: by_key(told, kid="one")])
async def test_whom_somebody_vouches_for(http: httpx2.AsyncClient, now: int, make: Callable[..., str]) -> None:
    answer = await asked(http, make(claims(now)))
    assert answer.json() == {"actor": "jwt:ada", "role": "operator", "scope": None}
    several = await asked(http, make(claims(now, aud=["other", "rota"], role="viewer", scope="tenant/42", nbf=now)))
    assert several.json() == {"actor": "jwt:ada", "role": "viewer", "scope": {"kind": "tenant", "id": "42"}}


async def test_they_may_do_what_their_role_may_and_sign_it(http: httpx2.AsyncClient, now: int) -> None:
    headers = {"Authorization": f"Bearer {by_secret(claims(now))}"}
    run = (await http.post("/api/v1/runs", json={"job": "hello", "delay": "1h"}, headers=headers)).json()
    assert (await http.post(f"/api/v1/runs/{run['id']}/cancel", headers=headers)).json()["cancelled_by"] == "jwt:ada"
    assert (await http.get("/api/v1/tokens", headers=headers)).status_code == 403
    scoped = {"Authorization": f"Bearer {by_secret(claims(now, scope='tenant/42'))}"}
    assert (await http.get(f"/api/v1/runs/{run['id']}", headers=scoped)).status_code == 404


async def test_clocks_may_differ_by_half_a_minute(http: httpx2.AsyncClient, now: int) -> None:
    assert (await asked(http, by_secret(claims(now, exp=now - 20, nbf=now + 25)))).status_code == 200


def attacks(now: int) -> dict[str, str]:
    good = claims(now)
    signed = by_secret(good)
    head, body, signature = signed.split(".")
    public_pem = KEY.as_pem(private=False)
    unsigned = {"alg": "none", "typ": "JWT"}
    return {
        "no algorithm": f"{part(unsigned)}.{part(good)}.",
        "no algorithm, in other letters": f"{part({'alg': 'nOnE'})}.{part(good)}.",
        "no algorithm, with the signature of another": f"{part(unsigned)}.{body}.{signature}",
        "without a signature": f"{head}.{body}.",
        "the public key as a secret": by_secret(good, public_pem),
        "the public key's modulus as a secret": by_secret(good, str(PUBLIC["n"])),
        "the public document as a secret": by_secret(good, JWKS),
        "HS256 under the name of RS256": by_secret(good, public_pem, alg="RS256"),
        "an empty secret": by_secret(good, b""),
        "another secret": by_secret(good, "another-secret-of-thirty-two-bytes!"),
        "another key": by_key(good, OTHER_KEY),
        "another key with our name": by_key(good, OTHER_KEY, kid="one"),
        "our key with another name": by_key(good, kid="two"),
        "a name that is a path": by_key(good, OTHER_KEY, kid="../../../../dev/null"),
        "it brings its own key": by_key(good, OTHER_KEY, jwk=OTHER_KEY.as_dict(private=False)),
        "it says where its key is": by_key(good, OTHER_KEY, jku="http://127.0.0.1:1/keys"),
        "another algorithm of the same key": by_key(good, alg="PS256"),
        "an algorithm that is a list": by_secret(good, alg=["HS256"]),
        "HS512 said, HS256 done": by_secret(good, alg="HS512"),
        "a part that must be understood": by_secret(good, crit=["odd"], odd=1),
        "a payload that is not encoded": by_secret(good, crit=["b64"], b64=False),
        "other claims": f"{head}.{part(claims(now, role='admin'))}.{signature}",
        "a truncated signature": f"{head}.{body}.{signature[:-4]}",
        "for ever": by_secret(claims(now, exp=...)),
        "until infinity": by_secret(b'{"sub":"ada","role":"admin","iss":"https://id.example","aud":"rota","exp":1e400}'),
        "until no number": by_secret(claims(now, exp=math.nan)),
        "until a very large number": by_secret(claims(now, exp=10**400)),
        "until true": by_secret(claims(now, exp=True)),
        "until a text": by_secret(claims(now, exp=str(now + 600))),
        "until null": by_secret(claims(now, exp=None)),
        "expired": by_secret(claims(now, exp=now - 40)),
        "not yet": by_secret(claims(now, nbf=now + 60)),
        "not before a text": by_secret(claims(now, nbf="x")),
        "another issuer": by_secret(claims(now, iss="https://id.example.evil")),
        "no issuer": by_secret(claims(now, iss=...)),
        "an issuer that is a list": by_secret(claims(now, iss=["https://id.example"])),
        "another audience": by_secret(claims(now, aud="other")),
        "an audience that holds ours as a part": by_secret(claims(now, aud="rota-test")),
        "no audience": by_secret(claims(now, aud=...)),
        "an audience that is an object": by_secret(claims(now, aud={"rota": 1})),
        "no role": by_secret(claims(now, role=...)),
        "a role that is none": by_secret(claims(now, role="root")),
        "a role in capitals": by_secret(claims(now, role="ADMIN")),
        "a list of roles": by_secret(claims(now, role=["admin"])),
        "no subject": by_secret(claims(now, sub=...)),
        "an empty subject": by_secret(claims(now, sub="")),
        "a subject with a line break": by_secret(claims(now, sub="a\r\nSet-Cookie: x")),
        "a subject that is a number": by_secret(claims(now, sub=7)),
        "a scope that is none": by_secret(claims(now, scope="openid profile")),
        "an empty scope": by_secret(claims(now, scope="")),
        "half a scope": by_secret(claims(now, scope="tenant/")),
        "a list of scopes": by_secret(claims(now, scope=["tenant/42"])),
        "claims that are a list": by_secret([good]),
        "claims that are deep": by_secret(b"[" * 3_000),
        "claims that are no text": by_secret(b"\xff\xfe"),
        "a deep header": f"{part(b'[' * 3_000)}.{body}.{signature}",
        "a large one": by_secret(claims(now, more="x" * 20_000)),
        "nothing between the dots": "..",
        "no letters": f"%.{body}.%",
    }  # fmt: skip


async def test_nobody_comes_in_by_an_attack(http: httpx2.AsyncClient, now: int) -> None:
    for attack, text in attacks(now).items():
        forgive(http)
        answer = await asked(http, text)
        assert answer.status_code in (401, 403), (attack, answer.text)
        assert answer.headers["content-type"] == "application/problem+json", attack
        assert SECRET not in answer.text, attack


def forgive(http: httpx2.AsyncClient) -> None:
    """Reset the rate limit; otherwise the eleventh attack would be refused because of the ten before."""
    state = http._transport.app.state  # type: ignore[attr-defined]
    state.authenticator = Authenticator(time.monotonic, jwt_verifier(state.rota.config))


async def test_what_is_refused_counts_as_a_try(http: httpx2.AsyncClient, now: int) -> None:
    for number in range(5):
        assert (await asked(http, by_secret(claims(now, role="root", jti=number)))).status_code == 403
        assert (await asked(http, by_secret(claims(now, jti=number), "x" * 32))).status_code == 401
    assert (await asked(http, by_secret(claims(now)))).status_code == 429


async def test_a_token_of_rotas_own_is_good_beside_them(app: Rota, http: httpx2.AsyncClient) -> None:
    issued = await (await app.connect()).tokens.create("ci", "viewer")
    assert (await asked(http, issued.secret)).json()["actor"] == "token:ci"


async def test_a_jwt_opens_no_session(http: httpx2.AsyncClient, now: int) -> None:
    answer = await http.post("/api/v1/session", json={"token": by_secret(claims(now))}, headers={"Origin": BASE})
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


async def test_where_none_is_expected_none_is_read(sqlite_url: str) -> None:
    app = Rota(sqlite_url, auth=True)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url=BASE) as http:
        assert (await asked(http, by_secret(claims(2**32), ""))).status_code == 401
    await app.aclose()


async def test_without_an_audience_of_our_own_one_for_others_is_refused(sqlite_url: str) -> None:
    app = Rota(sqlite_url, auth=True, jwt_secret=SECRET, jwt_role_claim="rota_role", jwt_scope_claim="tenant")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url=BASE) as http:
        told = {"sub": "ada", "rota_role": "viewer", "exp": 2**32, "scope": "openid"}
        assert (await asked(http, by_secret(told))).status_code == 200
        assert (await asked(http, by_secret({**told, "aud": "other"}))).status_code == 401
    await app.aclose()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"jwt_secret": "x" * 31}, "32 bytes"),
        ({"jwt_issuer": ""}, "needs jwt_issuer"),
        ({"jwt_audience": ""}, "needs jwt_issuer"),
        ({"jwt_jwks": "no-such-file.json"}, "cannot be read"),
        ({"jwt_jwks": "a\0b"}, "cannot be read"),
        ({"jwt_jwks": "{"}, "Key Set"),
        ({"jwt_jwks": '{"keys": 7}'}, "Key Set"),
        ({"jwt_jwks": '{"keys": []}'}, "no key for RS256"),
        ({"jwt_jwks": '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'}, "no key for RS256"),
        ({"jwt_jwks": json.dumps({"keys": [{**PUBLIC, "alg": "RS512"}, {**PUBLIC, "use": "enc"}]})}, "no key"),
        ({"jwt_jwks": '{"keys": [{"kty": "RSA", "n": "x", "e": []}]}'}, "cannot be read"),
        ({"jwt_jwks": '{"keys": [{"kty": "RSA", "n": "%s", "e": "AQAB"}]}' % ("q" * 171 + "R")}, "not safe"),
    ],
)
def test_settings_that_cannot_be_safe(sqlite_url: str, settings: dict[str, str], told: str) -> None:
    with pytest.raises(BadConfig, match=told):
        asgi(Rota(sqlite_url, **{**SETTINGS, **settings}))


def test_keys_may_be_in_a_file(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(JWKS)
    asgi(Rota(sqlite_url, **{**SETTINGS, "jwt_jwks": str(tmp_path / "keys.json")}))


def test_without_the_library_it_is_said_what_is_missing(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(BadConfig, match="joserfc"):
        asgi(Rota(sqlite_url, **SETTINGS))


def test_no_secret_is_shown() -> None:
    config = load_config(
        {"jwt_secret": SECRET, "smtp_url": "smtp://u:hunter2@h", "database_url": "postgresql://u:pw@h/d"}
    )
    for secret in (SECRET, "hunter2", "pw@"):
        assert secret not in repr(config)
    assert "jwt_secret='…'" in repr(config)
    assert "jwt_secret=''" in repr(Config())
