"""Attributes that are computed when somebody first looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  (it is used as `property` is)
    """As `functools.cached_property`, without the lock that Python 3.11 takes at each first look: thousands of
    schedules that are planned for the first time have a dozen of them each. Whoever comes meanwhile computes the same.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value: T = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
