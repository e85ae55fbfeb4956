"""Jobs and queues as callers see them: definitions with the status of their runs, one page at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Queue
from rota.core.jobs.status import JobFacts, JobFilter, JobStatus, JobView, job_state, job_view, next_at, status_of
from rota.core.limits.live import LimitedThing
from rota.core.limits.quotas import Quota
from rota.core.monitoring.statistics import JobStats, stats_of
from rota.errors import UnknownQueue
from rota.store.databases.database import Database, Tx, Work
from rota.store.jobs import jobs
from rota.store.ledger.occurrences import snapshot
from rota.store.limits.live import LiveLimitStore, live_limits
from rota.store.monitoring import statistics
from rota.store.runs import read
from rota.values.instants import maybe_instant

_BITE = 500

_Mark = tuple[int, int]
"""Version of a job and when it was declared: both stay the same only while the definition does."""
Declared = Mapping[str, JobDefinition]
"""Jobs that this process declares in code, by name. They stand for the stored ones of the same name."""


class JobViewStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queues: dict[str, tuple[_Mark, str]] = {}

    async def definition(self, name: str, declared: Collection[str]) -> JobDefinition:
        """Return a job's newest stored definition, or raise `UnknownJob`, which suggests `declared` jobs, too."""
        return await self._database.read(lambda tx: jobs.stored(tx, name, declared))

    async def get(self, name: str, declared: Declared) -> JobView:
        async def body(tx: Tx) -> JobView:
            definition = declared.get(name) or await jobs.stored(tx, name, declared)
            return await _view(tx, definition)

        return await self._database.read(body)

    async def limit_job(
        self, limits: LiveLimitStore, name: str, limit: Quota, lasts: int | None, *, declared: jobs.Declared
    ) -> JobStatus:
        """Set the live limit of a job, and return its status, in one transaction."""

        async def read_status(tx: Tx) -> JobStatus:
            (facts,) = await jobs.facts(tx, [name])
            return status_of(facts)

        async def check(tx: Tx) -> None:
            # Under the job's lock: the limit of a job that is dropped meanwhile would outlive it and bind the next one.
            await jobs.require(tx, name, declared=declared)

        _, status = await limits.update(LimitedThing.JOB, name, limit, lasts, check, read_status)
        assert status is not None
        return status

    async def limit_queue(
        self, limits: LiveLimitStore, name: str, limit: Quota, lasts: int | None, declared: Declared | None
    ) -> Queue:
        """Set the live limit of a queue, and return it, in one transaction. Without `declared`, any name will do."""

        async def check(tx: Tx) -> None:
            if declared is not None:
                names = {definition.queue for definition in declared.values()}
                known = [queue.queue for queue in await _queues(tx, names | await self._named(tx))]
                if name not in known:
                    raise UnknownQueue(name, known)

        async def read_queue(tx: Tx) -> Queue:
            return await queue_view(tx, name)

        _, queue = await limits.update(LimitedThing.QUEUE, name, limit, lasts, check, read_queue)
        assert queue is not None
        return queue

    def known(self, name: str, declared: jobs.Declared) -> Work[None]:
        """Return a check that raises `UnknownJob` unless the job is declared in code or stored."""
        return lambda tx: jobs.require_known(tx, name, declared)

    async def status(self, name: str, *, declared: jobs.Declared) -> JobStatus:
        async def body(tx: Tx) -> JobStatus:
            await jobs.require_known(tx, name, declared)
            (facts,) = await jobs.facts(tx, [name])
            return status_of(facts)

        return await self._database.read(body)

    async def page(self, job_filter: JobFilter, declared: Declared, limit: int, after: str | None) -> list[JobView]:
        """Return the jobs after a name that the filter selects, by name, at most `limit`."""
        chosen = await self._database.read(lambda tx: _chosen(tx, job_filter, declared, limit, after or ""))
        return [job_view(definition, facts) for definition, facts in chosen]

    async def stats(self, job_filter: JobFilter, declared: Declared, limit: int, after: str | None) -> list[JobStats]:
        """Return the statistics of the jobs of such a page."""

        async def body(tx: Tx) -> list[JobStats]:
            await snapshot(tx)
            page = [(job.name, facts) for job, facts in await _chosen(tx, job_filter, declared, limit, after or "")]
            tallies = await statistics.tallies(tx, [name for name, _ in page])
            return [stats_of(name, tallies[name], facts.running_since, next_at(facts)) for name, facts in page]

        return await self._database.read(body)

    async def queues(self, declared: Declared, limit: int, after: str | None) -> list[Queue]:
        """Return the queues after a name, by name, at most `limit`: all that have runs, are paused or limited, or that
        jobs name."""
        names = {definition.queue for definition in declared.values()}

        async def body(tx: Tx) -> list[Queue]:
            named = names | await self._named(tx)
            return [queue for queue in await _queues(tx, named) if after is None or queue.queue > after][:limit]

        return await self._database.read(body)

    async def queue_names(self, declared: Declared) -> list[str]:
        """Return the names of all queues that have runs, are paused, or that jobs name."""
        names = {definition.queue for definition in declared.values()}

        async def body(tx: Tx) -> list[str]:
            return [queue.queue for queue in await _queues(tx, names | await self._named(tx))]

        return await self._database.read(body)

    async def _named(self, tx: Tx) -> set[str]:
        """Return the queues that stored jobs name. Definitions are read once in each version, not at every question."""
        marks: dict[str, _Mark] = {name: (version, at) for name, version, at in await tx.fetch("job_marks")}
        known = {name: queue for name, queue in self._queues.items() if marks.get(name) == queue[0]}
        new = [(name, mark[0]) for name, mark in marks.items() if name not in known]
        for name, _, queue in await tx.fetch("queues_of_jobs", new) if new else ():
            known[name] = marks[name], queue
        self._queues = known
        return {queue for _, queue in known.values()}


