"""Themes: what a world is mostly about.

Where everything happens a little, two things that have to meet hardly ever do. So most worlds have a theme: fewer kinds
of things, more of the same, and more of the fault that matters to it. A new feature brings a theme of its own, and
takes nothing from the others but their share of the seeds.

Of each tuple one is drawn, whenever one is needed; what is named twice comes twice as often.
"""

from __future__ import annotations

from typing import Any

import msgspec

Policies = dict[str, tuple[float, tuple[Any, ...]]]
"""Of an option: how likely a schedule has it, and what it may be."""

FAULTS = ("kill", "stop", "stop", "freeze", "freeze", "away", "mute", "mute", "strike", "strike", "strike", "hush",
    "jump")  # fmt: skip
VERBS = ("pause", "pause", "resume", "resume", "update", "update", "trigger", "delete", "backfill", "backfill")
SCOPES = (("tenant", "a"), ("tenant", "b"), ("tenant", "c"))
OVERLAPS = ("skip", "allow", "cancel_previous", {"mode": "parallel", "max_overlap": 2}, "queue_one", "queue_all")
CATCH_UPS = ("none", "latest", {"mode": "all", "keep": 6}, {"mode": "all", "keep": 6, "per_tick": 2})
_ZONE = "Europe/Berlin"
# Every few seconds, in hours that are left out or repeated there; once, at a time that is left out; on one day only.
_ZONED = ("*/5 * * * * *", "*/4 * 2 * * *", "*/4 * 3 * * *", "0 2 * * *", "*/4 * * 29 2 *")
OFTEN = ({"every": "2s"}, {"every": "3s"}, {"cron": "*/3 * * * * *"})
TRIGGERS = (
    *({"every": span} for span in ("2s", "3s", "5s", "7s")),
    *({"cron": text} for text in ("*/3 * * * * *", "*/10 * * * * *", "*/7 * * * * *", "*/3 * * * * *")),
    *({"cron": text, "tz": _ZONE} for text in _ZONED[:4]),
    *({"cron": "*/1 * * * *"} for _ in range(4)),
    *({"after": "3s"} for _ in range(4)),
    {"cron": _ZONED[4], "tz": _ZONE},
)
POLICIES: Policies = {
    "catch_up": (0.5, CATCH_UPS),
    "overlap": (0.6, OVERLAPS),
    "delay": (0.2, ("2s",)),
    "jitter": (0.2, ("2s",)),
    "max_concurrency": (0.15, (1,)),
    "scopes": (0.25, ([list(scope) for scope in SCOPES], "tenants")),
}

ACTS = (*("ok:0.1",) * 13, *("ok:0.6",) * 9, *("ok:2",) * 5, *("raise:0.2",) * 6, *("crash:0.3",) * 2,
    *("ok:6",) * 3, *("ok:14",) * 2, *("raise:1",) * 2, "fail:0.1", "retry:0.1", "snooze:0.1", "ok:30", "stubborn:8",
    "polite:5", "polite:16", "raise:6", "retry:0.1", "snooze:0.1")  # fmt: skip
# What handlers do that work in steps: see `application/steps.py`.
STEPPED = ("fetch:0.3,pay:1,store:0.3", "fetch:0.2,pay:6,store:0.2", "fetch:0.2,pay:0.4,store:0.2:raise",
    "fetch:0.2,pay:0.5,store:0.5:crash", "fetch:0.2:die,pay:0.3,store:0.1", "fetch:0.1,pay:3:die,store:0.1",
    "pay:1+ship:1,store:0.3", "pay:7+rest:2>ship:2,fetch:0.2", "fetch:0.2,pay:2:raise,store:0.1",
    "pay:0.2,fetch:0.2:snooze", "pay:4:give_up,rest:9,store:0.1", "pay:0.5,rest:6:still", "fetch:0.5,store:6",
    "pay:0.2,ship:7", "fetch:11:still,pay:4", "pay:9,rest:5:still", "fetch:0.2,pay:12", "ship:3+fetch:9:still",
    "fetch:0.1+store:0.1,pay:0.2,rest:0.2:fail", "sign:0.5,pay:0.5,ship:0.5,rest:2",
    "sign:1,pay:1,ship:1,rest:1", "sign:0.3,fetch:0.3,pay:0.3,store:0.3,ship:0.3,rest:1")  # fmt: skip
