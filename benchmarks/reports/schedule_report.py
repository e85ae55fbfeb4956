"""The page that the schedule measures end with: rates, lateness, ratios within each repetition, goals."""

import statistics
from collections.abc import Sequence

from benchmarks.reports.report import Goal, Results, Sample, failures, number, percentile, table, thousands

NAMES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
TIMES_APSCHEDULER = {"postgres": 25.0, "sqlite": 80.0}
IDLE_MICROS = {"postgres": 500.0, "sqlite": 20.0}
SINGLE, SINGLES = "rota, a batch at a time", "the same, 2 planners"
FIRING = ("apscheduler", "bullmq", "rota", "rota, own payloads", "rota, 2 planners", SINGLE, SINGLES)
TIMES_BULLMQ = 7.0


def page(samples: Sequence[Sample], facts: dict[str, str], databases: Sequence[str]) -> str:
    results = Results(samples)
    parts = [
        _facts(samples, facts, results, databases),
        *(_firing(results, database) for database in databases),
        _alone(results, databases),
        _cron(results),
        _outages(results, databases),
        _goals(results, databases),
        failures(samples),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(samples: Sequence[Sample], facts: dict[str, str], results: Results, databases: Sequence[str]) -> str:
    lines = [f"{name}: {value}" for name, value in facts.items()]
    runs = len({sample.run for sample in samples})
    lines.append(f"medians of {runs} alternating repetitions; a ratio is taken within each")
    if runs < 5:
        lines.append("fewer than five repetitions: for trying only")
    others = [share for database in databases for share in results.everyone(f"fire {database}", "others_percent")]
    stolen = [share for database in databases for share in results.everyone(f"fire {database}", "stolen_percent")]
    if others:
        lines.append(
            f"CPU used by others during fires: {statistics.median(others):.0f} % of the machine"
            f" (up to {max(others):.0f} %), stolen {statistics.median(stolen):.1f} %"
        )
    return "\n".join(lines)


def _firing(results: Results, database: str) -> str:
    rows = [
        _firing_row(results, f"fire {database}", name, name)
        for name in FIRING
        if results.median(f"fire {database}", name, "per_s") is not None
    ]
    if results.median(f"handled {database}", "rota", "per_s") is not None:
        rows.append(_firing_row(results, f"handled {database}", "rota", "rota, to the handler"))
    head = [NAMES[database], "fired/s", "min–max", "late p50 / p99 ms", "database µs", "planner µs"]
    return table([*head, "doubled", "missed", "others %"], rows) if rows else ""


def _firing_row(results: Results, measure: str, name: str, title: str) -> list[str]:
    low, high = results.spread(measure, name, "per_s") or (0.0, 0.0)
    return [
        title,
        thousands(results.median(measure, name, "per_s")),
        f"{thousands(low)}–{thousands(high)}",
        " / ".join(number(_late(results, measure, name, percent), 0) for percent in (50, 99)),
        number(results.median(measure, name, "server_us")),
        number(results.median(measure, name, "planner_us")),
        number(_sum(results, measure, name, "doubled"), 0),
        number(_sum(results, measure, name, "missed"), 0),
        number(results.median(measure, name, "others_percent"), 0),
    ]


def _late(results: Results, measure: str, name: str, percent: int) -> float | None:
    return percentile(results.pooled(measure, name, "late_ms"), percent)


def _sum(results: Results, measure: str, name: str, word: str) -> float | None:
    """Over all repetitions: one fault in any of them is a fault."""
    values = results.each(measure, name, word)
    return sum(values) if values else None


def _alone(results: Results, databases: Sequence[str]) -> str:
    rows = []
    for database in databases:
        for measure, word, names in (("idle", "micros", ("1000", "many")), ("start", "ms", ("none", "many"))):
            few, many = (results.median(f"{measure} {database}", name, word) for name in names)
            if few is not None and many is not None:
                unit = "µs a step" if measure == "idle" else "ms"
                title = f"{NAMES[database]}, {measure}, {unit}"
                rows.append([title, number(few), number(many), number(many / few, 2)])
    return table(["the planner alone", "few or none", "all carried", "ratio"], rows) if rows else ""


def _cron(results: Results) -> str:
    rows = []
    for name in ("rota", "croniter", "cronsim"):
        cells = [name]
        for way in ("next", "prev"):
            typical, slowest = _typical(results, name, way), _slowest(results, name, way)
            cells += [number(typical), number(slowest), number(_times_rota(results, name, way))]
        rows.append(cells)
    if rows[0][1] == "–":
        return ""
    head = ["cron, µs a call", "next", "slowest", "x rota", "prev", "slowest", "x rota"]
    cases, wrong = (results.median("cron any", "oracle", word) for word in ("cases", "mismatches"))
    longest = results.median("cron any", "oracle", "longest_ms")
    told = f"against brute force: {wrong:.0f} of {cases:.0f} random cases differ; longest call {longest:.2f} ms"
    return table(head, rows) + ("\n\n" + told if cases else "")


def _per_expression(results: Results, name: str, way: str) -> list[float]:
    """The median over repetitions for each expression."""
    lists = results.lists("cron any", "speed", f"{name}_{way}")
    return [statistics.median(values) for values in zip(*lists, strict=True)]


def _typical(results: Results, name: str, way: str) -> float | None:
    found = _per_expression(results, name, way)
    return statistics.geometric_mean(found) if found else None


def _slowest(results: Results, name: str, way: str) -> float | None:
    return max(_per_expression(results, name, way), default=None)


def _times_rota(results: Results, name: str, way: str) -> float | None:
    """The geometric mean over expressions: none of them may decide alone."""
    pairs = zip(_per_expression(results, name, way), _per_expression(results, "rota", way), strict=True)
    ratios = [theirs / ours for theirs, ours in pairs]
    return statistics.geometric_mean(ratios) if ratios else None


def _outages(results: Results, databases: Sequence[str]) -> str:
    rows = [
        [f"{NAMES[database]}, {name}", number(results.median(f"outage {database}", name, "ms"))]
        for database in databases
        for name in results.contenders(f"outage {database}")
    ]
    return table(["every second, after a year of outage", "ms a step"], rows) if rows else ""


def _goals(results: Results, databases: Sequence[str]) -> str:
    goals = [goal for database in databases for goal in _goals_of(results, database)]
    least = [ratio for way in ("next", "prev") if (ratio := _times_rota(results, "croniter", way)) is not None]
    goals += [
        Goal("cron, croniter's time to rota's", min(least, default=None), 10, 10),
        Goal("cron, differences", results.median("cron any", "oracle", "mismatches"), 0, 0, True, ""),
        Goal("cron, cases compared", results.median("cron any", "oracle", "cases"), 2000, 2000, False, ""),
        Goal("cron, longest call", results.median("cron any", "oracle", "longest_ms"), 10, 10, True, "ms"),
    ]
    rows = [goal.row for goal in goals if goal.measured is not None]
    return table(["rota's goals", "measured", "goal", "at worst", ""], rows) if rows else ""


def _goals_of(results: Results, database: str) -> list[Goal]:
    where, fire = NAMES[database], f"fire {database}"
    times = TIMES_APSCHEDULER[database]
    idle, start = f"idle {database}", f"start {database}"
    micros = IDLE_MICROS[database]
    faults = [
        count
        for measure in (fire, f"handled {database}")
        for name in results.contenders(measure)
        for word in ("doubled", "missed", "skipped", "twice")
        if (count := _sum(results, measure, name, word)) is not None
    ]
    goals = [
        Goal(f"{where}, fired/s, to APScheduler", results.ratio(fire, "rota", "apscheduler", "per_s"), times, times),
        Goal(
            f"{where}, each with its own payload, to APScheduler",
            results.ratio(fire, "rota, own payloads", "apscheduler", "per_s"),
            times,
            times,
        ),
        Goal(f"{where}, fire to commit, p99", _late(results, fire, "rota", 99), 500, 500, True, "ms"),
        Goal(
            f"{where}, fire to handler, p99", _late(results, f"handled {database}", "rota", 99), 1000, 1000, True, "ms"
        ),
        Goal(f"{where}, doubled, missed, skipped, run twice", sum(faults) if faults else None, 0, 0, True, ""),
        Goal(f"{where}, idle step", results.median(idle, "many", "micros"), micros, micros, True, "µs"),
        Goal(f"{where}, idle step, many to 1000", results.ratio(idle, "many", "1000", "micros"), 1.5, 1.5, True),
        Goal(f"{where}, start, many to none", results.ratio(start, "many", "none", "ms"), 1.5, 1.5, True),
    ]
    if database == "postgres":
        two_to_one = results.ratio(fire, SINGLES, SINGLE, "per_s")
        goals.append(Goal(f"{where}, 2 planners to 1, a batch at a time", two_to_one, 1.2, 1.2))
        bullmq = results.ratio(fire, "rota", "bullmq", "per_s")
        goals.insert(1, Goal(f"{where}, fired/s, to BullMQ", bullmq, TIMES_BULLMQ, TIMES_BULLMQ))
    return goals
