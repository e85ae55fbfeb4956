"""Answer requests and notes from child processes through the attempts' backends, in the worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from rota.core.progress.control_flow import Cancelled
from rota.engine.isolation.child_backend import ChildAnswer, ChildNotes, ChildRequest, described, refusal_of
from rota.errors import Invalid, RotaError

if TYPE_CHECKING:
    from rota.engine.handlers.attempt import Attempt
    from rota.engine.handlers.context_backend import WorkerBackend


log = logging.getLogger("rota.worker")


def take_notes(backend: WorkerBackend, body: bytes) -> None:
    """Pass the notes in `body` to the backend."""
    notes = msgspec.json.decode(body, type=ChildNotes)
    for age, level, logger, text in notes.lines:
        backend.say(level, logger, text, age=age / 1_000_000)
    if notes.progress is not None:
        backend.progress(*notes.progress, None)
    for step, (done, summary) in notes.steps.items():
        try:
            backend.progress(done, summary, step)
        except Invalid as error:
            backend.say(30, "rota", str(error))  # too late to raise it in the handler


async def answer(backend: WorkerBackend, attempt: Attempt, body: bytes) -> tuple[int, bytes]:
    """Carry out one request; return its number and the encoded answer."""
    request = msgspec.json.decode(body, type=ChildRequest)
    try:
        reply = await _answer(backend, attempt, request)
    except (RotaError, Cancelled) as error:
        reply = refusal_of(error)
    except Exception as error:  # the child waits for an answer, whatever went wrong
        log.exception("a request of run %s failed", attempt.claim.run_id)
        reply = refusal_of(error)
    return request.no, msgspec.json.encode(reply)


async def _answer(backend: WorkerBackend, attempt: Attempt, request: ChildRequest) -> ChildAnswer:
    match request.verb:
        case "open_step":
            return ChildAnswer(opened=await backend.open_step(request.id, interruptible=request.interruptible))
        case "close_step":
            await backend.keep_result(request.id, request.text or "null")
        case "leave_step":
            await backend.keep_error(request.id, described(request.text))
        case "give_up_step":
            backend.give_up_step(request.id)
        case "skip_step":
            backend.skip_step(request.id, msgspec.json.decode(request.text or "null", type=str | None))
        case "flush":
            await backend.flush()
        case "unwritten_notes":
            return ChildAnswer(notes=backend.unwritten_notes())
        case "parents":
            return ChildAnswer(parents=list(await backend.parents()))
        case "finished":
            backend.finish()
    return ChildAnswer()
