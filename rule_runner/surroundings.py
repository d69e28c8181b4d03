"""Surroundings: what of the process a rule may set as it likes, and no other rule sees."""

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Surroundings:
    """What one rule has to itself: it finds it as it left it, and nobody else does.

    These are the filters of warnings, ``sys.path``, the environment, the working folder, and what
    hangs on a context of its own: numpy's handling of floating-point errors (from numpy 2 on) and
    its print options, decimal arithmetic. Whatever else a process has once, such as signal
    handlers and random numbers drawn without a generator of one's own, its rules share.
    """

    def __init__(self) -> None:
        self._context = Context()  # an empty one: a copy would share what its values hold
        self._left: _Settings | None = None

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `function` does, called amid the rule's own settings."""
        before = _settings()
        if self._left is not None:
            _put_back(self._left, before)
        try:
            return self._context.run(function, *args, **kwargs)
        finally:
            self._left = _settings()
            if self._left == before:
                self._left = None
            else:
                _put_back(before, self._left)


class _Settings(NamedTuple):
    """What the whole process has in common, at one time."""

    filters: list[Any]
    path: list[str]
    environment: dict[Any, Any]
    folder: str


def _settings() -> _Settings:
    """Return the settings as they are; this is done twice at every step of every rule."""
    # A copy by way of what is public takes fifty times as long.
    environment = os.environ._data.copy()  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        folder = os.getcwd()  # noqa: PTH109 - takes a fifth of the time
    except OSError:  # it is gone
        folder = ""
    return _Settings(list(warnings.filters), sys.path[:], environment, folder)


def _put_back(wanted: _Settings, now: _Settings) -> None:
    """Make the settings those that are `wanted`."""
    if wanted.filters != now.filters:
        warnings.filters[:] = wanted.filters  # type: ignore[index]  # a list all the same
        with warnings.catch_warnings():  # forgets what was said once, as other filters must
            pass
    sys.path[:] = wanted.path
    for key in now.environment.keys() - wanted.environment.keys():
        del os.environ[os.fsdecode(key)]
    for key, value in wanted.environment.items() - now.environment.items():
        os.environ[os.fsdecode(key)] = os.fsdecode(value)
    if wanted.folder != now.folder:
        with suppress(OSError):  # it is gone by now: whoever wants it learns that
            os.chdir(wanted.folder)
