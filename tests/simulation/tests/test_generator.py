"""Scripts are drawn from seeds: each has a theme, and a theme has what it says."""

from collections import Counter

import msgspec
import pytest

from tests.simulation.application.jobs import JOBS
from tests.simulation.script.entries import AddSchedule, Enqueue, Script, Strike
from tests.simulation.script.generator import draw
from tests.simulation.script.job_themes import ALL_THEMES as THEMES
from tests.simulation.script.themes import EVERYTHING, Theme
from tests.simulation.world.backends import open_backend
from tests.simulation.world.world import World

SEEDS = 1_000


def drawn(theme: Theme, count: int = 60) -> list[Script]:
    return [draw(seed, theme) for seed in range(count)]


def test_every_theme_has_its_share_of_the_seeds() -> None:
    themes = Counter(draw(seed).theme for seed in range(SEEDS))
    assert themes.keys() == {theme.name for theme in THEMES}
    assert len(themes) == len(THEMES)
    whole = sum(theme.weight for theme in THEMES)
    for theme in THEMES:
        assert themes[theme.name] == pytest.approx(SEEDS * theme.weight / whole, rel=0.5)


def test_a_seed_is_a_script() -> None:
    assert [draw(seed) for seed in range(50)] == [draw(seed) for seed in range(50)]
    assert draw(1) != draw(2)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_a_theme_keeps_to_itself(theme: Theme) -> None:
    scripts = drawn(theme)
    assert {script.theme for script in scripts} == {theme.name}
    assert all(theme.span[0] <= script.span <= theme.span[1] for script in scripts)
    entries = [entry for script in scripts for entry in script.entries]
    enqueued = {entry.job for entry in entries if isinstance(entry, Enqueue) and entry.options.keys() <= {"delay"}}
    assert enqueued <= {*theme.jobs, *(("plain",) if theme.bursts else ())} <= JOBS.keys()
    planned = [entry for entry in entries if isinstance(entry, AddSchedule)]
    assert bool(planned) == (theme.schedules != (0,))
    aimed = {(entry.op, entry.blow) for entry in entries if isinstance(entry, Strike) and entry.op}
    assert aimed <= {(op, blow) for _, op, blow in theme.aims}


def test_a_blow_that_is_aimed_meets_no_other_operation() -> None:
    backend = open_backend(None)
    script = draw(0, EVERYTHING)
    strike = Strike(0.0, "engine-1", "refused", 1, "Store.extend")
    calm = msgspec.structs.replace(script, entries=[strike], span=12.0)
    history = World(calm, backend).run().history
    backend.close()
    assert [line.split(": ")[1] for line in history if "refused" in line and "fault" not in line] == [
        "refused Store.extend"
    ]
