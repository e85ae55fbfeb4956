"""Actors: the name of a person or program that did something, or of one of rota's own policies."""

from __future__ import annotations

from rota.errors import Invalid

POLICY = "policy:"


def is_policy(actor: str | None) -> bool:
    return actor is not None and actor.startswith(POLICY)


def checked_actor(actor: str | None) -> str | None:
    """Return `actor`, or refuse one that looks like a policy.

    What a policy cancels counts as nobody's failure, so a caller must not be able to pose as one.
    """
    if is_policy(actor):
        raise Invalid(f"actor must not begin with {POLICY!r}: {actor!r:.80}", hint="rota's own policies use it")
    return actor
