"""Themes of coordination: runs that follow others, in other hands, by several workers, so many within a span."""

from __future__ import annotations

from tests.simulation.script.themes import EVERYTHING, NOTES, THEMES, Theme


class CoordinationTheme(Theme, frozen=True, kw_only=True):
    """`families`: runs that follow each other; `shapes`: how, see `coordination_generator.py`. `answers`: by those
    outside, `outsiders` those who claim. `restricts`: who may have a run is changed.
    `published`: again, with the same key. `settings`: of the clock, while something is about to begin.
    `quotas`: set and dropped. `held`: jobs of which one is paused for a while.
    """

    families: tuple[int, ...] = (0,)
    shapes: tuple[str, ...] = ()
    keyed: float = 0.3
    answers: tuple[int, ...] = (0,)
    answered: tuple[str, ...] = ("complete",)
    outsiders: tuple[int, ...] = (0,)
    restricts: tuple[int, ...] = (0,)
    requirements: float = 0.0
    published: float = 0.0
    settings: tuple[int, ...] = (0,)
    quotas: tuple[int, ...] = (0,)
    held: tuple[str, ...] = ()


DEPENDENCIES = CoordinationTheme(
    name="dependencies",
    weight=22,
    engines=(1, 2),
    span=(9, 16),
    jobs=("plain", "hasty", "once", "careful"),
    acts={"": ("ok:0.1", "ok:0.1", "ok:0.6", "ok:2", "ok:5", "raise:0.2", "fail:0.1", "fail:0.3", "crash:0.3",
        "snooze:0.1")},
    attempts=(1, 1, 2),
    enqueues=(1, 2),
    families=(2, 3, 4),
    shapes=("pair", "chain", "diamond", "fan", "join", "web", "after", "after"),
    cancels=(0, 1, 2, 3),
    retries=(0, 0, 1, 2),
    bulks=(0, 0, 0, 0, 1),
    faults=(0, 1, 2),
    kinds=("kill", "stop", "freeze", "strike", "strike", "aimed", "mute", "hush", "jump"),
    muted=("Store.extend", "Store.report"),
    freezes=(4.0, 12.0),
    aims=(
        ("client-1", "Store.enqueue", "lost_reply"),
        ("client-2", "Store.enqueue", "lost_reply"),
        ("client-1", "Store.enqueue", "repeated"),
        ("engine", "Store.report", "repeated"),
        ("engine", "Store.report", "late"),
        ("client-2", "Store.cancel", "repeated"),
    ),
)  # fmt: skip

EXTERNAL = CoordinationTheme(
    name="external",
    weight=22,
    engines=(1, 2),
    span=(14, 22),
    busy=0.7,
    jobs=("asker", "giver", "giver", "label", "label", "scan"),
    acts={
        "asker": ("ask:0.1", "ask:2", "await:0.1", "await:3", "ok:0.1"),
        "giver": ("give:0.1", "give:3", "lend:0.1", "lend:2", "ask:0.1", "await:0.1", "raise:0.1"),
        "": ("ok:0.5", "ok:2", "beat:8", "beat:14", "twice:0.5", "fail:0.5", "refuse:0.5", "forget",
            "late:11", "late:14"),
    },
    attempts=(1, 2, 2, 3),
    enqueues=(3, 5, 7),
    copies=(1, 1, 1, 2),
    delayed=0.05,
    answers=(0, 2, 4, 7),
    answered=("complete", "complete", "complete", "twice", "otherwise", "fail", "refuse", "stale", "stale", "beat",
        "early", "early"),
    outsiders=(1, 2),
    cancels=(0, 1, 3, 4),
    retries=(0, 0, 1),
    faults=(0, 1, 2, 3),
    kinds=("kill", "stop", "freeze", "strike", "aimed", "aimed", "away", "jump", "hush"),
    freezes=(4.0, 12.0),
    aims=(
        ("client-1", "ExternalStore.finish", "lost_reply"),
        ("client-1", "ExternalStore.finish", "repeated"),
        ("client-2", "ExternalStore.finish", "late"),
        ("outsider-1", "ExternalStore.finish", "repeated"),
        ("outsider-1", "Store.claim_assigned", "lost_reply"),
        ("outsider-1", "ExternalStore.finish", "late"),
        ("engine", "Store.report", "late"),
        ("engine", "Store.report", "repeated"),
        ("engine", "Store.report", "slow"),
    ),
)  # fmt: skip

