"""Who did something: a person or a program by the name they give, or one of rota's own policies."""

from __future__ import annotations

from rota.errors import Invalid

POLICY = "policy:"


def is_policy(actor: str | None) -> bool:
    return actor is not None and actor.startswith(POLICY)


def checked_actor(actor: str | None) -> str | None:
    """A caller that called itself a policy would be taken for one: what it cancels would be nobody's failure."""
    if is_policy(actor):
        raise Invalid(f"actor must not begin with {POLICY!r}: {actor!r:.80}", hint="that is how rota's policies sign")
    return actor