LOOSE = ("one:0.2,two:0.2,three:0.2", "one:0.3,two:1:raise", "one:0.3,two:1:crash",
    "one:0.1+two:0.1+three:0.1,four:5", "one:0.2,two:8:still,three:0.1", "one:0.2,two:0.5:die,three:0.1",
    "one:2,two:2,three:2:raise")  # fmt: skip
PAYER = ("fetch:0.2,tx:0.1:finish", "tx:0.3:finish", "tx:3:finish", "fetch:0.2,tx:0.2,rest:1",
    "tx:0.5,tx:0.2:finish", "fetch:0.3,tx:0.3:abort", "tx:0.1:finish,rest:3", "rest:9,tx:8:finish",
    "rest:5:still,tx:6")  # fmt: skip
# So many that the end of one is nearly always on its way, also when the job's time is over.
_TINY = ",".join(f"step-{number}:0.05:still" for number in range(45))
NOT_TO_BE_CANCELLED = tuple(act for act in STEPPED if "pay" in act or "sign" in act or "ship" in act)


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """`acts`: what handlers do, by job, and under "" all others. `aims`: blows on operations of one name, as
    ("client-1", "Store.enqueue", "repeated"); "engine" is any of them. `pauses`: of schedules, each with its resume.
    """

    name: str
    weight: int = 10
    engines: tuple[int, ...] = (1, 2, 2, 3)
    span: tuple[float, float] = (10, 22)
    distance: tuple[float, ...] = (0.2, 1.0, 1.0, 3.0)
    hints: float = 0.8
    busy: float = 0.9  # the part of its span in which runs are enqueued, and faults begin

    jobs: tuple[str, ...] = ("plain",)
    acts: dict[str, tuple[str, ...]] = {}
    attempts: tuple[int, ...] = (1, 1, 2, 3)
    enqueues: tuple[int, ...] = (0,)
    copies: tuple[int, ...] = (1, 1, 1, 1, 1, 1, 1, 2, 3, 5)
    delayed: float = 0.1
    idempotent: float = 0.0
    unique: float = 0.0
    scoped: float = 0.0
    bursts: float = 0.0
    prioritized: float = 0.2

    cancels: tuple[int, ...] = (0,)
    cancels_at_work: tuple[int, ...] = (0,)
    retries: tuple[int, ...] = (0,)
    retries_keeping: tuple[int, ...] = (0,)
    bulks: tuple[int, ...] = (0,)
    holds: tuple[int, ...] = (0,)

    schedules: tuple[int, ...] = (0,)
    planned: tuple[str, ...] = ("planned", "planned", "brief")
    triggers: tuple[dict[str, str], ...] = TRIGGERS
    policies: Policies = msgspec.field(default_factory=lambda: POLICIES)
    failing: float = 0.3
    changes: tuple[int, ...] = (0,)
    verbs: tuple[str, ...] = VERBS
    pauses: tuple[int, ...] = (0,)

    faults: tuple[int, ...] = (0, 1, 2, 4)
    kinds: tuple[str, ...] = FAULTS
    freezes: tuple[float, ...] = (1.0, 4.0, 12.0, 20.0)
    jumps: tuple[float, ...] = (-30.0, -1.0, 1.0, 30.0, 60.0)
    mutes: tuple[float, ...] = (4.0, 14.0)
    muted: tuple[str, ...] = ("NoteStore.write", "Store.extend", "Store.extend", "Store.report", "Store.claim_in_order",
        "Store.reap", "PlanningStore.plan")  # fmt: skip
    aims: tuple[tuple[str, str, str], ...] = ()