REPLICAS = CoordinationTheme(
    name="replicas",
    weight=22,
    engines=(2, 3, 3),
    span=(12, 20),
    jobs=("pair", "lenient", "lenient", "fleet", "chosen", "graphic", "named"),
    acts={"": ("ok:0.1", "ok:0.6", "ok:2", "ok:5", "ok:9", "raise:0.2", "fail:0.1", "crash:0.3", "snooze:0.1")},
    attempts=(1, 1, 2),
    enqueues=(2, 3, 5),
    copies=(1, 1, 1, 2),
    requirements=0.25,
    published=0.5,
    restricts=(0, 1, 2),
    cancels=(0, 0, 1, 2),
    retries=(0, 0, 1),
    faults=(0, 1, 2, 3),
    kinds=("kill", "kill", "stop", "freeze", "strike", "strike", "aimed", "mute", "hush", "jump"),
    freezes=(4.0, 12.0, 14.0),
    mutes=(4.0, 14.0),
    muted=("Store.extend", "Store.report"),
    aims=(
        ("engine", "Store.claim_restricted", "lost_reply"),
        ("engine", "Store.claim_restricted", "slow"),
        ("engine", "_look_at_some", "late"),
        ("engine", "_look_at_some", "repeated"),
        ("engine", "_begin_some", "repeated"),
        ("engine", "_begin_some", "late"),
        ("client-1", "Store.enqueue", "lost_reply"),
        ("client-1", "Store.enqueue", "repeated"),
    ),
)  # fmt: skip

# Fewer workers than are wanted: while a run waits for one more, it is published again.
REPUBLISHED = CoordinationTheme(
    name="republished",
    weight=4,
    engines=(1, 1, 2),
    span=(10, 16),
    jobs=("pair",),
    acts={"": ("ok:0.1", "ok:0.6", "ok:2", "raise:0.2", "fail:0.1")},
    attempts=(1, 2),
    enqueues=(3, 4, 5),
    copies=(1,),
    delayed=0.0,
    published=1.0,
    faults=(0, 0, 1),
    kinds=("kill", "stop", "strike", "hush"),
)

# More than there are slots for, and not everybody may have everything: who begins first?
RANKS = CoordinationTheme(
    name="ranks",
    weight=4,
    engines=(1, 2, 2, 3),
    span=(12, 20),
    jobs=("plain", "plain", "pair", "chosen", "graphic", "named", "narrow", "keyed"),
    acts={"": ("ok:0.6", "ok:1", "ok:2")},
    attempts=(1,),
    enqueues=(6, 10),
    copies=(1, 2, 3),
    scoped=0.5,
    delayed=0.0,
    prioritized=0.8,
    busy=0.4,
    requirements=0.1,
    restricts=(0, 0, 1),
    faults=(0, 0, 1),
)

RATES = CoordinationTheme(
    name="rates",
    weight=14,
    engines=(1, 2, 3),
    span=(9, 15),
    jobs=("rated", "rated", "metered", "throttled"),
    acts={"": ("ok:0.1", "ok:0.1", "ok:0.6", "ok:2", "raise:0.1", "snooze:0.1", "crash:0.3", "ok:5")},
    attempts=(1, 1, 2),
    enqueues=(4, 7),
    copies=(1, 1, 1, 2, 3),
    scoped=1.0,
    settings=(0, 1, 2, 2),
    cancels=(0, 0, 1),
    faults=(0, 1, 2),
    kinds=("jump", "jump", "kill", "stop", "freeze", "strike", "aimed", "hush", "mute"),
    freezes=(4.0, 12.0),
    muted=("promote", "Store.report"),
    aims=(("engine", "Store.claim_limited", "lost_reply"), ("engine", "Store.claim_limited", "slow")),
)

