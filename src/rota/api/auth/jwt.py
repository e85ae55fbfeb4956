"""Verify JSON Web Tokens of an external issuer, by HS256 or RS256 only."""

from __future__ import annotations

import base64
import binascii
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rota.config import Config
from rota.core.access.roles import Identity, Role
from rota.errors import BadConfig, Forbidden, Invalid, NotSignedIn
from rota.values.names import checked_name
from rota.values.scope import Scope, scope_parts

if TYPE_CHECKING:
    from joserfc.jwk import OctKey, RSAKey

_LONGEST = 8_192
_LEEWAY = 30.0  # seconds by which the issuer's clock may differ from the database's
_SMALLEST_KEY = 2_048
_MOST_KEYS = 50
_NO_KEYS = "jwt_jwks must name a file with a JSON Web Key Set, or be one"

Verify = Callable[[str, str | None], bytes | None]


def looks_like_jwt(text: str) -> bool:
    """Return whether the text has the three parts of a JWT."""
    return text.count(".") == 2


class JwtVerifier:
    """Verifier of JWTs. The algorithm selects the key, so that a public key never serves as an HMAC secret."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._verify: dict[str, Verify] = {}
        if config.jwt_secret:
            self._verify["HS256"] = _by_secret(config.jwt_secret)
        if config.jwt_jwks:
            if not (config.jwt_issuer and config.jwt_audience):
                hint = "without them, tokens issued for other services would be accepted"
                raise BadConfig("jwt_jwks also needs jwt_issuer and jwt_audience", hint=hint)
            self._verify["RS256"] = _by_keys(_read_keys(config.jwt_jwks))

    def identity(self, text: str, now: datetime) -> Identity:
        """Return the identity in a JWT, or raise why it is refused. The reason leaks nothing: its sender can read the
        token."""
        claims = self._claims(text)
        self._check_times(claims, now.timestamp())
        self._check_parties(claims)
        return Identity(f"jwt:{_subject(claims)}", self._role(claims), self._scope(claims))

    def _claims(self, text: str) -> Mapping[str, Any]:
        payload = None
        if len(text) <= _LONGEST and text.isascii():
            header = _header(text)
            verify = self._verify.get(str(header.get("alg")))
            kid = header.get("kid")
            if verify is not None and (kid is None or isinstance(kid, str)):
                payload = verify(text, kid)
        if payload is None:
            raise NotSignedIn("the signature of this token cannot be verified")
        try:
            return msgspec.json.decode(payload, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise NotSignedIn("the claims of this token cannot be read") from None

    def _check_times(self, claims: Mapping[str, Any], now: float) -> None:
        expires, begins = claims.get("exp", False), claims.get("nbf", 0)
        if not _is_instant(expires) or not _is_instant(begins):
            raise NotSignedIn("this token must have an expiry: exp, in seconds")
        if now >= expires + _LEEWAY:
            raise NotSignedIn("this token has expired")
        if now < begins - _LEEWAY:
            raise NotSignedIn("this token is not valid yet")

    def _check_parties(self, claims: Mapping[str, Any]) -> None:
        if self._config.jwt_issuer and claims.get("iss") != self._config.jwt_issuer:
            raise NotSignedIn("this token comes from another issuer")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience] if audience is not None else []
        # Without a configured audience, a token that names one is refused: it was issued for another service.
        if self._config.jwt_audience not in (audiences or [""]):
            raise NotSignedIn("this token is for another audience")

    def _role(self, claims: Mapping[str, Any]) -> Role:
        claim = claims.get(self._config.jwt_role_claim)
        if not isinstance(claim, str) or claim not in list(Role):
            hint = f"claim {self._config.jwt_role_claim!r} must be one of {', '.join(Role)}"
            raise Forbidden("this token has no role here", hint)
        return Role(claim)

    def _scope(self, claims: Mapping[str, Any]) -> Scope | None:
        """Return the token's scope. An unreadable scope is refused: it must not become access to everything."""
        claim = claims.get(self._config.jwt_scope_claim)
        if claim is None:
            return None
        kind, id = scope_parts(claim) if isinstance(claim, str) else ("", None)
        try:
            return Scope(checked_name(kind, "kind"), checked_name(id, "id"))
        except Invalid:
            raise Forbidden(f"claim {self._config.jwt_scope_claim!r} of this token must be kind/id") from None


