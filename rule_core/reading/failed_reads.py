"""FailedReads: failed reads of the step being evaluated, shared by all rules."""

from collections.abc import Hashable
from typing import Final

from rule_core.exceptions import TrialFileError
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.wait_budget import WaitEndedError

UNREADABLE: Final = (
    TrialFileError,
    ObjectNotFoundError,
    StorageUnavailableError,
    WaitEndedError,
)


class FailedReads:
    """Remembers failed reads of event files until another step is evaluated.

    If the store cannot return a file, all of its tensors fail; a damaged record fails alone.
    """

    def __init__(self) -> None:
        self._step: int | None = None
        self._errors: dict[Hashable, Exception] = {}

    def turn_to(self, step: int | None) -> None:
        """Forget the failures of other steps; with None, outside of steps, keep none."""
        if step != self._step:
            self._step = step
            self._errors.clear()

    def check(self, key: str, content: Hashable) -> None:
        """Raise the error of an earlier read at this step, if it failed.

        Parameters
        ----------
        key, content
            The event file, and the part of it to read.
        """
        if self._errors:
            err = self._errors.get(key) or self._errors.get((key, content))
            if err is not None:
                raise err.with_traceback(None)

    def add(self, key: str, content: Hashable, err: Exception) -> None:
        """Remember the error of a read; see `check`."""
        if self._step is not None:
            self._errors[(key, content) if isinstance(err, TrialFileError) else key] = err
