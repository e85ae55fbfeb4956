"""Examples of answers: those of the operations, those of others with the same shape, and those of the shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rota.api.operations.operation import Operation
from rota.verbs.examples import OF_SHAPES


class Examples:
    """Examples that operations have in common."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._of_shapes = {
            operation.answers: operation.gives for operation in operations if operation.gives is not None
        }

    def of(self, operation: Operation) -> Any:
        """Return an example of an operation's answer, or of an item of its list; None if there is none."""
        if operation.gives is not None or operation.answers is None:
            return operation.gives
        shape = operation.answers
        return self._of_shapes.get(shape, OF_SHAPES.get(getattr(shape, "__name__", "")))


def problem_of(status: int, title: str, code: str, detail: str) -> dict[str, Any]:
    """Return an example of a problem."""
    return {"type": f"urn:rota:problem:{code}", "title": title, "status": status, "code": code, "detail": detail}
