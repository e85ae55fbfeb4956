"""Assert that a run was enqueued: in `inline(app)` inside its block, in the database otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rota.client.client import MOST_LISTED
from rota.core.runs.run import Run, RunFilter
from rota.errors import Invalid
from rota.job import Job
from rota.testing.assertions.match_run import RunMatcher
from rota.testing.inline_mode.inline import InlineRun, inlined_of

_MOST_SHOWN = 10


def assert_enqueued(
    job: Job[..., Any], payload: Mapping[str, Any] | None = None, /, *, count: int | None = None, **values: Any
) -> Run | InlineRun:
    """Assert that `job` was enqueued with these values in its payload, whatever became of it; return the newest run.

        assert_enqueued(welcome, user="ada")
        assert_enqueued(welcome.options(queue="mail", delay="10m"), user="ada")   # as it was enqueued
        assert_enqueued(welcome, user="ada", count=2)                             # exactly twice

    The error shows what was enqueued, and how the nearest run differs. Put values that a keyword cannot name into a
    mapping: `assert_enqueued(order, {"count": 3})`. Any object with `==` will do: `unittest.mock.ANY`.
    """
    matcher = RunMatcher(job, _together(job, payload, count, values))
    runs = _newest_first(job)
    matching = [run for run in runs if not matcher.differences(run)]
    if matching and count in (None, len(matching)):
        return matching[0]
    name, how = job.name, matcher.words
    if not matching:
        raise AssertionError(f"{name!r} was not enqueued{how}{_instead(matcher, runs)}")
    problem = f"{name!r} was enqueued {_times(len(matching))}{how}, not {_times(count or 0)}"
    raise AssertionError(problem + _instead(matcher, runs))


def assert_not_enqueued(job: Job[..., Any], payload: Mapping[str, Any] | None = None, /, **values: Any) -> None:
    """Assert that no run of `job` has these values in its payload: `assert_not_enqueued(welcome, user="bob")`."""
    matcher = RunMatcher(job, {**(payload or {}), **values})
    runs = _newest_first(job)
    if matching := [run for run in runs if not matcher.differences(run)]:
        raise AssertionError(
            f"{job.name!r} was enqueued {_times(len(matching))}{matcher.words}{_instead(matcher, runs)}"
        )


def _together(
    job: Job[..., Any], payload: Mapping[str, Any] | None, count: int | None, values: Mapping[str, Any]
) -> dict[str, Any]:
    own = job.handler.definition.payload_schema.get("properties", {})
    if count is not None and payload is None and "count" in own:
        raise Invalid(
            f"{job.name!r} has a value called count: is that meant, or how often?",
            hint="put values into a mapping, and `count` is how often: assert_enqueued(job, {…}, count=…)",
        )
    return {**(payload or {}), **values}


def _newest_first(job: Job[..., Any]) -> Sequence[Run | InlineRun]:
    """Return runs of `job` or, if there are none, of all jobs: another may have been enqueued by mistake."""
    inlined = inlined_of(job.app)
    if inlined is not None:
        return list(reversed(inlined.runs))
    own = job.app.blocking.list(RunFilter(job=job.name), limit=MOST_LISTED)
    return own or job.app.blocking.list(limit=MOST_LISTED)


def _instead(matcher: RunMatcher, runs: Sequence[Run | InlineRun]) -> str:
    """Describe what was enqueued, how each run differs, and which is nearest."""
    own = [run for run in runs if run.job == matcher.job.name]
    if not own:
        counts = ", ".join(f"{job!r} {_times(times)}" for job, times in Counter(run.job for run in runs).items())
        return f". Other jobs were: {counts}" if counts else ". No job was enqueued at all"
    unlike = sorted((run for run in own if matcher.differences(run)), key=lambda run: len(matcher.differences(run)))
    nearest = unlike[0] if len(unlike) > 1 else None
    shown = own[:_MOST_SHOWN]
    lines = [_line(matcher, run, nearest) for run in shown]
    if nearest is not None and nearest not in shown:
        lines.append(_line(matcher, nearest, nearest))
    if len(own) > _MOST_SHOWN:
        lines.append(f"  … of {len(own)}")
    return "\n".join([f". It was enqueued {_times(len(own))}, newest first:", *lines])


def _line(matcher: RunMatcher, run: Run | InlineRun, nearest: Run | InlineRun | None) -> str:
    difference = "; ".join(matcher.differences(run)) or "matches"
    return f"  {run.payload}: {'nearest: ' if run is nearest else ''}{difference}"


def _times(count: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count} times")
