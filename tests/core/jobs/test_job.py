"""Test how the words of stored definitions become modes, those of newer programs included."""

import msgspec
import pytest

from rota.core.jobs.job import Isolation, JobDefinition, JobKind, data_kind, is_external, isolation_of, kind_of


@pytest.mark.parametrize("kind", JobKind)
def test_a_stored_kind_is_what_it_says(kind: JobKind) -> None:
    assert kind_of(kind.value) is kind
    assert is_external(kind.value) == (kind is JobKind.EXTERNAL)
    assert data_kind(kind) in (kind, None)


@pytest.mark.parametrize("isolation", Isolation)
def test_a_stored_isolation_is_what_it_says(isolation: Isolation) -> None:
    assert isolation_of(isolation.value) is isolation


def test_words_of_a_newer_program() -> None:
    text = b'{"name": "work", "kind": "wasm", "isolation": "vm", "on_lost": "ask"}'
    definition = msgspec.json.decode(text, type=JobDefinition)
    assert (definition.kind, definition.isolation, definition.on_lost) == ("wasm", "vm", "ask")
    assert kind_of(definition.kind) is None
    assert not is_external(definition.kind)
    assert isolation_of(definition.isolation) is Isolation.THREAD
