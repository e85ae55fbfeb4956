"""Bugs in what scopes may have over all jobs: quotas."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_STORE, _SQL, _CORE = "store/limits/quotas.py", "store/sql/limits/quotas.sql", "core/limits/quotas.py"

_QUOTAS = (
    planted(
        "quotas-are-not-asked-about-new-runs",
        "quota",
        _STORE,
        "    if not wider:\n        return runs\n",
        "    return runs\n",
    ),
    planted(
        "runs-that-wait-do-not-come-under-a-quota",
        "quota",
        _STORE,
        "            unsettled = await _is_unsettled(tx, kind, id)\n",
        "            unsettled = False\n",
    ),
    Planted(
        "a-quota-said-again-is-not-settled",
        "quota",
        (
            Edit(
                _STORE,
                "            if await put(tx, kind, id, kept, owner):\n",
                "            self._new = await put(tx, kind, id, kept, owner)\n            if self._new:\n",
            ),
            Edit(
                _STORE,
                "            unsettled = await _is_unsettled(tx, kind, id)\n",
                "            unsettled = bool(getattr(self, '_new', True)) and await _is_unsettled(tx, kind, id)\n",
            ),
            # Most runs that a scope has in a world are settled with the change itself. This alone breaks nothing.
            Edit(_STORE, "_BATCH = 500\n", "_BATCH = 1\n"),
        ),
    ),
    planted(
        "quota-of-a-kind-goes-before-that-of-a-scope",
        "quota",
        _CORE,
        "return own or general\n",
        "return general or own\n",
    ),
    planted(
        "runs-at-work-do-not-count-for-a-quota",
        "quota",
        _STORE,
        "(run.id, gate.key, place, gate.max, gate.period, fences.get(run.id))",
        "(run.id, gate.key, place, gate.max, gate.period, None)",
    ),
    planted(
        "gates-keep-what-the-old-quota-said",
        "quota",
        _STORE,
        "    return gate.key, gate.max, gate.period\n",
        "    return gate.key, 0, None\n",
    ),
    planted(
        "runs-under-a-quota-are-found-without-it",
        "quota",
        _SQL,
        "{hold_of rows.key | ",
        "{hold_of case when rota_ready.need is null then null else rows.key end | ",
    ),
    planted(
        "runs-are-free-and-nobody-finds-them",
        "P12",
        _SQL,
        "case when rota_ready.hold in ({blocked}, {parent}) then",
        "case when rota_ready.hold in ({blocked}, {parent}, {limited}) then",
    ),
    planted(
        "any-number-may-wait-under-a-quota",
        "quota",
        _CORE,
        "    return msgspec.structs.replace(limit, max_queued=max_queued)\n",
        "    return limit\n",
    ),
    planted(
        "rate-of-a-quota-is-left-out-beside-its-number",
        "quota",
        _CORE,
        "        if self.rate is not None:\n",
        "        if self.rate is not None and alone:\n",
    ),
)

BUGS = (*seen_in("quotas", _QUOTAS),)
