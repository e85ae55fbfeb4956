"""Whether a promise was broken: what the database says at rest, compared with witnesses outside of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import msgspec

from rota.server import BEYOND_GRACE
from tests.chaos.evidence import Attempt, Evidence, arguments_of
from tests.chaos.faults import GRACE, HEARTBEAT, LEASE, POSTGRES, REAPER
from tests.chaos.jobs import BACKOFF, NARROW, ONE_AT_A_TIME
from tests.chaos.losses import Losses
from tests.simulation.world.observer import Finding

SECOND = 1_000_000
_COSTS_NOTHING = ("handed_back", "snoozed")
_TAKEN_AWAY = LEASE + REAPER + 1.0 + 4.0
"""Seconds: as promised, and what a busy machine takes for it."""
_WELL = 2 * HEARTBEAT + 3.0
"""Seconds: a reaper that has just lost sight of the database is careful for a while."""
_STOPPED = GRACE + BEYOND_GRACE + 2.0
"""Seconds: its grace, what is promised beyond it, and what a busy machine takes to end a process."""


def acknowledged_is_there(seen: Evidence) -> Iterator[Finding]:
    """P7: what was acknowledged exists and is final, but for what a failover may have lost."""
    losses = Losses(seen)
    for line in seen.told:
        run = seen.runs.get(line.run_id)
        if losses.of_answer(line):
            continue
        if run is None:
            yield "P7", f"acknowledged and not there: {line}"
        elif run.end is None:
            yield "P7", f"acknowledged and never final: {run}"
    for refused in seen.refused:
        if losses.of_refusal(refused):
            continue
        yield "P7", f"refused: {refused.why}: {seen.asked[refused.key]}"


def one_run_per_key(seen: Evidence) -> Iterator[Finding]:
    """P7, P8: an order makes one run, however often it was asked, and all answers name the same."""
    made: dict[str, list[str]] = {}
    for run in seen.runs.values():
        if "order" in (arguments := arguments_of(run)):
            made.setdefault(arguments["order"], []).append(run.id)
    named = _named(seen)
    for key, ids in made.items():
        if len(ids) > 1:
            yield "P8", f"order {key} made {len(ids)} runs: {sorted(ids)}"
        if key not in seen.asked:
            yield "P3", f"a run of order {key}, which nobody gave"
    for key, ids in ((key, sorted(ids)) for key, ids in named.items()):
        if len(ids) > 1:
            yield "P8", f"answers to order {key} named {len(ids)} runs: {ids}"
        if seen.asked[key].job != "unique" and ids != made.get(key, ids):
            yield "P8", f"the answer to order {key} named {ids}, and its run is {made[key]}"


def _named(seen: Evidence) -> dict[str, set[str]]:
    """Return which runs the answers to each order named, but for lost ones."""
    losses, named = Losses(seen), dict[str, set[str]]()
    for line in seen.told:
        if not losses.of_answer(line):
            named.setdefault(line.key, set()).add(line.run_id)
    return named


def fences_grow(seen: Evidence) -> Iterator[Finding]:
    """P9: one after the other, and each begins once, by whom it was given to."""
    for attempts in seen.of_run.values():
        for before, after in pairwise(attempts):
            if after.fence <= before.fence or after.claimed_at < before.ended_at:
                yield "P9", f"two attempts at once: {before}, {after}"
    losses, begun = Losses(seen), set[tuple[str, int]]()
    for entry in seen.begun:
        key = entry.run_id, entry.fence
        given = seen.attempt.get(key)
        if key in begun:
            yield "P9", f"begun twice under one fence: {entry}"
        if not losses.of_begin(entry) and (given is None or given.worker != entry.worker):
            yield "P9", f"begun under a fence that was not its own, but {given}: {entry}"
        begun.add(key)


def fences_grow_across_losses(seen: Evidence) -> Iterator[Finding]:
    """P26: whatever is claimed after a loss has a larger fence than claims that are lost."""
    losses = Losses(seen)
    for entry in filter(losses.of_begin, seen.begun):
        for attempt in seen.of_run.get(entry.run_id, ()):
            if attempt.claimed_at / SECOND - seen.wall > entry.at and attempt.fence <= entry.fence:
                yield "P26", f"a claim after a loss has no larger fence: {attempt}, {entry}"


def successes_are_true(seen: Evidence) -> Iterator[Finding]:
    """P10: what succeeded did return, and its result is of the fence that is recorded."""
    returned = seen.said("end")
    done = seen.said("did")
    for run in seen.runs.values():
        if run.end is None or run.end.state != "succeeded":
            continue
        key = run.id, run.end.fence or 0
        finishes = run.job == "paying"  # its run ends before its handler does
        if key not in (done if finishes else returned):
            yield "P10", f"succeeded, and its handler never said so under that fence: {run}"
        told = msgspec.json.decode(run.end.result or "{}").get("fence")
        if told != run.end.fence:
            yield "P10", f"the result of fence {told} was accepted under fence {run.end.fence}: {run}"


def transactions_are_whole(seen: Evidence) -> Iterator[Finding]:
    """P10: a handler's own rows are committed under the current fence, and with the end of its run or not at all."""
    finishing = Counter(effect.run_id for effect in seen.effects if effect.finishing)
    for effect in seen.effects:
        run, attempt = seen.runs.get(effect.run_id), seen.attempt.get((effect.run_id, effect.fence))
        end = run.end if run else None
        if effect.finishing and (end is None or (end.state, end.fence) != ("succeeded", effect.fence)):
            yield "P10", f"committed {effect}, and its run did not end with it: {run}"
        if attempt is None:
            yield "P10", f"committed {effect} under a fence that nobody was given"
    for run in seen.of_job("paying"):
        if run.end and run.end.state == "succeeded" and finishing[run.id] != 1:
            yield "P10", f"succeeded, with {finishing[run.id]} transactions to end it: {run}"


