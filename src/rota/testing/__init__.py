"""The test kit: a manual clock, database outages, workers driven by hand, jobs run inline.

inline                                  an enqueue calls the handler at once; no database
assert_enqueued, assert_not_enqueued    was this job enqueued with that payload?
drain, adrain                           run everything that is due, here and now, with the real worker
Harness                                 an app with its own database, whose engine is driven step by step
ManualClock                             a clock that moves only when told to
assert_fires                            when does a trigger fire? without a database, across changes of the clocks

Names are imported at their first use, so that the pytest plugin beside them costs nothing if it is not used.
"""

from typing import TYPE_CHECKING

from rota.late import late_name

if TYPE_CHECKING:
    from rota.testing.assertions.enqueued import assert_enqueued, assert_not_enqueued
    from rota.testing.assertions.fires import assert_fires
    from rota.testing.clock import ManualClock
    from rota.testing.harness.blocking_harness import BlockingHandWorker, BlockingHarness
    from rota.testing.harness.drain import adrain, drain
    from rota.testing.harness.harness import Harness
    from rota.testing.harness.manual_worker import HandWorker
    from rota.testing.inline_mode.inline import Inlined, InlineRun, inline

__all__ = [
    "BlockingHandWorker",
    "BlockingHarness",
    "HandWorker",
    "Harness",
    "InlineRun",
    "Inlined",
    "ManualClock",
    "adrain",
    "assert_enqueued",
    "assert_fires",
    "assert_not_enqueued",
    "drain",
    "inline",
]

_HOMES = {
    "rota.testing.harness.blocking_harness": ("BlockingHandWorker", "BlockingHarness"),
    "rota.testing.clock": ("ManualClock",),
    "rota.testing.harness.drain": ("adrain", "drain"),
    "rota.testing.assertions.enqueued": ("assert_enqueued", "assert_not_enqueued"),
    "rota.testing.assertions.fires": ("assert_fires",),
    "rota.testing.harness.manual_worker": ("HandWorker",),
    "rota.testing.harness.harness": ("Harness",),
    "rota.testing.inline_mode.inline": ("InlineRun", "Inlined", "inline"),
}


def __getattr__(name: str) -> object:
    return late_name(globals(), _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
