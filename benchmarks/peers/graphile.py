"""graphile-worker 0.18, as fast as we could make it and as its documentation sets it for speed."""

from typing import ClassVar

from benchmarks.harness.driver import NodeDriver


class GraphileTuned(NodeDriver):
    name = "graphile"
    title = "graphile-worker 0.18, tuned"
    script = "graphile.mjs"
    settings: ClassVar[dict[str, object]] = {
        "concurrentJobs": 100,
        "maxPoolSize": 10,
        "localQueue": {"size": 2000},
        "completeJobBatchDelay": 1,
        "failJobBatchDelay": 1,
    }
    unfinished = "select exists (select from graphile_worker._private_jobs)"


class GraphilePreset(GraphileTuned):
    name = "graphile-preset"
    title = "graphile-worker 0.18, documented preset"
    settings: ClassVar[dict[str, object]] = {
        "concurrentJobs": 24,
        "maxPoolSize": 25,
        "localQueue": {"size": 500},
        "completeJobBatchDelay": 0,
        "failJobBatchDelay": 0,
    }


class GraphileOne(GraphileTuned):
    name = "graphile-one"
    title = "graphile-worker 0.18, a job at a time"
    share = 0.2
    batched = False
    settings: ClassVar[dict[str, object]] = {"concurrentJobs": 8, "maxPoolSize": 10}