EVERYTHING = Theme(
    name="everything",
    weight=16,
    span=(15, 32),
    jobs=("plain", "plain", "plain", "hasty", "once", "careful", "careful", "timed", "narrow", "keyed", "nested",
        "fleeting", "fleeting", "stepped", "stepped", "stepped", "stepped", "loose", "payer", "payer"),
    acts={"": ACTS, "stepped": STEPPED, "loose": LOOSE, "payer": PAYER},
    enqueues=(2, 5, 10, 15),
    delayed=0.25,
    idempotent=0.25,
    unique=0.4,
    scoped=0.1,
    bursts=0.02,
    cancels=(0, 1, 2, 5),
    cancels_at_work=(0, 1, 2),
    retries=(0, 0, 0, 2),
    retries_keeping=(0, 0, 1, 2),
    bulks=(0, 0, 0, 0, 0, 0, 0, 1),
    holds=(0, 0, 0, 1),
    schedules=(0, 1, 1, 2),
    changes=(0, 1, 1, 2, 4),
    faults=(0, 1, 2, 4, 6),
)  # fmt: skip

# Tried again, given back, lost: what each of these costs a run, and when it is over.
ATTEMPTS = Theme(
    name="attempts",
    weight=16,
    engines=(1, 2),
    jobs=("plain", "hasty", "once", "careful", "careful", "timed"),
    acts={"": ("ok:0.6", "ok:2", "ok:6", "ok:14", "raise:0.2", "raise:1", "fail:0.1", "retry:0.1", "snooze:0.1",
        "crash:0.3", "crash:1", "polite:5", "stubborn:8")},
    attempts=(1, 2, 3),
    enqueues=(5, 8),
    cancels=(0, 1, 2),
    faults=(1, 2, 4),
    kinds=("kill", "stop", "stop", "freeze", "strike", "strike", "away", "mute", "hush"),
)  # fmt: skip

STEPS = Theme(
    name="steps",
    weight=16,
    engines=(1, 2),
    distance=(0.2, 1.0, 3.0, 6.0, 6.0),
    jobs=("stepped", "loose"),
    acts={
        "stepped": (*STEPPED, "fetch:0.2,store:0.2:fail", "fetch:0.3,pay:0.3,store:0.3:fail"),
        "loose": (*LOOSE, _TINY, _TINY, "one:0.2,two:0.2:fail"),
    },
    enqueues=(3, 6),
    cancels_at_work=(1, 3),
    retries_keeping=(1, 3, 5),
    kinds=("stop", "kill", "mute", "strike", "strike", "freeze"),
    muted=("NoteStore.write",),
)

# Handlers that talk and have no steps: their last words meet with trouble, and their ends do not wait for them.
NOTES = Theme(
    name="notes",
    weight=4,
    engines=(1, 2),
    distance=(0.2, 1.0),
    jobs=("loose",),
    acts={"loose": ("rest:0.3", "rest:0.6", "rest:0.9", "rest:2", "rest:4", "rest:0.4,rest:0.4:fail", "rest:6")},
    attempts=(1, 1, 2),
    enqueues=(6, 10),
    copies=(1, 1, 2),
    delayed=0.0,
    cancels_at_work=(0, 0, 1),
    faults=(2, 3),
    kinds=("aimed", "aimed", "mute"),
    mutes=(1.0, 14.0),
    muted=("NoteStore.write",),
    aims=(("engine", "NoteStore.write", "refused"), ("engine", "NoteStore.write", "lost_reply")),
)

