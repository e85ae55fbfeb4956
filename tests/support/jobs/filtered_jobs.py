"""Jobs in child processes that do not retry every exception; declared where their functions are."""

from __future__ import annotations

from rota import Rota

app = Rota("sqlite:///never-opened.db")


@app.job(isolation="process", no_retry_on=(LookupError,))
def refused() -> None:
    raise KeyError("no such order")


@app.job(isolation="process", no_retry_on=(LookupError,))
def repeated() -> None:
    raise ConnectionError("try again")
