"""pgqueuer 1.6, batches of 500."""

from benchmarks.harness.driver import Driver


class Pgqueuer(Driver):
    name = "pgqueuer"
    title = "pgqueuer 1.6, batch 500"
    share = 0.3
    unfinished = "select exists (select from pgqueuer)"
