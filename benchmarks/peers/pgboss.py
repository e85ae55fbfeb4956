"""pg-boss 12, batches of 2000, woken by NOTIFY."""

from typing import ClassVar

from benchmarks.harness.driver import NodeDriver


class PgBoss(NodeDriver):
    name = "pgboss"
    title = "pg-boss 12, batch 2000"
    script = "pgboss.mjs"
    settings: ClassVar[dict[str, object]] = {"batchSize": 2000}
    unfinished = "select exists (select from pgboss.job where state < 'completed')"
