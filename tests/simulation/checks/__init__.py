"""Checks: whether a world kept rota's promises."""
