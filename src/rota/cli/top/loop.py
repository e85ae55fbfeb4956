"""The loop of `rota top`: reads data, draws it, and carries out what keys request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.cli.connect import actor
from rota.cli.terminal.format import short_id
from rota.cli.terminal.progress import RunSnapshot, read_with_relations
from rota.cli.terminal.tables import terminal
from rota.cli.top.canvas import Frame, picture, run_picture
from rota.cli.top.data import SHORTEST, Snapshot, read_snapshot
from rota.cli.top.keys import Action, View, pressed
from rota.cli.top.panes import rows_of
from rota.cli.top.run_page import run_lines
from rota.cli.top.screen import FullScreen
from rota.client.client import Client
from rota.errors import RotaError, SchemaOutdated, Unavailable, UnknownRun
from rota.values.durations import span

_TICK = 1.0
_SILENCE = 3.0


class TopLoop:
    def __init__(self, client: Client, where: str, every: timedelta, screen: FullScreen) -> None:
        self._client = client
        self._screen = screen
        self._where = where
        self._every = every
        self._view = View()
        self._seen: Snapshot | None = None
        self._run: RunSnapshot | None = None
        self._asked_at = self._seen_at = 0.0
        self._trouble: str | None = None
        self._draw_again = asyncio.Event()
        self._look_again = asyncio.Event()
        self._code: int | None = None
        self._doing: set[asyncio.Task[None]] = set()

    async def stay(self) -> int:
        """Run until a key or a signal ends it; return the exit code.

        Errors of the first read are raised; after that, the database may be unavailable for any time.
        """
        await self._look()
        with self._screen.taken(), self._screen.heard(self._press, self._draw_again.set, self._end):
            looking = self._begin(self._poll())
            try:
                while self._code is None:
                    self._draw()
                    await self._rest(looking)
            finally:
                await self._stop()
        return self._code

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)
        return task

    async def _stop(self) -> None:
        for task in (doing := [*self._doing]):
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)

    async def _rest(self, looking: asyncio.Task[None]) -> None:
        """Wait until there is something to draw, at most a second, after which the ages have changed."""
        waiting = self._begin(_until(self._draw_again))
        await asyncio.wait([waiting, looking], timeout=_TICK, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        self._draw_again.clear()
        if looking.done():
            looking.result()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(SHORTEST.total_seconds())
            rest = None if self._view.paused else (self._every - SHORTEST).total_seconds()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look_again.wait(), rest)
            self._look_again.clear()
            try:
                await self._look()
                self._trouble = None
            except SchemaOutdated:
                raise
            except Unavailable as error:
                self._trouble = error.message
            self._draw_again.set()

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._asked_at = loop.time()
        if self._view.paused:
            self._run = await self._shown_run()
            return
        snapshot = await read_snapshot(self._client)
        self._run = await self._shown_run()
        self._seen, self._seen_at = snapshot, loop.time()

    async def _shown_run(self) -> RunSnapshot | None:
        id = self._view.shown
        if id is None:
            return None
        try:
            return await read_with_relations(self._client, id)
        except UnknownRun as error:
            self._view = self._view.changed(shown=None, message=error.message)
            return None

    def _draw(self) -> None:
        assert self._seen is not None
        width, height = self._screen.size
        frame = Frame(where=self._where, every=self._every, away=self._away())
        if self._view.shown is None or self._view.helping:
            lines = picture(self._seen, self._now(self._seen), self._view, frame, width, height)
        else:
            is_there = self._run is not None and self._run.run.id == self._view.shown
            page = run_lines(self._run, terminal(), width) if self._run and is_there else []
            most = max(0, len(page) - max(1, height - 2))
            self._view = self._view.changed(offset=min(self._view.offset, most)) if page else self._view
            lines = run_picture(page, self._view, frame, width, height)
        self._screen.draw(lines)

    def _now(self, snapshot: Snapshot) -> datetime:
        """Return the time of the database's clock, extrapolated from the last snapshot."""
        if self._view.paused:
            return snapshot.overview.at
        return snapshot.overview.at + timedelta(seconds=asyncio.get_running_loop().time() - self._seen_at)

    def _away(self) -> str | None:
        silent = asyncio.get_running_loop().time() - self._seen_at
        if self._trouble is not None:
            return f"unavailable for {span(timedelta(seconds=silent))}, retrying: {self._trouble}"
        waits_since = self._asked_at if self._asked_at > self._seen_at else None
        if waits_since is None or self._view.paused or silent < self._every.total_seconds() + _SILENCE:
            return None
        return f"no answer for {span(timedelta(seconds=silent))}"

    def _press(self, key: str) -> None:
        assert self._seen is not None
        before = self._view
        self._view, action = pressed(before, key, rows_of(before.pane, self._seen))
        if action is not None and action.verb == "quit":
            self._end(0)
        elif action is not None:
            self._begin(self._do(action))
        if (self._view.shown, self._view.paused) != (before.shown, before.paused):
            self._look_again.set()
        self._draw_again.set()

    def _end(self, code: int) -> None:
        self._code = code
        self._draw_again.set()

    async def _do(self, action: Action) -> None:
        try:
            message = await (self._cancel(action.run) if action.verb == "cancel" else self._retry(action.run))
        except RotaError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
        self._view = msgspec.structs.replace(self._view, message=message)
        self._look_again.set()
        self._draw_again.set()

    async def _cancel(self, id: str) -> str:
        return f"run {short_id(id)} is {(await self._client.cancel(id, actor=actor())).state.value}"

    async def _retry(self, id: str) -> str:
        return f"run {short_id(id)} is retried, as {short_id((await self._client.retry(id, actor=actor())).id)}"


async def _until(event: asyncio.Event) -> None:
    await event.wait()
