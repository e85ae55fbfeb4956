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


def take_words(backend: WorkerBackend, body: bytes) -> None:
    """Pass the notes in `body` to the backend."""
    said = msgspec.json.decode(body, type=ChildNotes)
    for age, level, logger, text in said.lines:
        backend.say(level, logger, text, age=age / 1_000_000)
    if said.progress is not None:
        backend.progress(*said.progress, None)
    for step, (done, summary) in said.steps.items():
        try:
            backend.progress(done, summary, step)
        except Invalid as error:
            backend.say(30, "rota", str(error))  # too late to raise it in the handler


async def answer(backend: WorkerBackend, attempt: Attempt, body: bytes) -> tuple[int, bytes]:
    """Carry out one request; return its number and the encoded answer."""
    ask = msgspec.json.decode(body, type=ChildRequest)
    try:
        told = await _answer(backend, attempt, ask)
    except (RotaError, Cancelled) as error:
        told = refusal_of(error)
    except Exception as error:  # the child waits for an answer, whatever went wrong
        log.exception("what run %s asked could not be done", attempt.claim.run_id)
        told = refusal_of(error)
    return ask.no, msgspec.json.encode(told)


async def _answer(backend: WorkerBackend, attempt: Attempt, ask: ChildRequest) -> ChildAnswer:
    match ask.verb:
        case "open_step":
            return ChildAnswer(opened=await backend.open_step(ask.id, interruptible=ask.interruptible))
        case "close_step":
            await backend.keep_result(ask.id, ask.text or "null")
        case "leave_step":
            await backend.keep_error(ask.id, described(ask.text))
        case "give_up_step":
            backend.give_up_step(ask.id)
        case "skip_step":
            backend.skip_step(ask.id, msgspec.json.decode(ask.text or "null", type=str | None))
        case "flush":
            await backend.flush()
        case "last_words":
            return ChildAnswer(notes=backend.last_words())
        case "parents":
            return ChildAnswer(parents=list(await backend.parents()))
        case "finished":
            backend.finish()
    return ChildAnswer()
