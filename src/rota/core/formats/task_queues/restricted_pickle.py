"""Reader of pickles that runs nothing: classes become inert stand-ins, and only those on a list are accepted."""

from __future__ import annotations

import io
import pickle  # only its parser; `find_class` returns nothing that acts
import pickletools
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

_MOST_BYTES = 1_000_000
_PLACED = ("PUT", "BINPUT", "LONG_BINPUT")


class Stored:
    """Stand-in for an object of another library: the name of its class, and its state."""

    name_of_class = ""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) == 2:  # (dict, slots)
            state = {**(state[0] or {}), **(state[1] or {})}
        if not isinstance(state, dict):
            raise ValueError(f"the state of a {self.name_of_class} is a {type(state).__name__}")
        self.state = state


_VALUES: dict[tuple[str, str], Any] = {
    ("datetime", "datetime"): datetime,
    ("datetime", "date"): date,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
}


def read_pickle(data: bytes, classes: Mapping[str, tuple[str, ...]]) -> Any:
    """Return what a pickle holds; `classes`: those of other libraries that may occur, by module.

    Raise `ValueError` with the name of any other. No module is imported, and nothing of the pickle is called: classes
    are stand-ins, and the few functions that it may name are known here.
    """
    if len(data) > _MOST_BYTES:
        raise ValueError(f"its state has more than {_MOST_BYTES} bytes")
    _require_near_places(data)
    try:
        return _Reader(io.BytesIO(data), classes).load()
    except ValueError:
        raise
    except Exception as error:  # a damaged pickle fails anywhere
        raise ValueError(f"its state is no pickle that can be read: {error}") from None


def _require_near_places(data: bytes) -> None:
    """Refuse places of the memo that no pickle of this size needs: the parser takes memory up to the farthest one."""
    try:
        places = [int(place or 0) for step, place, _ in pickletools.genops(data) if step.name in _PLACED]
    except Exception as error:
        raise ValueError(f"its state is no pickle that can be read: {error}") from None
    if max(places, default=0) > len(data):
        raise ValueError("its state is no pickle that can be read: it has a place beyond its end")


class _Reader(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, classes: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(source)
        self._classes = classes
        self._made: dict[str, type[Stored]] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _VALUES:
            return _VALUES[module, name]
        if (module, name) == ("zoneinfo", "ZoneInfo"):
            return _ZONE_INFO
        if (module, name) == ("builtins", "getattr"):
            return _GETATTR
        if module == "pytz" and name in ("_p", "_UTC"):
            return _ZONE
        if name in self._classes.get(module, ()):
            return self._made.setdefault(name, type(name, (Stored,), {"name_of_class": name}))
        raise ValueError(f"its state has a {module}.{name}, which is not read: a pickle can run anything")

    def persistent_load(self, id: Any) -> Any:
        raise ValueError("its state refers to objects outside of it")


class _Function:
    """Function that a pickle may name and call, but not change: it could set the defaults of a function of Python's, by
    which the next pickle would be read."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: object) -> Any:
        return self._call(*arguments)

    def __setstate__(self, _state: object) -> None:
        raise ValueError("its state changes a function, which is not read")


def _unreadable(*_arguments: object) -> Any:
    raise ValueError("its state makes a zone in a way that is not read")


def _zone_reader(owner: object, name: object) -> Callable[..., Any]:
    if owner is not _ZONE_INFO or name != "_unpickle":
        raise ValueError(f"its state asks for the attribute {name!r:.60}, which is not read")
    return _ZONE


def _zone(key: object = "UTC", *_details: object) -> ZoneInfo:
    return ZoneInfo(str(key))


_ZONE_INFO, _GETATTR, _ZONE = _Function(_unreadable), _Function(_zone_reader), _Function(_zone)
"""`zoneinfo.ZoneInfo`, of which pickles take the attribute `_unpickle`; `getattr`, by which they do; the attribute."""
