"""The page a run ends with: rates, ratios taken within each repetition, goals, and what else used the machine."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

YARDSTICK = "graphile"


Figures = dict[str, float | list[float]]


@dataclass(frozen=True)
class Sample:
    """What one measure of one contender gave in one repetition; `error` if it gave nothing."""

    run: int
    measure: str
    contender: str
    figures: Figures
    error: str | None = None


class Results:
    """The samples, asked by (measure, contender, word)."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._values: dict[tuple[str, str, str], dict[int, float]] = {}
        self._lists: dict[tuple[str, str, str], dict[int, list[float]]] = {}
        for sample in samples:
            for word, value in sample.figures.items():
                key = (sample.measure, sample.contender, word)
                if isinstance(value, list):
                    self._lists.setdefault(key, {})[sample.run] = value
                    if value:
                        self._values.setdefault(key, {})[sample.run] = statistics.median(value)
                else:
                    self._values.setdefault(key, {})[sample.run] = value

    def median(self, measure: str, contender: str, word: str) -> float | None:
        values = self._values.get((measure, contender, word))
        return statistics.median(values.values()) if values else None

    def spread(self, measure: str, contender: str, word: str) -> tuple[float, float] | None:
        values = self._values.get((measure, contender, word))
        return (min(values.values()), max(values.values())) if values else None

    def pooled(self, measure: str, contender: str, word: str) -> list[float]:
        lists = self._lists.get((measure, contender, word), {})
        return sorted(value for values in lists.values() for value in values)

    def each(self, measure: str, contender: str, word: str) -> list[float]:
        return list(self._values.get((measure, contender, word), {}).values())

    def lists(self, measure: str, contender: str, word: str) -> list[list[float]]:
        return list(self._lists.get((measure, contender, word), {}).values())

    def contenders(self, measure: str) -> list[str]:
        return list(dict.fromkeys(key[1] for key in self._values if key[0] == measure))

    def everyone(self, measure: str, word: str) -> list[float]:
        return [
            value
            for key, values in self._values.items()
            if (key[0], key[2]) == (measure, word)
            for value in values.values()
        ]

    def last(self, measure: str, contender: str, word: str) -> list[float]:
        lists = self._lists.get((measure, contender, word), {})
        return lists[max(lists)] if lists else []

    def ratio(self, measure: str, one: str, other: str, word: str) -> float | None:
        """The median, over repetitions, of the ratio within one repetition."""
        ones = self._values.get((measure, one, word), {})
        others = self._values.get((measure, other, word), {})
        ratios = [ones[run] / others[run] for run in ones if others.get(run)]
        return statistics.median(ratios) if ratios else None

    def ratio_to_best(self, measure: str, one: str, others: Sequence[str], word: str) -> tuple[float | None, str]:
        """And who that is."""
        rates = {name: rate for name in others if (rate := self.median(measure, name, word)) is not None}
        best = max(rates, key=lambda name: rates[name], default="none")
        return self.ratio(measure, one, best, word), best


