"""Command jobs as values."""

from typing import Any

import pytest

from rota.core.jobs.command import command_of, filled, is_retried
from rota.errors import Invalid

FACTS = {"payload": {"name": "x; rm", "nul": "\x00"}, "attempt": 1}


@pytest.mark.parametrize(
    "options",
    [
        {}, {"argv": []}, {"argv": "rm -rf /"}, {"argv": [""]}, {"argv": ["ls", 5]}, {"argv": ["ls", "\x00"]},
        {"argv": ["{payload.program}"]}, {"argv": ["ls", "{payloads}"]}, {"argv": ["ls"] * 1_001}, {"argv": ["\ud800"]},
        {"argv": ["ls"], "env": {"A B": "c"}}, {"argv": ["ls"], "env": {"ROTA_RUN_ID": "c"}},
        {"argv": ["ls"], "env": []},
        {"argv": ["ls"], "env": {"A": "\x00"}}, {"argv": ["ls"], "env": {"A": 5}}, {"argv": ["ls"], "cwd": 5},
        {"argv": ["ls"], "stdin": "file"}, {"argv": ["ls"], "retry_exit_codes": [0]},
        {"argv": ["ls"], "retry_exit_codes": ["1"]},
    ],
)  # fmt: skip
def test_options_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        command_of(options)


def test_words_are_filled_one_by_one() -> None:
    command = command_of({"argv": ["tar", "{payload.name}", "n{attempt}"], "env": {"NAME": "<{payload.name}>"}})
    found = filled(command, FACTS)
    assert (found.argv, found.env) == (("tar", "x; rm", "n1"), {"NAME": "<x; rm>"})


@pytest.mark.parametrize(
    "where", [{"argv": ["tar", "{payload.nul}"]}, {"argv": ["tar"], "env": {"A": "{payload.nul}"}}]
)
def test_what_does_not_fit(where: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        filled(command_of(where), FACTS)


@pytest.mark.parametrize(
    ("codes", "retried"), [(None, [1, 3, 4, 75, 255, -9]), ([4], [4, 75, -9]), ((), [75, -9]), (3, [3, 75, -9])]
)
def test_which_exits_are_retried(codes: Any, retried: list[int]) -> None:
    command = command_of({"argv": ["ls"], "retry_exit_codes": codes})
    assert [code for code in (1, 3, 4, 75, 255, -9) if is_retried(command, code)] == retried
