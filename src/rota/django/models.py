"""The one model that Django's admin and its permissions need: a run. The table is rota's own, and no model reads it."""

from __future__ import annotations

from django.db import models


class Run(models.Model):
    """A run, for `view_run` and `change_run`: the admin page asks rota's client."""

    id: models.CharField[str, str] = models.CharField(primary_key=True, max_length=36)

    class Meta:
        managed = False
        app_label = "rota"
        default_permissions = ("view", "change")
        verbose_name = "run"
        verbose_name_plural = "runs"
