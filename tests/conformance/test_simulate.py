"""One question, what would happen: every spelling of it, at every door, has the same answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.core.calendar.triggers import cron, every
from tests.conformance.doors import DOOR, Call
from tests.conformance.world import World, declared_app

_START = datetime(2040, 1, 31, 8, tzinfo=UTC)
_NEWS = {"name": "news", "job": "rest", "every": "20m", "overlap": "queue_all"}
_FILE = """
owner = "me"
[[schedule]]
name = "news"
job = "rest"
every = "20m"
overlap = "queue_all"
"""


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[World]:
    app = declared_app(database_url)
    world = World(app, database_url, await app.connect())
    await world.store.save_jobs(app.registry.definitions())
    await world.client.schedules.create("news", "rest", every("30m"), owner="me")
    await world.client.schedules.create("old", "rest", cron("30 2 * * *", "Europe/Berlin"), owner="me")
    yield world
    await world.stack.aclose()
    await app.aclose()


async def asked(world: World, door: str, *args: Any, typed: tuple[str, ...] | None = None, **named: Any) -> Any:
    """Return the answer to a question at a door, as JSON; `typed` is another command that asks it."""
    outcome = await DOOR[door](world, Call("schedules.simulate", args, named, typed=typed))
    assert outcome.problem is None, outcome.problem
    return json.loads(msgspec.json.encode(outcome.answer))


async def typed(world: World, *words: str) -> Any:
    return await asked(world, "command", typed=(*words, "--json"))


async def test_each_door_answers_each_form_of_the_question(world: World, tmp_path: Path) -> None:
    file = tmp_path / "schedules.toml"
    file.write_text(_FILE)
    start = ("--from", "2040-01-31T08:00:00Z")
    assumed: dict[str, Any] = {"start": _START, "duration": "45m", "fail_every": 3, "workers": 1, "limit": 5}
    words = (*start, "--duration", "45m", "--fail-every", "3", "--workers", "1", "--limit", "5")
    changes = {"every": "20m", "overlap": "queue_all"}
    forms: list[tuple[tuple[Any, ...], Mapping[str, Any], tuple[str, ...]]] = [
        (("news", "6h"), assumed, ("news", "--for", "6h", *words)),
        (
            ("news", "6h"),
            {**assumed, "changes": changes},
            ("news", "--for", "6h", "--every", "20m", "--overlap", "queue_all", *words),
        ),
        (("news", "0s"), {"start": _START}, ("news", "--for", "0s", *start)),
        (
            (None, "6h"),
            {**assumed, "documents": [_NEWS], "owner": "me"},
            ("--file", str(file), "--for", "6h", *words),
        ),
    ]
    for args, named, command in forms:
        answer = await asked(world, "client", *args, **named)
        for door in ("blocking", "remote", "rest"):
            assert await asked(world, door, *args, **named) == answer, (door, args)
        assert await typed(world, "schedule", "simulate", *command) == answer, command
        assert answer["counts"]["run"] > 0 or args[1] == "0s"


async def test_other_words_for_it_are_the_same_question(world: World, tmp_path: Path) -> None:
    file = tmp_path / "schedules.toml"
    file.write_text(_FILE)
    preview = await typed(world, "schedule", "preview", "old", "--after", "2040-01-31T08:00:00Z")
    assert preview == await asked(world, "client", "old", "0s", start=_START, limit=10)
    whole = await asked(world, "client", None, "0s", documents=[_NEWS], owner="me")
    assert [each["kind"] for each in whole["schedules"]] == ["change", "delete"]
    plan = await typed(world, "schedule", "plan", str(file))
    assert plan["items"] == whole["schedules"]
    looked = await typed(world, "schedule", "update", "news", "--every", "20m", "--overlap", "queue_all", "--dry-run")
    same = await asked(world, "client", "news", "0s", changes={"every": "20m", "overlap": "queue_all"})
    assert {**looked, "from_at": 0, "until_at": 0} == {**same, "from_at": 0, "until_at": 0}, "each of its own moment"
    assert looked["schedules"][0]["changes"] == whole["schedules"][0]["changes"]
    done = await world.client.schedules.apply_documents([_NEWS], "me")
    assert [(each.kind, each.name) for each in done] == [(each["kind"], each["name"]) for each in whole["schedules"]]
    assert [json.loads(msgspec.json.encode(each.changes)) for each in done] == [
        each["changes"] for each in whole["schedules"]
    ]


async def test_a_short_cadence_is_warned_of_at_every_door(world: World) -> None:
    (told,) = (await asked(world, "client", "news", "0s", changes={"every": "10s", "backoff": ["1h"]}))["schedules"]
    assert "a failed run waits 1h for its retry" in told["warnings"][0]
    for door in ("client", "remote", "rest"):
        call = Call("schedules.update", ("news",), {"every": "10s", "backoff": ["1h"], "max_attempts": 3})
        outcome = await DOOR[door](world, call)
        assert outcome.answer["warnings"] == told["warnings"], (door, outcome.problem)
    await world.client.schedules.update("news", every="1d")
    assert "warnings" not in (await DOOR["rest"](world, Call("schedules.get", ("news",)))).answer
