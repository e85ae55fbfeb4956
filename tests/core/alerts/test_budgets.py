"""Budgets of notifications: one error does not silence another, and breaches are never held back."""

from rota.core.alerts.budgets import Budget, Held, Window, admit, budgets_of, digest_lines, digest_of
from rota.core.alerts.signals import Signal
from rota.core.runs.run import RunError

MINUTE = 60_000_000


def signal(what: str = "failed", job: str = "crawl") -> Signal:
    return Signal(1, 0, what, "run", "an-id", job)


def error(name: str) -> RunError:
    return RunError(type=name, message="no", fingerprint=name.lower())


def test_so_many_an_hour_and_the_rest_is_counted() -> None:
    windows: dict[str, Window] = {}
    sent, told = 0, []
    for minute in range(90):
        admitted = admit(windows, budgets_of(signal("succeeded"), None), minute * MINUTE, 10)
        sent += admitted.is_sent
        told += [admitted.held] if admitted.held else []
    assert (sent, told) == (20, [50])


def test_a_flood_of_one_error_leaves_room_for_another_and_for_other_kinds() -> None:
    windows: dict[str, Window] = {}
    flood = [admit(windows, budgets_of(signal(), error("Timeout")), 0, 60).is_sent for _ in range(1_000)]
    assert sum(flood) == 6
    assert admit(windows, budgets_of(signal(), error("Refused")), 1, 60).is_sent
    assert admit(windows, budgets_of(signal("missed"), None), 1, 60).is_sent
    different = [admit(windows, budgets_of(signal(), error(f"E{number}")), 2, 60).is_sent for number in range(1_000)]
    assert sum(different) == 60 - 7


def test_what_expectations_say_is_never_held_back() -> None:
    windows: dict[str, Window] = {}
    for what in ("breached", "met", "late"):
        assert all(admit(windows, budgets_of(signal(what), None), 0, 1).is_sent for _ in range(100))
    assert windows == {}


def test_a_hook_is_told_of_one_error_as_often_as_of_others() -> None:
    windows: dict[str, Window] = {}
    told = [admit(windows, budgets_of(signal(), error("Timeout")), 0, 60, per_error=False) for _ in range(100)]
    assert sum(it.is_sent for it in told) == 60


def test_a_key_is_read_again_and_that_of_an_older_program_is_a_job() -> None:
    (budget, whole) = budgets_of(signal(), error("Timeout"))
    assert Budget.read(budget.key) == budget == Budget("crawl", "failure", "Timeout", "timeout")
    assert Budget.read(whole.key) == Budget("crawl", "failure")
    assert Budget.read("crawl") == Budget("crawl")


def test_a_digest_says_what_was_held_back_the_most_frequent_first() -> None:
    held = [Held(Budget("a", "missed"), 5, 2), Held(Budget("crawl", "failure", "Timeout", "f"), 3, 940)]
    digest = digest_of(held, "an-id", 7)
    assert digest["type"] == "digest"
    assert digest["details"]["held_back"] == 942
    assert digest_lines(digest["details"]) == ["940 × crawl: failure (Timeout)", "2 × a: missed"]
