"""rota in a Django project: `"rota.django"` in INSTALLED_APPS, jobs in each app's `jobs.py`, `manage.py rota worker`.

from rota.django import app, on_commit

@app.job
def send_receipt(order: int) -> None: ...

on_commit(send_receipt, order=order.pk)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.django.on_commit import on_commit

if TYPE_CHECKING:
    from rota.app import Rota

    app: Rota

__all__ = ["app", "on_commit"]


def __getattr__(name: str) -> object:
    """Create `app` at its first use, and set up Django if `manage.py` has not, as for `rota worker rota.django`."""
    if name != "app":
        raise AttributeError(f"module 'rota.django' has no attribute {name!r}")
    from rota.django.application import the_app

    return the_app()