def final_is_final(seen: Evidence) -> Iterator[Finding]:
    """P11: how a run ended is what was first seen of it, unless that is lost; and nobody claimed it afterwards."""
    losses = Losses(seen)
    for glimpse in seen.ended.values():
        if losses.of_end(glimpse):
            continue
        run = seen.runs.get(glimpse.run_id)
        end = run.end if run else None
        now = (end.state, end.fence, end.attempt, end.finished_at, end.result) if end else None
        if now != glimpse.end:
            yield "P11", f"it was {glimpse.end}, and is {now}: {run}"
    for attempt in seen.attempts:
        run = seen.runs[attempt.run_id]
        if run.end and run.end.finished_at < attempt.claimed_at:
            yield "P11", f"claimed after its end: {attempt} of {run}"


def within_their_budget(seen: Evidence) -> Iterator[Finding]:
    """P13: attempts are bounded, and a backoff is a lower bound."""
    for id, attempts in seen.of_run.items():
        run = seen.runs[id]
        spent = [one for one in attempts if one.outcome not in _COSTS_NOTHING]
        if len(spent) > run.max_attempts or max(one.no for one in attempts) > run.max_attempts:
            yield "P13", f"{len(spent)} attempts of {run.max_attempts}: {run}"
        for before, after in pairwise(attempts):
            waited = (after.claimed_at - before.ended_at) / SECOND
            if before.outcome in ("failed", "timed_out") and waited < BACKOFF:
                yield "P13", f"claimed {waited:.3f}s after a failure, though it backs off {BACKOFF}s: {run}"


def at_most_once(seen: Evidence) -> Iterator[Finding]:
    """P14: after a loss or a hand-back no handler begins again; and with one attempt, only once.

    Of what began under a lost claim nobody knows any more.
    """
    losses = Losses(seen)
    known = [entry for entry in seen.begun if not losses.of_begin(entry)]
    times = Counter(entry.run_id for entry in known)
    for run in seen.of_job("once"):
        if times[run.id] > 1:
            yield "P14", f"at most once, and begun {times[run.id]} times: {run}"
    begun: dict[str, set[int]] = {}
    for entry in known:
        begun.setdefault(entry.run_id, set()).add(entry.fence)
    for run in seen.of_job("once", "careful"):
        fences, attempts = begun.get(run.id, set()), seen.of_run.get(run.id, [])
        lost = [one.fence for one in attempts if one.outcome in ("lost", "handed_back") and one.fence in fences]
        if lost and max(fences) > min(lost):
            yield "P14", f"begun again after it was lost: {run}"


def never_early(seen: Evidence) -> Iterator[Finding]:
    """P2: nothing is claimed before it is due."""
    for id, attempts in seen.of_run.items():
        early = (seen.runs[id].run_at - attempts[0].claimed_at) / SECOND
        if early > 0:
            yield "P2", f"claimed {early:.3f}s early: {seen.runs[id]}"


