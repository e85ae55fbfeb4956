"""Shape of schedule documents: the keys of a schedule in requests, answers and files, with their descriptions.

`documents.parse` checks them, with better messages than a shape could give.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, get_args, get_type_hints

from msgspec import Meta

Table = dict[str, Any]


class ScheduleDocument(TypedDict, total=False):
    """A schedule as in `schedules.toml`: name, job, one trigger (`cron`, `every`, `after`, `following`, `once` or
    `either`), and options. Options that are left out have their defaults."""

    name: Annotated[str, Meta(description="Name, unique among schedules")]
    job: Annotated[str, Meta(description="Name of the job that it runs")]
    cron: Annotated[str | Table, Meta(description="Trigger: a cron expression, or a table with its own `timezone`")]
    gap: Annotated[str, Meta(description="With `cron`: what a time that the clocks skip becomes")]
    fold: Annotated[str, Meta(description="With `cron`: which of two equal times counts")]
    every: Annotated[str, Meta(description="Trigger: elapsed time between plan times, such as `30m`")]
    anchor: Annotated[str, Meta(description="What an interval counts from: an instant, `start`, or `epoch` (1970)")]
    interval_minutes: Annotated[
        int, Meta(description="Another notation of `every`: how many units, counted from 1970 unless `anchor` is given")
    ]
    interval_type: Annotated[str, Meta(description="With `interval_minutes`: minutes, hours or days")]
    after: Annotated[str, Meta(description="Trigger: time from the end of its last run to the next plan time")]
    following: Annotated[str, Meta(description="Trigger: a job, each end of whose runs starts a run")]
    on: Annotated[str, Meta(description="With `following`: which ends count: success, failure or end")]
    once: Annotated[str, Meta(description="Trigger: one instant")]
    either: Annotated[list[Table], Meta(description="Trigger: several triggers, each of which fires")]
    payload: Annotated[Table, Meta(description="Payload of its runs; texts may contain `{plan_time}`")]
    scopes: Annotated[
        str | list[str | list[str]], Meta(description="Scopes, `kind/id`, that get a run each, or a provider of them")
    ]
    delay: Annotated[str, Meta(description="Time from a plan time until its run may start")]
    jitter: Annotated[str, Meta(description="Random further delay, up to this")]
    catch_up: Annotated[str | Table, Meta(description="What becomes of plan times that passed without a planner")]
    overlap: Annotated[str | Table, Meta(description="What becomes of a plan time while an earlier run goes on")]
    failure: Annotated[str | Table, Meta(description="What becomes of a plan time after a failed run")]
    max_concurrency: Annotated[int, Meta(description="Runs of this schedule at a time")]
    when_full: Annotated[str, Meta(description="What a run does at that limit")]
    max_queued: Annotated[int, Meta(description="Runs that may wait for that limit")]
    rate: Annotated[str, Meta(description="Runs that may start within a time: `100/1m`")]
    expect: Annotated[Table, Meta(description="Expectations, whose breach is reported")]
    max_runs: Annotated[int, Meta(description="Plan times after which it ends")]
    start_at: Annotated[str, Meta(description="No plan time before")]
    end_at: Annotated[str, Meta(description="No plan time after")]
    windows: Annotated[list[str | Table], Meta(description="Only within these times: `09:00-17:00 mon-fri`")]
    exclude: Annotated[list[str], Meta(description="Not on these dates: `2026-12-25`, or from/to")]
    timezone: Annotated[str, Meta(description="Zone of the cron expression, the windows and the dates")]
    enabled: Annotated[bool, Meta(description="Whether it fires")]
    description: Annotated[str, Meta(description="Description for people")]
    queue: Annotated[str, Meta(description="Queue of its runs")]
    priority: Annotated[int, Meta(description="Priority of its runs")]
    timeout: Annotated[str, Meta(description="Timeout of its runs")]
    max_attempts: Annotated[int, Meta(description="Attempts of its runs")]
    backoff: Annotated[str | list[str] | Table, Meta(description="Pauses between the attempts of its runs")]
    tags: Annotated[list[str], Meta(description="Tags of its runs")]
    metadata: Annotated[Table, Meta(description="Metadata of its runs")]


ScheduleChanges: Any = TypedDict(  # type: ignore[misc]  # made at run time
    "ScheduleChanges",
    {
        key: Annotated[(get_args(kind)[0] | None, *kind.__metadata__)]
        for key, kind in get_type_hints(ScheduleDocument, include_extras=True).items()
    },
    total=False,
)
ScheduleChanges.__doc__ = "Changes of a schedule, as in a document. What is left out stays; null restores a default."
