"""ProcessState: process-wide settings, saved and restored around each rule."""

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ProcessState:
    """The process-wide settings of one rule, saved and restored around each call.

    They are the warning filters, ``sys.path``, the environment, the working folder, and settings
    in context variables: decimal arithmetic, and numpy's print options and handling of
    floating-point errors (from numpy 2 on). Rules share all other process-wide state, such as
    signal handlers and the global random generators.
    """

    def __init__(self) -> None:
        self._context = Context()  # an empty one: a copy would share mutable values
        self._saved: _Settings | None = None

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` with the settings of the rule and return its result."""
        before = _settings()
        if self._saved is not None:
            _restore(self._saved, before)
        try:
            return self._context.run(function, *args, **kwargs)
        finally:
            self._saved = _settings()
            if self._saved == before:
                self._saved = None
            else:
                _restore(before, self._saved)


class _Settings(NamedTuple):
    """The process-wide settings at one time."""

    filters: list[Any]
    path: list[str]
    environment: dict[Any, Any]
    folder: str


def _settings() -> _Settings:
    """Return the current settings; called twice at every step of every custom rule."""
    # A copy through the public interface takes fifty times as long.
    environment = os.environ._data.copy()  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    try:
        folder = os.getcwd()  # noqa: PTH109 - takes a fifth of the time
    except OSError:  # it was removed
        folder = ""
    return _Settings(list(warnings.filters), sys.path[:], environment, folder)


def _restore(target: _Settings, current: _Settings) -> None:
    """Restore the settings `target`."""
    if target.filters != current.filters:
        warnings.filters[:] = target.filters  # type: ignore[index]  # in fact a list
        with warnings.catch_warnings():  # resets the record of warnings shown once
            pass
    sys.path[:] = target.path
    for key in current.environment.keys() - target.environment.keys():
        del os.environ[os.fsdecode(key)]
    for key, value in target.environment.items() - current.environment.items():
        os.environ[os.fsdecode(key)] = os.fsdecode(value)
    if target.folder != current.folder:
        with suppress(OSError):  # a folder that was removed cannot be restored
            os.chdir(target.folder)
