"""The plain scripts, started as their README says."""

from pathlib import Path

from tests.support.documents.examples import Example


def test_a_script_that_waits_for_its_work(tmp_path: Path) -> None:
    with Example("script", tmp_path) as script:
        told = script.run("python download.py")
        assert told.splitlines() == ["1 succeeded 1000", "2 succeeded 2000", "3 succeeded 3000"]


def test_a_script_that_works_on_time(tmp_path: Path) -> None:
    with Example("script", tmp_path) as script:
        clock = script.start("python clock.py").until_said("tick 20")
        clock.terminate()
        assert clock.wait() == 0
