"""The page that `benchmark chaos` ends with: one table, a row for each fault."""

import statistics
from collections.abc import Sequence

from benchmarks.harness.chaos_faults import FAULTS
from benchmarks.reports.rates import GOAL, WITHIN
from benchmarks.reports.report import Results, Sample, failures, number, table

HEAD = ["fault", "runs/s before", "meanwhile", f"after {WITHIN:.0f} s", "worst", f"{GOAL:.0%} after, s", "worst"]
HEAD += ["enqueue again, s", "process ready, s", "held runs ended, s", "lost", "done twice", "ended", "others %", ""]


def page(samples: Sequence[Sample], facts: dict[str, str]) -> str:
    results = Results(samples)
    names = results.contenders("chaos")
    parts = [_facts(samples, facts), table(HEAD, [_row(results, name) for name in names]), failures(samples)]
    return "\n\n".join(part for part in parts if part)


def _facts(samples: Sequence[Sample], facts: dict[str, str]) -> str:
    lines = [f"{name}: {value}" for name, value in facts.items()]
    runs = len({sample.run for sample in samples})
    lines.append(f"medians of {runs} alternating repetitions; shares are of the baseline in the same repetition")
    return "\n".join(lines)


def _row(results: Results, name: str) -> list[str]:
    def each(word: str) -> list[float]:
        return results.each("chaos", name, word)

    shares, afters = each("share"), each("after_s")
    is_whole = not any((*each("lost"), *each("ended")))
    met = statistics.median(shares) >= GOAL and statistics.median(afters) <= WITHIN and is_whole
    ready, held = each("ready_s"), each("held_s")
    return [
        FAULTS[name].title,
        number(statistics.median(each("baseline")), 0),
        f"{statistics.median(each('during')):.0%}",
        f"{statistics.median(shares):.0%}",
        f"{min(shares):.0%}",
        number(statistics.median(afters)),
        number(max(afters)),
        number(statistics.median(each("enqueue_s"))),
        number(statistics.median(ready)) if ready else "–",
        number(max(held)) if held else "–",
        number(sum(each("lost")), 0),
        number(sum(each("twice")), 0),
        number(sum(each("ended")), 0),
        number(statistics.median(each("others_after")), 0),
        "met" if met else "MISSED",
    ]
