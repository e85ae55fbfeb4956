"""A web service that hands slow work to rota, and shows rota's dashboard below /jobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException

from rota import Context, NotFound, Rota, every

jobs = Rota()


@jobs.job(timeout="1m", max_attempts=3)
async def thumbnail(ctx: Context, picture: str) -> dict[str, str]:
    await ctx.progress(50, "shrinking")
    return {"file": f"{picture}.small.png"}


@jobs.job
def sweep() -> None:
    """Forget thumbnails that nobody asked for. A function runs in a thread: it may take its time."""


jobs.schedule("sweep", sweep, every("1h"))


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with jobs.running():  # planner, reaper and a worker, until the server stops
        yield


web = FastAPI(lifespan=lifespan)


@web.post("/thumbnails", status_code=202)
async def make(picture: str) -> dict[str, str]:
    return {"run": (await thumbnail.aenqueue(picture=picture)).id}


@web.get("/thumbnails/{run}")
async def show(run: str) -> dict[str, object]:
    try:
        found = await (await jobs.connect()).get(run)
    except NotFound as error:
        raise HTTPException(404, str(error)) from error
    return {"state": found.state, "result": found.result}


web.mount("/jobs", jobs.asgi())
