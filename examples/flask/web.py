"""A web service that hands slow work to rota; the worker is a process of its own."""

from flask import Flask, abort, current_app

from rota import NotFound, Rota, SyncContext

web = Flask(__name__)
web.config["GREETING"] = "hello"

jobs = Rota()
jobs.around(web.app_context)  # handlers find `current_app`, and what extensions keep in it


@jobs.job(max_attempts=3)
def greet(ctx: SyncContext, name: str) -> str:
    ctx.log.info("greeting %s", name)
    return f"{current_app.config['GREETING']}, {name}"


@web.post("/greetings/<name>")
def create(name: str) -> tuple[dict[str, str], int]:
    return {"run": greet.enqueue(name=name).id}, 202


@web.get("/greetings/<run>")
def show(run: str) -> dict[str, object]:
    try:
        found = jobs.blocking.get(run)
    except NotFound:
        abort(404)
    return {"state": found.state, "result": found.result}