def limits_are_exact(seen: Evidence) -> Iterator[Finding]:
    """P6: never more authoritative attempts of a key at once than its limit."""
    groups: dict[tuple[str, int], list[Attempt]] = {}
    for attempt in seen.attempts:
        run = seen.runs[attempt.run_id]
        schedule = seen.schedules.get(run.schedule_id or "")
        if run.job == "narrow":
            groups.setdefault(("narrow", NARROW), []).append(attempt)
        elif run.job == "keyed":
            groups.setdefault((f"lane {arguments_of(run)['lane']} of keyed", 1), []).append(attempt)
        elif schedule in ONE_AT_A_TIME:
            groups.setdefault((f"schedule {schedule}", 1), []).append(attempt)
    for (what, limit), attempts in groups.items():
        for held in crowds(attempts, limit):
            yield "P6", f"{len(held)} of {limit} hold {what}: {held}"


def crowds(attempts: Iterable[Attempt], limit: int) -> Iterator[list[Attempt]]:
    held: list[Attempt] = []
    for attempt in sorted(attempts, key=lambda one: one.claimed_at):
        held = [one for one in held if one.ended_at > attempt.claimed_at] + [attempt]
        if len(held) > limit:
            yield held


def dead_leases_are_taken_away(seen: Evidence) -> Iterator[Finding]:
    """P12: what a killed worker held is taken away in time, if somebody was well enough to do it."""
    for attempt, died, taken in seen.kept_after_death:
        if taken > died + _TAKEN_AWAY and somebody_was_well(seen, died - _WELL, died + _TAKEN_AWAY):
            yield "P12", f"taken away {taken - died:.1f}s after its worker was killed: {attempt}"


def somebody_was_well(seen: Evidence, since: float, until: float) -> bool:
    """All that time alive and not struck, and so was the database."""
    struck = {one.fault.target for one in seen.strokes if one.since < until and one.until > since}
    alive = {life.target for life in seen.lives if life.since < since and (life.until or until) >= until}
    return POSTGRES not in struck and any(name.startswith(("worker", "server")) for name in alive - struck)


def cancels_are_kept(seen: Evidence) -> Iterator[Finding]:
    """P15: what was asked to stop, and was not over, ends cancelled."""
    losses = Losses(seen)
    for line in seen.cancels:
        if losses.of_cancel(line):
            continue
        run = seen.runs.get(line.run_id)
        if line.state and run and run.end and run.end.state != "cancelled":
            yield "P15", f"asked to be cancelled, and {run.end.state}: {run}"


def steps_are_done_once(seen: Evidence) -> Iterator[Finding]:
    """P16: what is recorded as done was not begun again under a later fence."""
    recorded = {(step.run_id, step.id): step for step in seen.steps if step.state == "succeeded"}
    for entry in seen.entries:
        step = recorded.get((entry.run_id, entry.note)) if entry.what == "did" and entry.note else None
        if step and step.result is not None and entry.fence > int(step.result):
            yield "P16", f"step {step.id} was done under fence {step.result}, and begun again: {entry}"


def processes_behave(seen: Evidence) -> Iterator[Finding]:
    """P18, P22: none dies by itself, and whoever is told to stop does so within its grace."""
    for life in seen.lives:
        if life.end == "died":
            yield "P18", f"it ended by itself, with {life.code}: {life}"
        if life.asked is None or not life.target.startswith(("worker", "server")):
            continue
        took = (life.until or seen.ended_at) - life.asked
        if life.end != "stopped" or took > _STOPPED:
            yield "P22", f"told to stop, and took {took:.1f}s: {life}"
        elif life.code != 0:
            yield "P22", f"told to stop, and ended with {life.code}: {life}"


def seen_as_it_happened(seen: Evidence) -> Iterator[Finding]:
    yield from seen.findings


CHECKS: list[Callable[[Evidence], Iterator[Finding]]] = [
    acknowledged_is_there,
    one_run_per_key,
    fences_grow,
    fences_grow_across_losses,
    successes_are_true,
    transactions_are_whole,
    final_is_final,
    within_their_budget,
    at_most_once,
    never_early,
    limits_are_exact,
    dead_leases_are_taken_away,
    cancels_are_kept,
    steps_are_done_once,
    processes_behave,
    seen_as_it_happened,
]


def judge(seen: Evidence) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(seen)]
