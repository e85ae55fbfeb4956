"""Form of a filter of runs, for commands that are made from verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rota.cli.options import params_of
from rota.cli.terminal.format import rfc3339
from rota.cli.verbs.run_filter import filter_of, filters
from rota.cli.verbs.verb_options import Form
from rota.core.runs.run import RunFilter
from rota.values.scope import scope_text


def filter_form() -> Form:
    """Return the form of `run_filter`: an option for each condition."""
    params = params_of(filters)
    names = [param.name or "" for param in params]

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        return {"run_filter": filter_of({name: values[name] for name in names})}

    return Form(("run_filter",), params, read, lambda values: _typed(values[0] or RunFilter(), names))


def _typed(run_filter: RunFilter, names: Sequence[str]) -> list[Any]:
    scope = run_filter.scope
    values: dict[str, Any] = {
        "states": [state.value for state in run_filter.states],
        "scope": None if scope is None else scope_text(scope),
        "payload": [f"{name}={value}" for name, value in run_filter.payload.items()],
        **{
            name: None if at is None else rfc3339(at)
            for name in ("created_after", "created_before")
            for at in (getattr(run_filter, name),)
        },
    }
    return [values[name] if name in values else getattr(run_filter, name) for name in names]
