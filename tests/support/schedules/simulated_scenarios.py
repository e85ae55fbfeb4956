"""Run the scenarios of `policy_oracle` through the simulation."""

from datetime import timedelta

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy
from rota.core.planning.assumptions import Assumptions, Attempt, SimulatedEvent
from rota.core.planning.simulate import simulate
from rota.core.planning.tick import ScheduleState
from rota.core.schedules.schedule import ScheduleDefinition
from tests.support.schedules.policy_oracle import Story, Told

SECOND = 1_000_000


def simulated(definition: ScheduleDefinition, job: JobDefinition, retry: RetryPolicy, story: Story) -> list[Told]:
    assuming = _AsTold(
        duration=lambda number: timedelta(seconds=story.lasts(number)),
        outages=((story.away[0] * SECOND, story.away[1] * SECOND),),
        job=job,
        story=story,
    )
    standing = ScheduleState("id", job.name, definition, 0, story.step * SECOND)
    found = simulate(standing, retry, 0, story.until * SECOND, assuming)
    return [_told(event) for event in found.events if event.kind not in ("missed", "covered", "paused")]


class _AsTold(Assumptions, frozen=True, kw_only=True):
    """Assumptions in which a run's number decides whether it fails."""

    story: Story

    def fails(self, attempt: Attempt) -> bool:
        return self.story.fails(attempt.number)


def _told(event: SimulatedEvent) -> Told:
    fate = "failed" if event.failed else event.kind
    began, ended = (None if at is None else at // SECOND for at in (event.started_at, event.finished_at))
    return Told(event.plan_time // SECOND, fate, event.attempt, began, ended)