async def queue_view(tx: Tx, name: str) -> Queue:
    """Return one queue; without runs, if nothing names it."""
    return next(queue for queue in await _queues(tx, {name}) if queue.queue == name)


async def _view(tx: Tx, definition: JobDefinition) -> JobView:
    (facts,) = await jobs.facts(tx, [definition.name])
    return job_view(definition, facts)


async def _chosen(
    tx: Tx, job_filter: JobFilter, declared: Declared, limit: int, after: str
) -> list[tuple[JobDefinition, JobFacts]]:
    """Walk the jobs in bites, as far as the page needs. Names are compared by the database, whose order may differ from
    Python's."""
    rows = [(name,) for name in declared]
    chosen: list[tuple[JobDefinition, JobFacts]] = []
    selective = job_filter != JobFilter()
    while len(chosen) < limit:
        bite = _BITE if selective else limit
        found = await tx.fetch("jobs_after", rows, after=after, limit=bite)
        definitions = [declared.get(name) or read.definition_in(text) for name, text in found]
        selected = [definition for definition in definitions if job_filter.selects(definition)]
        facts = await jobs.facts(tx, [job.name for job in selected])
        pairs = zip(selected, facts, strict=True)
        chosen += [(job, of_it) for job, of_it in pairs if job_filter.state in (None, job_state(of_it))]
        if len(found) < bite:
            break
        after, _ = found[-1]
    return chosen[:limit]


async def _queues(tx: Tx, names: set[str]) -> Sequence[Queue]:
    levels = await read.queue_levels(tx)
    paused = {pause.name: pause for pause in await read.paused_queues(tx)}
    limits = {name: limit for (thing, name), limit in (await live_limits(tx)).items() if thing is LimitedThing.QUEUE}

    def queue(name: str) -> Queue:
        running, queued, scheduled, oldest = levels.get(name, (0, 0, 0, None))
        return Queue(name, running, queued, scheduled, paused.get(name), maybe_instant(oldest), limits.get(name))

    return [queue(name) for name in sorted({"default", *names, *levels, *paused, *limits})]
