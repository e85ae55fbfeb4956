"""Test an app that is used before a fork: each child enqueues on its own connection."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from rota import Job, Rota

CHILDREN = 3
EACH = 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_parent_and_children_enqueue_after_the_fork(database_url: str) -> None:
    app = Rota(database_url)

    @app.job
    def greet(name: str) -> None:
        """Never called here."""

    greet.enqueue(name="before")  # opens the connection that no child may use
    children = [_forked(greet, number) for number in range(CHILDREN)]
    greet.enqueue(name="meanwhile")
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    greet.enqueue(name="after")
    assert len({run.payload["name"] for run in app.blocking.list()}) == 3 + CHILDREN * EACH
    app.close()


def _forked(greet: Job[[str], None], number: int) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            gc.collect()  # what the parent left: nothing of it may be closed as if it were the child's
            with ThreadPoolExecutor(EACH) as threads:  # as a server with threads does
                list(threads.map(lambda n: greet.enqueue(f"{number}.{n}"), range(EACH)))
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    return pid
