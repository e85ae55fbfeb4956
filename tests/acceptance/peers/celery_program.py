"""Run the Celery program of a page, `shop.py` in this folder, with a worker: what beat sends runs once.

Prints the names of entries whose task ran, and those of tasks that the worker keeps for later.
"""

import sys
from importlib import import_module

from celery.beat import Scheduler
from celery.contrib.testing.worker import start_worker

sys.path.insert(0, ".")
app = import_module("shop").app
beat = Scheduler(app=app)
with start_worker(app, pool="solo", perform_ping_check=False):
    sent = {name: beat.apply_async(entry, advance=False) for name, entry in beat.schedule.items()}
    for name, result in sent.items():
        result.get(timeout=60)
        print(name)
    ((later,),) = app.control.inspect(timeout=60, limit=1).scheduled().values()
    print(later["request"]["name"].removeprefix("shop."))
