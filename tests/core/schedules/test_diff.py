"""Diffs of files of schedules: what they change, and what they must not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.schedules.diff import FieldChange, check_names, checked_owner, differences, read_file
from rota.core.schedules.documents import parse
from rota.core.schedules.schedule import Schedule, ScheduleDefinition, define
from rota.errors import BadTrigger, Conflict, Invalid, UnknownOption
from rota.values.instants import micros_at

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def wanted(*documents: dict[str, Any]) -> dict[str, ScheduleDefinition]:
    found = {}
    for document in documents:
        name, job, trigger, options = parse({"job": "crawl", **document})
        found[name] = define(JobDefinition(name=job), trigger, options, name=name, now=micros_at(NOW))
    return found


def stored(document: dict[str, Any], owner: str = "me", *, paused: bool = False) -> Schedule:
    ((name, definition),) = wanted(document).items()
    return Schedule(
        id="1", name=name, job=definition.job, definition=definition, owner=owner, revision=1, enabled=True,
        paused_at=NOW if paused else None, paused_by=None, pause_reason=None, resume_at=None, job_paused=False,
        cursor_at=NOW, next_plan=None, awaits=None, fired=0, tzdata="", trouble=None, created_at=NOW, updated_at=NOW,
    )  # fmt: skip


NEWS = {"name": "news", "every": "1h"}


def test_what_is_new_is_created_with_all_of_its_fields() -> None:
    (one,) = differences(wanted(NEWS), [], "me", micros_at(NOW))
    assert (one.kind, one.name, one.fires_before) == ("create", "news", ())
    assert one.changes == (FieldChange("job", None, "crawl"), FieldChange("every", None, "1h"))
    assert one.fires_after[0] == NOW + timedelta(minutes=55)
    assert len(one.fires_after) == 3


def test_what_is_new_and_over_is_refused_by_name() -> None:
    over = {**NEWS, "end_at": "2025-12-31T00:00:00Z"}
    with pytest.raises(BadTrigger, match="schedule 'news': end_at: it is over"):
        differences(wanted(over), [], "me", micros_at(NOW))
    (one,) = differences(wanted(over), [stored(over)], "me", micros_at(NOW))
    assert one.kind == "unchanged"


def test_what_is_the_same_is_unchanged_however_it_is_written() -> None:
    (one,) = differences(wanted({**NEWS, "every": "60m", "overlap": "skip"}), [stored(NEWS)], "me", micros_at(NOW))
    assert (one.kind, one.changes) == ("unchanged", ())


def test_a_change_names_its_fields_and_what_it_does_to_coming_runs() -> None:
    changed = {**NEWS, "every": "30m", "description": "often"}
    (one,) = differences(wanted(changed), [stored(NEWS, paused=True)], "me", micros_at(NOW))
    assert one.kind == "change"
    assert one.changes == (FieldChange("every", "1h", "30m"), FieldChange("description", None, "often"))
    assert (one.fires_before[0] - NOW, one.fires_after[0] - NOW) == (timedelta(minutes=55), timedelta(minutes=25))
    assert one.paused


def test_another_kind_of_trigger_takes_the_place_of_the_old_one() -> None:
    (one,) = differences(wanted({"name": "news", "cron": "0 9 * * *"}), [stored(NEWS)], "me", micros_at(NOW))
    assert one.changes == (FieldChange("every", "1h", None), FieldChange("cron", None, "0 9 * * *"))


def test_only_ones_own_are_deleted_after_all_others() -> None:
    old = [stored({"name": name, "every": "1h"}) for name in ("b", "a", "news")]
    old.append(stored({"name": "theirs", "every": "1h"}, "them"))
    found = differences(wanted(NEWS), old, "me", micros_at(NOW))
    assert [(one.kind, one.name) for one in found] == [("unchanged", "news"), ("delete", "a"), ("delete", "b")]
    assert found[1].fires_before
    assert found[1].fires_after == ()


def test_what_belongs_to_somebody_else_is_a_conflict() -> None:
    with pytest.raises(Conflict, match="'news' belongs to 'code', not to 'me'"):
        differences(wanted(NEWS), [stored(NEWS, "code")], "me", micros_at(NOW))


def test_what_is_disabled_fires_no_more() -> None:
    (one,) = differences(wanted({**NEWS, "enabled": False}), [stored(NEWS)], "me", micros_at(NOW))
    assert one.changes == (FieldChange("enabled", None, False),)
    assert one.fires_after == ()


def test_files() -> None:
    text = 'owner = "me"\n[[schedule]]\nname = "news"\nevery = "1h"\n[[schedule]]\nname = "b"\n'
    file = read_file(text)
    assert (file.owner, [document["name"] for document in file.documents]) == ("me", ["news", "b"])
    assert read_file('{"schedule": [{"name": "x"}]}', "x.json").documents == ({"name": "x"},)
    assert read_file("") == read_file("{}", "x.json")


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("owner = ", "s.toml", "s.toml: Invalid value"),
        ("{", "s.json", "s.json: "),
        ("[]", "s.json", "must hold an object"),
        ('[schedule]\nname = "x"', "s.toml", "must be a list of tables"),
        ("[[schedules]]", "s.toml", "s.toml has no option 'schedules'"),
    ],
)
def test_files_that_are_none(text: str, name: str, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_file(text, name)
    assert said in caught.value.message


def test_owners_and_names() -> None:
    assert checked_owner("team-a") == "team-a"
    for owner in ("code", "api", "cli", "", 5):
        with pytest.raises(Invalid):
            checked_owner(owner)
    check_names(["a", "b"])
    with pytest.raises(Invalid, match="'a' is there 2 times"):
        check_names(["a", "b", "a"])
    with pytest.raises(UnknownOption, match="ownr"):
        read_file('ownr = "x"')
