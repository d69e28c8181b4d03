"""What happens when code fails: `OnError` undoes, `Contained` and `attempt` continue.

Use `Contained` and `attempt` for code that may raise anything, such as a rule's or a framework's.
If the exceptions are known, name them in an ``except`` clause instead.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class OnError:
    """Calls a function if the ``with`` block fails, then lets the exception continue.

    This includes exceptions that end the process, such as `KeyboardInterrupt`.

    >>> undone = []
    >>> with OnError(undone.append, "a file"):
    ...     raise SystemExit(3)
    Traceback (most recent call last):
        ...
    SystemExit: 3
    >>> undone
    ['a file']
    """

    def __init__(self, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        self._undo = partial(call, *args, **kwargs)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self._undo()


def remove_on_error(path: str | os.PathLike[str], *, dir_fd: int | None = None) -> OnError:
    """Remove a file if the ``with`` block fails; errors of the removal are ignored."""

    def remove() -> None:
        with suppress(OSError):
            os.unlink(path, dir_fd=dir_fd)

    return OnError(remove)


class Contained:
    """Ends the ``with`` block at an `Exception`, and passes it to a function.

    Exceptions that end the process, such as `KeyboardInterrupt`, continue.

    Parameters
    ----------
    report
        Called with the exception.
    reraise
        Whether the exception continues after the report.

    Examples
    --------
    >>> with Contained(print):
    ...     raise ValueError("is reported")
    is reported
    >>> with Contained(print):
    ...     raise SystemExit(3)
    Traceback (most recent call last):
        ...
    SystemExit: 3
    """

    def __init__(self, report: Callable[[Exception], object], *, reraise: bool = False) -> None:
        self._report = report
        self._reraise = reraise

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._report(error)
        return not self._reraise


def attempt(call: Callable[[], T], failed: Callable[[Exception], R]) -> T | R:
    """Return the result of `call`, or that of `failed` with the `Exception` that `call` raises.

    >>> attempt(lambda: 7 // 2, repr), attempt(lambda: 7 // 0, repr)
    (3, "ZeroDivisionError('integer division or modulo by zero')")
    """
    try:
        return call()
    except Exception as err:  # noqa: BLE001 - `failed` decides what the exception means
        return failed(err)


def text_of(value: object) -> str | None:
    """Return the text of a value; None if its class, which may be a rule's, cannot make it."""
    return attempt(lambda: str(value), lambda _: None)


def words_of(err: BaseException) -> str:
    """Return the text of an exception of any class on one line, without the full stop."""
    return " ".join((text_of(err) or "").split()).rstrip(".")
