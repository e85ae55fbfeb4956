"""huey 3 on SQLite, with fsync."""

from benchmarks.harness.driver import SqliteDriver


class Huey(SqliteDriver):
    name = "huey"
    title = "huey 3, SQLite, fsync on"
    share = 0.1
    unfinished = "select exists (select 1 from task)"
