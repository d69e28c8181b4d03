"""Guarded: keeps what goes wrong in a hook away from the training that it watches."""

import functools
import os
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from smdebug.core.logger import get_logger

P = ParamSpec("P")
R = TypeVar("R")


class Guarded:
    """Something that is called in a training loop and must never break it.

    An error is logged once, with its traceback, and turns it off; with `raises` it is raised. In a
    process that was forked off (workers that load data) it does nothing.
    """

    def __init__(self, *, raises: bool) -> None:
        self.is_off = False
        self.logger = get_logger("hook")
        self._raises = raises
        self._pid = os.getpid()
        self._behind: Exception | None = None
        self._said: set[str] = set()

    @property
    def _is_silent(self) -> bool:
        return self.is_off or os.getpid() != self._pid

    def _fail(self, err: Exception) -> None:
        """Turn off, and say why; safe on any thread."""
        if not self.is_off:
            self.is_off = True
            self.logger.error(
                "The hook is off for the rest of the training job: %s: %s",
                *(type(err).__name__, err),
                exc_info=err,
            )

    def _fail_behind(self, err: Exception) -> None:
        """Take an error of the writing thread; with `raises` the next call raises it."""
        self._behind = err
        self._fail(err)

    def _raise_what_went_wrong_behind(self) -> None:
        if self._raises and self._behind is not None and os.getpid() == self._pid:
            behind, self._behind = self._behind, None
            raise behind

    def _warn_once(self, subject: str, text: str) -> None:
        """Log a warning, once for each subject."""
        if subject not in self._said:
            self._said.add(subject)
            self.logger.warning(text)


def guarded(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], R | None]:
    """Make a method of a `Guarded` one that cannot break the training."""

    @functools.wraps(method)
    def call(self: Guarded, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        if self._is_silent:
            self._raise_what_went_wrong_behind()
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as err:
            self._fail(err)
            if self._raises:
                raise
            return None

    return call