def jwt_verifier(config: Config) -> JwtVerifier | None:
    """Return a verifier if JWTs are configured."""
    return JwtVerifier(config) if config.jwt_secret or config.jwt_jwks else None


def _header(text: str) -> Mapping[str, Any]:
    first = text.partition(".")[0]
    try:
        raw = base64.b64decode(first + "=" * (-len(first) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (binascii.Error, ValueError, msgspec.MsgspecError, RecursionError):
        return {}


def _is_instant(value: object) -> bool:
    """Return whether the value is a usable timestamp. Infinity and NaN compare with nothing, and `true` is a number to
    Python."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e12 < value < 1e12


def _subject(claims: Mapping[str, Any]) -> str:
    try:
        return checked_name(claims.get("sub"), "sub")
    except Invalid:
        raise NotSignedIn("this token must have a subject: sub, a text of 1 to 200 characters") from None


def _by_secret(secret: str) -> Verify:
    _require_library()
    from joserfc.jwk import OctKey

    key = OctKey.import_key(secret.encode())
    return lambda text, _: _payload(text, key, "HS256")


def _by_keys(keys: Sequence[tuple[str | None, RSAKey]]) -> Verify:
    def verify(text: str, kid: str | None) -> bytes | None:
        """Verify with any key that fits. A token without `kid` may be signed by any key, and a key without `kid` may
        sign any token."""
        for name, key in keys:
            if None in (name, kid) or name == kid:
                payload = _payload(text, key, "RS256")
                if payload is not None:
                    return payload
        return None

    return verify


def _payload(text: str, key: OctKey | RSAKey, algorithm: str) -> bytes | None:
    """Return the payload if `key` signed it with exactly this algorithm, otherwise None."""
    from joserfc import jws
    from joserfc.errors import JoseError

    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    try:
        return jws.deserialize_compact(text, key, registry=registry).payload
    except (JoseError, ValueError, TypeError, RecursionError):
        return None


def _read_keys(setting: str) -> list[tuple[str | None, RSAKey]]:
    """Return the keys usable for RS256; issuers publish others, too."""
    _require_library()
    text = setting
    if not setting.lstrip().startswith("{"):
        try:
            text = Path(setting).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text file"
            raise BadConfig(f"{_NO_KEYS}; {setting!r:.200} cannot be read: {reason}") from None
    try:
        documents = msgspec.json.decode(text, type=dict[str, Any])["keys"]
    except (msgspec.MsgspecError, KeyError, UnicodeError, RecursionError):
        raise BadConfig(_NO_KEYS, hint='{"keys": [{"kty": "RSA", "kid": "…", "n": "…", "e": "AQAB"}]}') from None
    if not isinstance(documents, list) or len(documents) > _MOST_KEYS:
        raise BadConfig(f"{_NO_KEYS}, of at most {_MOST_KEYS} keys")
    keys = [(key.get("kid"), _rsa_key(key)) for key in documents if isinstance(key, dict) and _is_usable(key)]
    if not keys:
        raise BadConfig("jwt_jwks has no key for RS256", hint='add one with "kty": "RSA"')
    return keys


def _is_usable(key: Mapping[str, Any]) -> bool:
    return key.get("kty") == "RSA" and key.get("use", "sig") == "sig" and key.get("alg", "RS256") == "RS256"


def _rsa_key(document: dict[str, Any]) -> RSAKey:
    """Import the public half only: rota never needs a private key."""
    from joserfc.errors import JoseError
    from joserfc.jwk import RSAKey

    name = str(document.get("kid", "without a kid"))
    try:
        with warnings.catch_warnings():  # it warns of small keys, which are refused below
            warnings.simplefilter("ignore")
            key = RSAKey.import_key({"kty": "RSA", "n": document["n"], "e": document["e"]})
        bits = key.public_key.key_size
    except (JoseError, ValueError, TypeError, KeyError):
        raise BadConfig(f"key {name!r:.80} in jwt_jwks cannot be read") from None
    if bits < _SMALLEST_KEY:
        raise BadConfig(f"key {name!r:.80} in jwt_jwks has {bits} bits; fewer than {_SMALLEST_KEY} are not safe")
    return key


def _require_library() -> None:
    try:
        import joserfc  # noqa: F401
    except ImportError:
        raise BadConfig("jwt_secret and jwt_jwks need joserfc", hint="pip install 'rota[jwt]'") from None
