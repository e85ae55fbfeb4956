"""The checks of coordination, those of them that a world has a use for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.application.coordination_jobs import EXTERNAL, HAND_OVER, RATED
from tests.simulation.application.data_jobs import DATA_EXTERNAL
from tests.simulation.application.pipelines import PIPELINES
from tests.simulation.checks.coordination.dependencies import DependencyChecks
from tests.simulation.checks.coordination.external import ExternalChecks
from tests.simulation.checks.coordination.pipelines import PipelineChecks
from tests.simulation.checks.coordination.quotas import QuotaChecks
from tests.simulation.checks.coordination.rates import RateChecks
from tests.simulation.checks.coordination.replicas import ReplicaChecks, is_staffed
from tests.simulation.checks.jobs import JobChecks
from tests.simulation.script.entries import ChangeJob, Enqueue, Family, SetQuota
from tests.simulation.world.observer import Change, Finding

if TYPE_CHECKING:
    from tests.simulation.world.world import World

OfChange = Callable[[Change], Iterator[Finding]]
OfCommit = Callable[[], Iterator[Finding]]


class CoordinationChecks:
    def __init__(self, world: World) -> None:
        entries = world.script.entries
        jobs = {entry.job for entry in entries if isinstance(entry, Enqueue)}
        jobs |= {one.job for entry in entries if isinstance(entry, Family) for one in entry.members}
        acts = {act.partition(":")[0] for entry in entries if isinstance(entry, Enqueue) for act in entry.acts}
        self.of_changes: list[OfChange] = []
        self.of_commits: list[OfCommit] = []
        self.at_the_end: list[OfCommit] = []
        if any(isinstance(entry, Family) for entry in entries):
            follows = DependencyChecks(world)
            self.of_changes += follows.of_changes()
            self.of_commits += follows.of_commits()
        if jobs & {*EXTERNAL, *DATA_EXTERNAL} or acts & HAND_OVER.keys():
            hands = ExternalChecks(world)
            self.of_changes += hands.of_changes()
            self.of_commits += hands.of_commits()
            self.at_the_end += [hands.answers_are_true, hands.nobody_of_ours_claims_it]
        if any(map(is_staffed, jobs)):
            replicas = ReplicaChecks(world)
            self.of_changes += replicas.of_changes()
            self.of_commits += replicas.of_commits()
        if any(isinstance(entry, SetQuota) for entry in entries):
            quotas = QuotaChecks(world)
            self.of_changes += quotas.of_changes()
            self.at_the_end.append(quotas.refused_for_a_reason)
        if jobs & PIPELINES.keys():
            pipelines = PipelineChecks(world)
            self.of_changes += pipelines.of_changes()
            self.of_commits += pipelines.of_commits()
            self.at_the_end.append(pipelines.ends_with_its_parts)
        if any(isinstance(entry, ChangeJob) for entry in entries):
            whole = JobChecks(world)
            self.of_changes += whole.of_changes()
            self.of_commits += whole.of_commits()
        if jobs & RATED.keys():
            self.of_changes += RateChecks(world).of_changes()
