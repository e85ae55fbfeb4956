"""The result of a chaos test, for people and for programs: a page with a picture, and a JSON document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from tests.chaos.chart import OUTCOMES, Picture, ends_per_second, quiet_seconds
from tests.chaos.checks import CHECKS
from tests.chaos.cluster import Plan
from tests.chaos.evidence import Evidence
from tests.chaos.faults import BY_NAME
from tests.simulation.world.observer import Finding

STYLE = (Path(__file__).parent / "report.css").read_text()
_MOST_TOLD = 200


def figures(seen: Evidence) -> dict[str, Any]:
    """Numbers that say how hard it was."""
    states = Counter(run.end.state if run.end else "not final" for run in seen.runs.values())
    outcomes = Counter(attempt.outcome for attempt in seen.attempts)
    kept = round(max((taken - died for _, died, taken in seen.kept_after_death), default=0.0), 1)
    fences = {key for key in seen.said("end") if key in seen.attempt}
    late = sum(seen.attempt[key].outcome == "lost" for key in fences)
    return {
        "runs": len(seen.runs),
        "by state": dict(states.most_common()),
        "attempts": len(seen.attempts),
        "by outcome": dict(outcomes.most_common()),
        "orders asked": len(seen.asked),
        "answers": len(seen.told),
        "cancels": len(seen.cancels),
        "lines in the ledger": len(seen.entries),
        "results of lost leases that were refused": late,
        "processes killed": sum(life.end == "killed" for life in seen.lives),
        "processes told to stop": sum(life.asked is not None for life in seen.lives),
        "starts without a database": sum(life.end == "could not begin" for life in seen.lives),
        "answers lost after a commit": sum(stroke.note == "an answer was lost" for stroke in seen.strokes),
        "looks at the database meanwhile": seen.looks[0],
        "looks in vain": seen.looks[1],
        "seconds of faults": round(seen.healed_at - seen.began_at, 1),
        "seconds until all worked again": round(seen.recovered_at - seen.healed_at, 1),
        "longest from a kill until its leases were taken away, in seconds": kept,
        "longest time without an end, in seconds": quiet_seconds(seen),
    }


def verdict(findings: Sequence[Finding]) -> str:
    return f"{len(findings)} complaint{'s' * (len(findings) > 1)}" if findings else "No promise was broken"


def write(folder: Path, plan: Plan, seen: Evidence, findings: Sequence[Finding]) -> Path:
    """`report.html` and `report.json`; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "plan": msgspec.to_builtins(plan),
        "kept": not findings,
        "findings": [{"promise": promise, "words": words} for promise, words in findings],
        "figures": figures(seen),
        "strokes": [_document(stroke, seen) for stroke in msgspec.to_builtins(seen.strokes)],
        "lives": [_document(life, seen) for life in msgspec.to_builtins(seen.lives)],
        "ends_per_second": ends_per_second(seen),
    }
    (folder / "report.json").write_text(json.dumps(document, indent=1) + "\n")
    page = folder / "report.html"
    page.write_text(html(plan, seen, findings))
    return page


def _document(said: dict[str, Any], seen: Evidence) -> dict[str, Any]:
    """With its times in seconds after the begin."""
    times = ("since", "until", "asked")
    return {
        name: round(value - seen.began_at, 3) if name in times and value is not None else value
        for name, value in said.items()
    }


def html(plan: Plan, seen: Evidence, findings: Sequence[Finding]) -> str:
    told = verdict(findings)
    title = f"{plan.database}, seed {plan.seed}"
    return "".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">',
            f"<title>{told}: {title}</title><style>{STYLE}</style><main>",
            f'<header><h1 class="{"bad" if findings else "good"}">{told}</h1><p>{_lead(plan, seen)}</p></header>',
            _complaints(findings),
            f"<section>{_legend(seen)}{Picture(seen, plan.targets).html()}</section>",
            f'<div class="columns"><section><h2>How hard it was</h2>{_figures(seen)}</section>',
            f"<section><h2>Faults</h2>{_faults(seen)}</section>",
            f"<section><h2>What was judged</h2>{_checks()}</section></div>",
            "</main></html>\n",
        ]
    )


def _lead(plan: Plan, seen: Evidence) -> str:
    asking = f"{plan.callers} caller over HTTP and {plan.producers} producer"
    many = f"{plan.workers} workers, {plan.servers} servers, {asking} on {plan.database}"
    seconds = seen.healed_at - seen.began_at
    return f"{many}; {len(seen.strokes)} faults in {seconds:.0f} s, drawn from seed {plan.seed}."


def _complaints(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = "".join(f"<li><b>{escape(promise)}</b> {escape(words)}</li>" for promise, words in findings[:_MOST_TOLD])
    more = f"<p>… and {len(findings) - _MOST_TOLD} more</p>" if len(findings) > _MOST_TOLD else ""
    return f'<section class="complaints"><h2>Complaints</h2><ul>{rows}</ul>{more}</section>'


def _legend(seen: Evidence) -> str:
    happened = dict.fromkeys(stroke.fault.kind for stroke in seen.strokes)
    kinds = [name for name in BY_NAME if name in happened]
    faults = "".join(
        f'<span title="{escape(BY_NAME[name].words)}"><i class="{name}"></i>{name}</span>' for name in kinds
    )
    ends = "".join(f'<span><i class="line {name}"></i>{words}</span>' for name, words in OUTCOMES.items())
    return f'<div class="legend"><b>Faults</b>{faults}</div><div class="legend"><b>Attempts</b>{ends}</div>'


def _figures(seen: Evidence) -> str:
    rows = []
    for name, value in figures(seen).items():
        told = (
            ", ".join(f"{count:,} {what}" for what, count in value.items()) if isinstance(value, dict) else f"{value:,}"
        )
        rows.append(f"<tr><th>{escape(name.capitalize())}</th><td>{escape(told)}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _faults(seen: Evidence) -> str:
    rows = ""
    for kind in BY_NAME.values():
        lasted = [stroke.until - stroke.since for stroke in seen.strokes if stroke.fault.kind == kind.name]
        if lasted:
            often = f"<td>{len(lasted)} ×</td><td>{sum(lasted):.0f} s</td>"
            rows += f"<tr><th>{kind.name}</th><td>{escape(kind.words)}</td>{often}</tr>"
    return f"<table>{rows}</table>"


def _checks() -> str:
    told = [str(check.__doc__).strip() for check in CHECKS if check.__doc__]
    told.append("P1, P3, P4, P12, P17: the ledger of each schedule, what is left in the tables, the trail of each run.")
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in told)}</ul>"