SHIELDS = Theme(
    name="shields",
    weight=14,
    engines=(1, 2),
    jobs=("stepped",),
    acts={"stepped": (*NOT_TO_BE_CANCELLED, *("pay:8+rest:20:still", "sign:2,pay:2,ship:2") * 9, "pay:3+ship:2+sign:1",
        "sign:2+pay:2,ship:2")},
    attempts=(1,),
    enqueues=(3, 6),
    delayed=0.0,
    cancels_at_work=(3, 5),
    faults=(0, 2, 4),
    kinds=("aimed", "aimed", "aimed", "aimed", "stop", "freeze", "strike"),
    aims=(
        *(("engine", "NoteStore.unshield", "late"),) * 6,
        ("engine", "NoteStore.unshield", "repeated"),
        *(("engine", "NoteStore.shield", "late"),) * 3,
        ("engine", "NoteStore.shield", "lost_reply"),
    ),
)  # fmt: skip

# Whoever cannot renew its leases loses them, and does not know: all that it says from then on must be refused.
ZOMBIES = Theme(
    name="zombies",
    weight=18,
    engines=(2, 3),
    span=(26, 32),
    busy=0.4,
    jobs=("plain", "stepped", "loose", "payer"),
    acts={
        "": ("ok:11", "ok:14", "ok:17", "ok:20", "polite:16"),
        "stepped": ("pay:13,store:0.3", "pay:14,ship:1", "fetch:4,store:3,pay:9", "fetch:14:still,pay:1",
            "fetch:4,rest:4,fetch:0.1+store:2"),
        "loose": ("one:2,two:2,three:2,four:2", "one:8", "one:14:still,two:1", "one:17:still"),
        "payer": ("rest:5:still,tx:9", "tx:14", "tx:14:finish", "rest:5:still,tx:9:finish", "fetch:6,tx:7:finish"),
    },
    attempts=(1,),
    enqueues=(4, 6),
    copies=(1,),
    delayed=0.0,
    faults=(2, 3),
    kinds=("mute", "mute", "freeze", "aimed"),
    freezes=(12.0, 15.0),
    mutes=(15.0, 20.0),
    muted=("Store.extend",),
    aims=(("engine", "Store.claim", "slow"), ("engine", "Store.claim_limited", "slow")),
)  # fmt: skip

TRANSACTIONS = Theme(
    name="transactions",
    weight=8,
    engines=(1, 2),
    distance=(0.2, 1.0, 4.0),
    jobs=("payer",),
    acts={"payer": PAYER},
    enqueues=(5, 10),
    cancels_at_work=(0, 2),
    kinds=("strike", "aimed", "freeze", "stop", "mute"),
    muted=("NoteStore.write", "GateSession.within"),
    aims=(("engine", "GateSession.within", "lost_reply"), ("engine", "GateSession.within", "late")),
)

SUSPECTS = Theme(
    name="suspects",
    weight=10,
    engines=(1, 1, 2),
    span=(28, 36),
    jobs=("plain", "hasty", "narrow", "keyed"),
    acts={"": ("crash:0.2", "crash:0.4", "crash:1", "ok:1", "ok:3")},
    attempts=(3,),
    enqueues=(3, 5),
    copies=(1, 2),
    delayed=0.0,
    scoped=0.2,
    faults=(1, 2),
    kinds=("kill", "strike"),
)

LIMITS = Theme(
    name="limits",
    weight=10,
    engines=(1, 2, 3),
    jobs=("narrow", "keyed", "nested", "nested"),
    acts={"": ("ok:0.6", "ok:2", "ok:4", "raise:0.5", "crash:0.5", "snooze:0.2")},
    enqueues=(5, 8),
    copies=(1, 1, 2, 3),
    cancels=(0, 2),
    schedules=(0, 1),
    policies={"max_concurrency": (1.0, (1,)), "overlap": (1.0, ("allow",))},
    triggers=OFTEN,
)

