"""A world that breaks a promise: made shorter, told in one line, and broken again by it."""

import re
from collections.abc import Iterator

import msgspec
import pytest

from rota.core.runs import outcome as outcomes
from rota.core.runs.outcome import End, Lease, Report, Requeue
from rota.core.states import Outcome
from rota.store.runs import report as reports
from tests.simulation.__main__ import main
from tests.simulation.campaign import run_seeds
from tests.simulation.script.entries import Kill
from tests.simulation.script.generator import draw
from tests.simulation.script.shrink import reproducer, shrink
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.world import World


@pytest.fixture
def backend() -> Iterator[Backend]:
    sqlite = open_backend(None)
    yield sqlite
    sqlite.close()


@pytest.fixture
def a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that is taken away leaves the fence as it was."""

    def forgetful(lease: Lease, report: Report) -> Requeue | End:
        following = outcomes.after_report(lease, report)
        lost = report.outcome is Outcome.LOST and isinstance(following, Requeue)
        return msgspec.structs.replace(following, fence=lease.fence) if lost else following

    monkeypatch.setattr(reports, "after_report", forgetful)


@pytest.mark.usefixtures("a_bug")
def test_a_failing_world_is_made_shorter(backend: Backend) -> None:
    seed = next(seed for seed in range(100) if World(draw(seed), backend).run().violation)
    script = draw(seed)
    kept, outcome = shrink(script, backend, "P9")
    assert len(kept) <= 4 < len(script.entries)
    assert outcome.violation is not None
    again = World(script.kept(kept), backend).run()
    assert again.history == outcome.history
    for place in range(len(kept)):
        shorter = World(script.kept([*kept[:place], *kept[place + 1 :]]), backend).run()
        assert shorter.violation is None or shorter.violation.promise != "P9", "nothing of it is needless"


@pytest.mark.usefixtures("a_bug")
def test_its_one_line_shows_it_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tally = run_seeds(range(12))
    assert tally.failures
    failure = tally.failures[0]
    assert failure.violation.startswith("P9 broken")
    assert failure.reproducer in str(failure)
    line = re.fullmatch(r"python3 dev\.py simulate (seed \d+ --keep [\d,]+)", failure.reproducer)
    assert line is not None
    monkeypatch.setattr("sys.argv", ["simulate", *line.group(1).split()])
    assert main() == 1
    told = capsys.readouterr().out
    assert failure.violation in told
    assert failure.history[-1] in told


def test_without_the_bug_the_same_command_succeeds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulate", "seed", "7"])
    assert main() == 0
    assert "every promise is kept" in capsys.readouterr().out


def test_leaving_out_one_entry_changes_nothing_else_that_was_drawn() -> None:
    script = draw(26)
    places = [place for place, entry in enumerate(script.entries) if not isinstance(entry, Kill)]
    assert script.kept(places).entries == [script.entries[place] for place in places]
    assert msgspec.structs.replace(script.kept(places), entries=script.entries) == script


def test_an_empty_script_is_named() -> None:
    assert reproducer(3, []) == "python3 dev.py simulate seed 3 --keep none"
    assert reproducer(3, [1, 2], postgres=True) == "python3 dev.py simulate seed 3 --keep 1,2 --postgres"
