"""Commands of declared verbs: what they take, and that they answer what REST answers."""

from __future__ import annotations

import pytest

from rota.cli.verbs.verb_command import methods_of
from rota.client.parts import all_verbs
from rota.verbs.parameters import Place, request_of
from rota.verbs.verb import Declared
from tests.support.commands import argv_of, command_of
from tests.support.processes.command_line import answer, rota

VERBS = {f"{declared.part}.{declared.name}": declared for declared in all_verbs()}
COMMANDS = {name: declared for name, declared in VERBS.items() if command_of(declared) is not None}
TYPED = (Place.PATH, Place.QUERY, Place.BODY, Place.KEY)


@pytest.mark.parametrize("declared", COMMANDS.values(), ids=COMMANDS.keys())
def test_every_parameter_can_be_typed(declared: Declared) -> None:
    place = command_of(declared)
    assert place is not None
    _, command = place
    typed = {name for form in getattr(command, "forms", ()) for name in form.names}
    names = methods_of(command)[declared.function]
    typed |= {param.name for param in command.params} | set(names)
    parameters = request_of(declared).parameters.values()
    assert [one.name for one in parameters if one.place in TYPED and not typed & {one.name, one.wire_name}] == []
    if declared.verb.page is not None:
        assert typed >= {"limit", "cursor"}


def test_words_of_a_call() -> None:
    update, create = VERBS["quotas.update"], VERBS["tokens.create"]
    assert argv_of(update, {"kind": "tenant", "id": "42", "max_queued": 9, "rate": "5/1m"}) == [
        *("quota", "update", "--max-queued", "9", "--rate", "5/1m", "--json", "--", "tenant/42")
    ]
    assert argv_of(create, {"name": "ci", "role": "viewer", "expires": None, "scope": ("tenant", "42")}) == [
        *("token", "create", "--role", "viewer", "--expires", "never", "--scope", "tenant/42", "--json", "--", "ci")
    ]
    assert argv_of(VERBS["workers.update"], {"id_or_name": "web", "queues": ["a", "b"], "poll": "1s"}) == [
        *("workers", "update", "--queues", "a,b", "--poll", "1s", "--json", "--", "web")
    ]


def test_lists_have_pages(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    assert rota("migrate").exit_code == 0
    for kind in ("a", "b", "c"):
        assert rota("quota", "update", kind, "--max-queued", "1").stdout == f"{kind}\n"
    first = answer("quota", "list", "--limit", "2")
    assert [item["kind"] for item in first["items"]] == ["a", "b"]
    rest = answer("quota", "list", "--limit", "2", "--cursor", first["next_cursor"])
    assert ([item["kind"] for item in rest["items"]], rest["next_cursor"]) == (["c"], None)
    assert rota("quota", "list", "--cursor", "nonsense").exit_code == 2
    assert rota("quota", "list", "--limit", "0").exit_code == 2
