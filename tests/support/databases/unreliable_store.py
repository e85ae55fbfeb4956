"""A store whose answers are lost, late, or never come, as over a bad network."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeVar

from rota.core.progress.notes import Notes
from rota.core.runs.claim import Claim, ClaimRequest, OrderedRequest
from rota.core.runs.outcome import Report
from rota.errors import Unavailable
from rota.store import Store
from rota.store.progress.notes import NoteStore
from rota.store.runs.report import Reported
from rota.store.workers.claims import OrderedClaims

T = TypeVar("T")
Fault = Literal["refused", "unanswered", "broken"]


class ShakyStore(Store):
    """`refused`: not done, an error. `unanswered`: done, yet an error. `broken`: an error nobody foresaw."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database, store.new_id)
        self.claim_faults: deque[Fault] = deque()
        self.report_faults: deque[Fault] = deque()
        self.claims_done = asyncio.Event()
        self.claims_answered = asyncio.Event()
        self.claims_answered.set()
        self.reports: list[Report] = []
        self.note_faults: deque[Fault] = deque()
        self.notes = ShakyNotes(self)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        claims = await self.shaken(self.claim_faults, lambda: super(ShakyStore, self).claim(request))
        if claims:
            self.claims_done.set()
        await self.claims_answered.wait()
        return claims

    async def claim_in_order(self, request: OrderedRequest) -> OrderedClaims:
        answer = await self.shaken(self.claim_faults, lambda: super(ShakyStore, self).claim_in_order(request))
        if answer.plain or answer.others:
            self.claims_done.set()
        await self.claims_answered.wait()
        return answer

    async def report(self, reports: Sequence[Report]) -> Reported:
        self.reports += reports
        return await self.shaken(self.report_faults, lambda: super(ShakyStore, self).report(reports))

    async def shaken(self, faults: deque[Fault], act: Callable[[], Awaitable[T]]) -> T:
        fault = faults.popleft() if faults else None
        if fault == "refused":
            raise Unavailable("the database is away")
        if fault == "broken":
            raise RuntimeError("a bug")
        answer = await act()
        if fault == "unanswered":
            raise Unavailable("the connection broke before the answer")
        return answer


class ShakyNotes(NoteStore):
    def __init__(self, store: ShakyStore) -> None:
        super().__init__(store.database)
        self.written: list[Notes] = []
        self._store = store

    async def write(self, notes: Notes) -> set[tuple[str, int]]:
        self.written.append(notes)
        return await self._store.shaken(self._store.note_faults, lambda: super(ShakyNotes, self).write(notes))
