"""Does many things at once, tries again what fails, and goes on where it was if it is killed."""

import random
import sys

from rota import Fail, Retry, Rota, RunState

app = Rota("sqlite:///downloads.db", concurrency=20)


@app.job(max_attempts=5, backoff="1s", unique=["page"])
def download(page: int) -> int:
    if page < 0:
        raise Fail("there is no such page")
    if random.random() < 0.1:
        raise Retry(after="100ms")
    return page * 1000


def main(pages: list[int]) -> int:
    runs = [
        download.enqueue(page=page) for page in pages
    ]  # those of an earlier start that are not done yet are the same
    with app.background() as client:
        ended = [client.wait(run.id) for run in runs]
    app.close()
    for run in ended:
        print(run.payload["page"], run.state.value, run.result)
    return 0 if all(run.state is RunState.SUCCEEDED for run in ended) else 1


if __name__ == "__main__":
    sys.exit(main([int(page) for page in sys.argv[1:]]))
