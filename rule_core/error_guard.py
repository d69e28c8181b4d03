"""FailSafe: keeps the errors of a hook away from the training."""

import functools
import os
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from rule_core.logger import get_logger

P = ParamSpec("P")
R = TypeVar("R")


class FailSafe:
    """Base class of objects that run in a training loop and must never break it.

    An error is logged once, with its traceback, and disables the object; with `raises` it is
    raised. In forked processes (workers that load data) the object does nothing.

    Attributes
    ----------
    NOUN
        What the log calls the object.
    GUARDED
        The methods of a class whose errors do not break the training: what frameworks and users
        call. Other names of the same methods are guarded as well.
    """

    NOUN: ClassVar[str] = "hook"
    GUARDED: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Guard the methods that the class names."""
        super().__init_subclass__(**kwargs)
        own = dict(vars(cls))
        guards = {own[name]: _guarded(own[name]) for name in own.get("GUARDED", ())}
        for name, value in own.items():
            if isinstance(value, FunctionType) and value in guards:
                setattr(cls, name, guards[value])

    def __init__(self, *, raises: bool) -> None:
        self.is_off = False
        self.logger = get_logger("hook")
        self._raises = raises
        self._pid = os.getpid()
        self._background_error: Exception | None = None
        self._warned: set[str] = set()

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process, not its parent, created the object."""
        return os.getpid() == self._pid

    @property
    def _is_inactive(self) -> bool:
        return self.is_off or not self.is_of_this_process

    def _fail(self, err: Exception) -> None:
        """Disable the object and log why; safe on any thread."""
        if not self.is_off:
            self.is_off = True
            self.logger.error(
                "The %s is off for the rest of the training job: %s: %s",
                *(self.NOUN, type(err).__name__, err),
                exc_info=err,
            )

    def _fail_in_background(self, err: Exception) -> None:
        """Handle an error of the writing thread; with `raises` the next call raises it."""
        self._background_error = err
        self._fail(err)

    def _raise_background_error(self) -> None:
        if self._raises and self._background_error is not None and self.is_of_this_process:
            error, self._background_error = self._background_error, None
            raise error

    def _warn_once(self, subject: str, text: str) -> None:
        """Log a warning once per subject."""
        if subject not in self._warned:
            self._warned.add(subject)
            self.logger.warning(text)


def _guarded(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], R | None]:
    """Return a method of a `FailSafe` whose errors do not break the training."""

    # Every event of every step goes through here, so properties are not used.
    @functools.wraps(method)
    def call(self: FailSafe, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        if self.is_off or os.getpid() != self._pid:
            self._raise_background_error()
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as err:  # a hook must never break the training
            self._fail(err)
            if self._raises:
                raise
            return None

    return call