def page(samples: Sequence[Sample], facts: dict[str, str], titles: dict[str, str], kinds: str = "") -> str:
    results = Results(samples)
    parts = [
        _facts(samples, facts, results, titles),
        _postgresql(results, titles),
        _sqlite(results, titles),
        _rota_alone(results),
        kinds,
        _goals(results, titles),
        failures(samples),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(samples: Sequence[Sample], facts: dict[str, str], results: Results, titles: dict[str, str]) -> str:
    lines = [f"{name}: {value}" for name, value in facts.items()]
    runs = len({sample.run for sample in samples})
    lines.append(f"medians of {runs} alternating repetitions; x is the ratio to {YARDSTICK} in the same repetition")
    if runs < 5:
        lines.append("fewer than five repetitions: for trying only")
    others = results.everyone("drain", "others_percent")
    stolen = results.everyone("drain", "stolen_percent")
    if others:
        lines.append(
            f"CPU used by others during drains: {statistics.median(others):.0f} % of the machine"
            f" (up to {max(others):.0f} %), stolen {statistics.median(stolen):.1f} %"
        )
    return "\n".join(lines)


def _postgresql(results: Results, titles: dict[str, str]) -> str:
    head = ["PostgreSQL", "jobs/s, 1 process", "x", "PG µs", "worker µs", "2 processes", "x", "bulk/s", "x"]
    head += ["single/s, 8", "x", "pickup p50 / p95 / p99 ms", "others %"]
    rows = [
        [
            title,
            _rate(results, "drain", name),
            _ratio(results, "drain", name),
            number(results.median("drain", name, "server_us")),
            number(results.median("drain", name, "worker_us")),
            _rate(results, "drain2", name),
            _ratio(results, "drain2", name),
            thousands(results.median("drain", name, "bulk_per_s")),
            _ratio(results, "drain", name, "bulk_per_s"),
            thousands(results.median("single", name, "per_s")),
            _ratio(results, "single", name),
            _percentiles(results.pooled("pickup", name, "latencies_ms")),
            number(results.median("drain", name, "others_percent"), 0),
        ]
        for name, title in titles.items()
        if name not in SQLITE and _any(results, name)
    ]
    return table(head, rows) if rows else ""


SQLITE = ("huey", "rota-sqlite")


def _sqlite(results: Results, titles: dict[str, str]) -> str:
    rows = [
        [
            titles[name],
            _rate(results, "drain", name),
            number(results.median("drain", name, "worker_us")),
            thousands(results.median("drain", name, "bulk_per_s")),
            number(results.median("drain", name, "others_percent"), 0),
        ]
        for name in SQLITE
        if name in titles and _any(results, name)
    ]
    return table(["SQLite, one process", "jobs/s", "µs", "bulk/s", "others %"], rows) if rows else ""


def _rota_alone(results: Results) -> str:
    lines = []
    shared = results.median("shared", "rota", "per_s")
    if shared:
        lines.append(f"single enqueue by 8 callers of one client, which share commits: {thousands(shared)}/s")
    backlogs = results.last("sustained", "rota", "backlogs")
    if backlogs:
        marks = ", ".join(f"{int(backlog):,}" for backlog in backlogs[:: max(1, len(backlogs) // 8)])
        reached = 100 * (results.median("sustained", "rota", "reached") or 0)
        lines.append(f"sustained with an idle open transaction: {reached:.0f} % of the planned rate; backlog {marks}")
    few = results.median("aged", "rota", "few_server_us")
    many = results.median("aged", "rota", "many_server_us")
    if few and many:
        lines.append(f"PostgreSQL's cost of a job: {few:.1f} µs with few finished rows, {many:.1f} µs with many")
    return "\n".join(lines)


@dataclass(frozen=True)
class Goal:
    what: str
    measured: float | None
    goal: float
    least: float
    lower_is_better: bool = False
    unit: str = "x"

    @property
    def row(self) -> list[str]:
        bounds = [f"{bound:g} {self.unit}" for bound in (self.goal, self.least)]
        return [self.what, f"{self.measured:.2f} {self.unit}", *bounds, self.verdict]

    @property
    def verdict(self) -> str:
        assert self.measured is not None
        sign = -1 if self.lower_is_better else 1
        if sign * self.measured >= sign * self.goal:
            return "goal met"
        return "enough" if sign * self.measured >= sign * self.least else "MISSED"


def _goals(results: Results, titles: dict[str, str]) -> str:
    peers = [name for name in titles if name not in ("rota", *SQLITE)]
    bulk, best_bulk = results.ratio_to_best("drain", "rota", peers, "bulk_per_s")
    single, best_single = results.ratio_to_best("single", "rota", peers, "per_s")
    reached = results.median("sustained", "rota", "reached")
    backlog = results.median("sustained", "rota", "backlog_s")
    goals = [
        Goal("1 process, to graphile", results.ratio("drain", "rota", "graphile", "per_s"), 1.5, 1.0),
        Goal("1 process, to graphile-preset", results.ratio("drain", "rota", "graphile-preset", "per_s"), 2, 1.3),
        Goal("1 process, to pgqueuer", results.ratio("drain", "rota", "pgqueuer", "per_s"), 5, 3),
        Goal("1 process, to procrastinate", results.ratio("drain", "rota", "procrastinate", "per_s"), 100, 100),
        Goal("2 processes, to graphile", results.ratio("drain2", "rota", "graphile", "per_s"), 1.3, 0.9),
        Goal("SQLite, to huey", results.ratio("drain", "rota-sqlite", "huey", "per_s"), 20, 10),
        Goal(f"bulk enqueue, to the best peer ({best_bulk})", bulk, 1.6, 1.2),
        Goal(f"single enqueue, to the best peer ({best_single})", single, 3, 1.5),
        Goal("pickup p50, to graphile", results.ratio("pickup", "rota", "graphile", "latencies_ms"), 0.7, 1.0, True),
        Goal("pickup p99", percentile(results.pooled("pickup", "rota", "latencies_ms"), 99), 10, 10, True, "ms"),
        Goal("sustained, of the planned rate", reached, 0.98, 0.98),
        Goal("sustained, backlog at the end", backlog if reached and reached >= 0.98 else None, 0.5, 0.5, True, "s"),
        Goal("a job among many finished rows, to few", _ageing(results), 1.5, 2, True),
    ]
    rows = [goal.row for goal in goals if goal.measured is not None]
    return table(["rota's goals", "measured", "goal", "at worst", ""], rows) if rows else ""


def _ageing(results: Results) -> float | None:
    few = results.median("aged", "rota", "few_server_us")
    many = results.median("aged", "rota", "many_server_us")
    return many / few if few and many else None


def failures(samples: Sequence[Sample]) -> str:
    return "\n".join(
        f"failed: {sample.measure} of {sample.contender}, run {sample.run + 1}: {sample.error.splitlines()[0]}"
        for sample in samples
        if sample.error
    )


def _any(results: Results, name: str) -> bool:
    keys = [("drain", "per_s"), ("drain2", "per_s"), ("single", "per_s"), ("pickup", "latencies_ms")]
    return any(results.median(measure, name, word) is not None for measure, word in keys)


def _rate(results: Results, measure: str, name: str) -> str:
    median, spread = results.median(measure, name, "per_s"), results.spread(measure, name, "per_s")
    if median is None or spread is None:
        return "–"
    return f"{thousands(median)} ({thousands(spread[0])}–{thousands(spread[1])})"


def _ratio(results: Results, measure: str, name: str, word: str = "per_s") -> str:
    return number(results.ratio(measure, name, YARDSTICK, word), 2)


def thousands(value: float | None) -> str:
    return "–" if value is None else f"{value / 1000:.2f} k" if value < 10_000 else f"{value / 1000:.1f} k"


def number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percentiles(latencies: list[float]) -> str:
    return " / ".join(number(percentile(latencies, percent)) for percent in (50, 95, 99)) if latencies else "–"


def percentile(ordered: list[float], percent: int) -> float | None:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown, padded so that it reads well on a terminal too."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: list[str]) -> str:
        first, *rest = (
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join((first, *rest))} |"

    rule = f"|{'|'.join('-' * (width + 1) + ('-' if place == 0 else ':') for place, width in enumerate(widths))}|"
    return "\n".join((line(head), rule, *map(line, rows)))
