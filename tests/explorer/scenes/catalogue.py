"""All scenes, and which of their operations meet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from tests.explorer.scenes.absent import ABSENT
from tests.explorer.scenes.displaced import DISPLACED
from tests.explorer.scenes.held import HELD
from tests.explorer.scenes.jobs import JOBS
from tests.explorer.scenes.limited import LIMITED
from tests.explorer.scenes.outside import OUTSIDE
from tests.explorer.scenes.replicated import REPLICATED
from tests.explorer.scenes.scene import Scene
from tests.explorer.scenes.scheduled import SCHEDULED
from tests.explorer.scenes.waiting import WAITING

SCENES = {
    scene.name: scene for scene in (HELD, WAITING, LIMITED, SCHEDULED, DISPLACED, JOBS, OUTSIDE, REPLICATED, ABSENT)
}


def pairs(scene: Scene) -> Iterator[tuple[str, ...]]:
    """Return all pairs of operations of a scene; each also meets itself."""
    names = [operation.name for operation in scene.operations]
    return combinations_with_replacement(names, 2)
