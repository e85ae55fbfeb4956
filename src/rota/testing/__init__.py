"""The test kit: time that stands still, a database that goes away, workers driven by hand, jobs run on the spot.

ManualClock         time that moves only when told to
Harness             an app on a database of its own, with every part of the engine a step at a time
inline              enqueue means: call the handler now; no database
assert_enqueued     was this job enqueued with that payload?
drain, adrain       run everything that is due, here and now, with the real worker
"""

from rota.testing.clock import ManualClock
from rota.testing.draining import adrain, drain
from rota.testing.enqueued import assert_enqueued
from rota.testing.hands import HandWorker
from rota.testing.harness import Harness
from rota.testing.inline import Inlined, InlineRun, inline

__all__ = [
    "HandWorker",
    "Harness",
    "InlineRun",
    "Inlined",
    "ManualClock",
    "adrain",
    "assert_enqueued",
    "drain",
    "inline",
]
