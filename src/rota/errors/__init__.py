"""Errors that rota raises: five families, each with one HTTP status and one exit code.

    RotaError
    ├── NotFound        404   exit 4     UnknownJob, UnknownRun, UnknownSchedule, UnknownWorker, NotExpected,
    │                                    UnknownToken, UnknownQuota, UnknownNotification
    ├── Conflict        409   exit 6     AmbiguousRun, LeaseLost, RunIsFinal, RunNotFinal, NotCancellable, DuplicateRun,
    │                                    JobDisabled, NotRepeatable, NotSchedulable, DuplicateSchedule, Overlapping,
    │                                    NotTriggered, NothingToRetry, AlreadyRetried, BulkMismatch, LimitReached,
    │                                    QuotaExceeded, AmbiguousWorker, ChangedMeanwhile, AlreadyReported,
    │                                    NotHandedOver, NotAsked, JobInUse
    ├── Invalid         422   exit 2     BadPayload, BadDuration, BadTrigger, UnknownOption, UnknownStep,
    │                                    MaskedSecret, StepTwice, KeyReused, FollowingRing, BadConfig (exit 78)
    ├── Denied          403   exit 5     Forbidden, NotSignedIn, TooManyTries
    └── Unavailable     503   exit 69    DeadlineExceeded, UnreadableSchedule, SchemaOutdated (exit 78),
                                         DatabaseMoved (exit 78), PromotionUnfinished (exit 78), StillRunning (exit 75),
                                         FileReplaced

Each class builds its message from facts, and adds a hint where there is something to do about it.
"""

from __future__ import annotations

from rota.errors.access import Forbidden, NotSignedIn, TooManyTries, UnknownToken
from rota.errors.families import Conflict, Denied, Invalid, NotFound, RotaError, Unavailable, did_you_mean
from rota.errors.resources import (
    AmbiguousWorker,
    ChangedMeanwhile,
    DuplicateSchedule,
    FollowingRing,
    JobDisabled,
    JobInUse,
    NotExpected,
    NotSchedulable,
    NotTriggered,
    Overlapping,
    UnknownJob,
    UnknownNotification,
    UnknownQuota,
    UnknownSchedule,
    UnknownWorker,
    UnreadableSchedule,
)
from rota.errors.runs import (
    AlreadyReported,
    AlreadyRetried,
    AmbiguousRun,
    BulkMismatch,
    DuplicateRun,
    KeyReused,
    LeaseLost,
    LimitReached,
    NotAsked,
    NotCancellable,
    NotHandedOver,
    NothingToRetry,
    NotRepeatable,
    QuotaExceeded,
    RunIsFinal,
    RunNotFinal,
    StepTwice,
    StillRunning,
    UnknownRun,
    UnknownStep,
)
from rota.errors.values import (
    BadConfig,
    BadDuration,
    BadPayload,
    BadTrigger,
    DatabaseMoved,
    DeadlineExceeded,
    FileReplaced,
    MaskedSecret,
    PromotionUnfinished,
    SchemaOutdated,
    UnknownOption,
)

__all__ = [
    "AlreadyReported",
    "AlreadyRetried",
    "AmbiguousRun",
    "AmbiguousWorker",
    "BadConfig",
    "BadDuration",
    "BadPayload",
    "BadTrigger",
    "BulkMismatch",
    "ChangedMeanwhile",
    "Conflict",
    "DatabaseMoved",
    "DeadlineExceeded",
    "Denied",
    "DuplicateRun",
    "DuplicateSchedule",
    "FileReplaced",
    "FollowingRing",
    "Forbidden",
    "Invalid",
    "JobDisabled",
    "JobInUse",
    "KeyReused",
    "LeaseLost",
    "LimitReached",
    "MaskedSecret",
    "NotAsked",
    "NotCancellable",
    "NotExpected",
    "NotFound",
    "NotHandedOver",
    "NotRepeatable",
    "NotSchedulable",
    "NotSignedIn",
    "NotTriggered",
    "NothingToRetry",
    "Overlapping",
    "PromotionUnfinished",
    "QuotaExceeded",
    "RotaError",
    "RunIsFinal",
    "RunNotFinal",
    "SchemaOutdated",
    "StepTwice",
    "StillRunning",
    "TooManyTries",
    "Unavailable",
    "UnknownJob",
    "UnknownNotification",
    "UnknownOption",
    "UnknownQuota",
    "UnknownRun",
    "UnknownSchedule",
    "UnknownStep",
    "UnknownToken",
    "UnknownWorker",
    "UnreadableSchedule",
    "did_you_mean",
]

for _name in __all__:  # tracebacks show the public import path
    globals()[_name].__module__ = __name__
