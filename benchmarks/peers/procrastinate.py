"""procrastinate 3, twenty jobs at a time."""

from benchmarks.harness.driver import Driver


class Procrastinate(Driver):
    name = "procrastinate"
    title = "procrastinate 3"
    share = 0.02
    unfinished = "select exists (select from procrastinate_jobs where status in ('todo', 'doing'))"