KEYS = Theme(
    name="keys",
    weight=8,
    engines=(1, 2),
    span=(8, 16),
    delayed=0.3,
    jobs=("plain", "fleeting"),
    acts={"": ("ok:0.1", "ok:0.6", "ok:2", "raise:0.2", "fail:0.1")},
    enqueues=(10, 16),
    idempotent=0.3,
    unique=0.7,
    cancels=(0, 2),
    kinds=("aimed", "aimed", "jump", "strike", "stop"),
    aims=(
        ("client-1", "Store.enqueue", "repeated"),
        ("client-2", "Store.enqueue", "repeated"),
        ("client-1", "Store.enqueue", "lost_reply"),
        ("client-2", "Store.cancel", "repeated"),
    ),
)

# One run of a schedule after the other, and somebody who takes one out of the middle.
ORDER = Theme(
    name="order",
    weight=16,
    engines=(1, 2),
    distance=(0.2, 1.0),
    acts={"": ("ok:6", "ok:9", "ok:4", "ok:14", "polite:9", "raise:3")},
    attempts=(1,),
    cancels=(2, 5),
    retries=(0, 2, 4),
    schedules=(1, 2),
    planned=("planned",),
    triggers=OFTEN,
    policies={
        "overlap": (1.0, ("queue_all", "queue_all", "queue_one", "cancel_previous", "cancel_previous", "skip")),
        "catch_up": (0.3, CATCH_UPS),
        "max_concurrency": (0.3, (1,)),
        "when_full": (0.7, ("skip", "reject")),
    },
    failing=0.0,
    faults=(0, 0, 1),
    kinds=("strike", "stop", "hush"),
)

CANCELS = Theme(
    name="cancels",
    weight=8,
    engines=(1, 2),
    distance=(0.2, 1.0),
    jobs=("plain", "timed", "careful", "narrow"),
    acts={"": ("ok:30", "polite:16", "stubborn:8", "ok:6", "raise:6")},
    attempts=(1,),
    enqueues=(4, 8),
    cancels=(3, 6),
    bulks=(0, 0, 1),
    faults=(0, 1),
)

SCHEDULES = Theme(
    name="schedules",
    weight=16,
    engines=(1, 1, 2),
    acts={"": ("ok:0.1", "ok:0.6", "ok:2", "fail:0.1", "raise:0.2")},
    schedules=(2, 3),
    triggers=(*OFTEN, *OFTEN, *TRIGGERS),
    policies={**POLICIES, "catch_up": (0.8, CATCH_UPS), "delay": (0.3, ("2s", "12s"))},
    faults=(0, 1, 2, 3),
    kinds=("kill", "mute", "mute", "away", "freeze", "jump", "strike"),
    freezes=(8.0, 12.0),
    muted=("PlanningStore.plan",),
)

CHANGES = Theme(
    name="changes",
    weight=14,
    engines=(1, 2),
    acts={"": ("ok:0.1", "ok:0.6", "ok:3", "fail:0.1")},
    schedules=(1, 2, 3),
    triggers=(*OFTEN, *OFTEN, *TRIGGERS),
    changes=(2, 4),
    pauses=(1, 2),
    cancels=(0, 1),
    holds=(0, 1),
    faults=(0, 1, 2, 3),
    kinds=("jump", "jump", "jump", "mute", "strike", "kill"),
    jumps=(-30.0, -30.0, -30.0, -1.0, 60.0),
    muted=("PlanningStore.plan",),
)

# More than there are slots for: who begins first?
PRIORITIES = Theme(
    name="priorities",
    weight=6,
    engines=(1, 1, 2),
    jobs=("plain", "plain", "once", "careful", "narrow", "keyed"),
    acts={"": ("ok:0.6", "ok:1", "ok:2")},
    enqueues=(6, 10),
    copies=(2, 3, 5),
    delayed=0.0,
    prioritized=0.8,
    busy=0.4,
    faults=(0, 0, 1),
)

THEMES = (EVERYTHING, NOTES, ATTEMPTS, STEPS, SHIELDS, ZOMBIES, TRANSACTIONS, SUSPECTS, LIMITS, KEYS, ORDER, CANCELS,
    SCHEDULES, CHANGES, PRIORITIES)  # fmt: skip