QUOTAS = CoordinationTheme(
    name="quotas",
    weight=8,
    engines=(1, 1, 2),
    span=(16, 22),
    distance=(0.2, 1.0),
    busy=0.8,
    jobs=("plain", "plain", "plain", "hasty", "keyed", "narrow", "pair"),
    acts={"": ("ok:0.6", "ok:2", "ok:3", "ok:4", "ok:4", "ok:6", "raise:0.2", "crash:0.5", "snooze:0.2")},
    attempts=(1, 1, 2),
    enqueues=(5, 8),
    copies=(1, 2, 3, 5),
    delayed=0.3,
    scoped=1.0,
    quotas=(3, 5),
    cancels=(0, 1, 2),
    retries=(0, 0, 1),
    faults=(0, 1, 2, 3),
    kinds=("aimed", "aimed", "aimed", "aimed", "kill", "stop", "freeze", "hush"),
    freezes=(4.0, 12.0),
    aims=(
        *(("client-1", "QuotaStore._change", "lost_reply"), ("client-2", "QuotaStore._change", "lost_reply")) * 3,
        ("client-1", "QuotaStore._change", "repeated"),
        ("client-1", "QuotaStore._change", "lost_reply"),
        ("client-1", "QuotaStore._settle", "lost_reply"),
        ("client-2", "QuotaStore._settle", "refused"),
        ("engine", "Store.claim_limited", "lost_reply"),
        ("engine", "Store.claim_limited", "crash_after"),
        ("engine", "Store.report", "repeated"),
        ("client-1", "Store.enqueue", "repeated"),
    ),
)

PIPELINES = CoordinationTheme(
    name="pipelines",
    weight=8,
    engines=(1, 2),
    span=(12, 18),
    jobs=("line",),
    acts={"": ("ok:0.1/ok:0.1/ok:0.1", "ok:2/ok:2/ok:2", "ok:0.1/raise:0.2/ok:0.1", "ok:0.1/ok:5/ok:0.6",
        "raise:0.1/ok:0.1/fail:0.1", "ok:0.6/crash:0.3/ok:0.1", "ok:0.1/ok:0.1/crash:0.3", "ok:0.1/snooze:0.1/ok:2",
        "ok:4/ok:4/ok:9", "ok:0.1/fail:0.1/ok:0.1", "ok:0.6/ok:0.6/raise:0.1", "crash:0.2/ok:3/ok:0.1")},
    attempts=(1, 1, 2),
    enqueues=(4, 6),
    copies=(1, 1, 2),
    cancels=(0, 1, 3),
    retries=(0, 0, 1),
    retries_keeping=(1, 2, 3),
    held=("line", "line", "cut"),
    faults=(0, 1, 2, 3),
    kinds=("kill", "stop", "freeze", "strike", "aimed", "aimed", "mute", "hush"),
    freezes=(4.0, 12.0),
    muted=("Store.extend", "Store.report"),
    aims=(
        *(("engine", "Store.report", "repeated"),) * 4,
        ("engine", "Store.report", "lost_reply"),
        ("engine", "Store.report", "late"),
        ("engine", "Store.claim_in_order", "lost_reply"),
        ("client-1", "Store.enqueue_keeping", "repeated"),
    ),
)  # fmt: skip

COORDINATION_THEMES: tuple[Theme, ...] = (
    *(EVERYTHING, NOTES, REPUBLISHED, QUOTAS, PIPELINES, RANKS),
    *(theme for theme in THEMES if theme not in (EVERYTHING, NOTES)),
    *(DEPENDENCIES, EXTERNAL, REPLICAS, RATES),
)
"""Those of single runs, too, in the order in which seeds are drawn."""
