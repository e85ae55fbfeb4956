"""rota in a measured process, without any batch: a claim of one run, its handler, a report of one run."""

import asyncio

from benchmarks.children import rota
from benchmarks.children.protocol import OnJob
from rota.core.runs.claim import PLAIN, ClaimRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.core.states import Outcome
from rota.store import open_store

CALLERS = 8
LEASE = 30_000_000


class Peer(rota.Peer):
    """As many callers as graphile-worker has without a local queue, each with a connection of its own."""

    async def work(self, on_job: OnJob) -> None:
        await asyncio.gather(*(self._claim_one_by_one(on_job, number) for number in range(CALLERS)))

    async def _claim_one_by_one(self, on_job: OnJob, number: int) -> None:
        store = await open_store(self._url)
        request = ClaimRequest(f"one-{number}", (QueueRequest("default", 1),), {"noop": 1}, LEASE, PLAIN)
        while True:
            claims = await store.claim(request)
            for claim in claims:
                on_job(None)
                await store.report([Report(claim.run_id, claim.fence, Outcome.SUCCEEDED)])
            if not claims:
                await asyncio.sleep(0.01)
