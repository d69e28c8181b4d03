"""TrialFileProblems and FailedReads: files that cannot be read, for users and for all rules."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from rule_core.exceptions import CorruptFileError, TrialFileError
from rule_core.format.paths import StepFile
from rule_core.logger import warn_once
from rule_core.model.secret_names import without_secrets
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.wait_budget import WaitEndedError

PROBLEMS_KEPT: Final = 1000
UNREADABLE: Final = (TrialFileError, ObjectNotFoundError, StorageUnavailableError, WaitEndedError)


class Unread(NamedTuple):
    """An index file that could not be read; `is_transient` if a retry may succeed."""

    key: str
    is_transient: bool


class TrialFileProblems:
    """The problems of one trial's files; each is logged once.

    Attributes
    ----------
    problems
        The problem of each key; at most `PROBLEMS_KEPT`.
    unread
        Index files that could not be read, by step and worker.
    """

    def __init__(self, uri: str) -> None:
        self.problems: dict[str, str] = {}
        self.unread: dict[int, dict[str, Unread]] = {}
        self._uri = uri
        self._step_files: dict[str, StepFile] = {}

    def report(self, key: str, reason: object, step_file: StepFile | None = None) -> None:
        """Record a problem and log it once; `step_file` if it makes a step unreadable."""
        text = without_secrets(f"{key}\0{reason}").partition("\0")[2]
        if self.problems.get(key) != text:
            if len(self.problems) < PROBLEMS_KEPT:
                self.problems[key] = text
                if step_file is not None:
                    self._step_files[key] = step_file
            warn_once(self._uri, key, text)

    def cannot_read(self, key: str, step_file: StepFile, err: Exception) -> None:
        """Record an index file that could not be read."""
        self.report(key, err, step_file)
        is_transient = getattr(err, "transient", not isinstance(err, CorruptFileError))
        self.unread.setdefault(step_file.step, {})[step_file.worker] = Unread(key, is_transient)

    def cannot_read_tensor(self, key: str, step_file: StepFile, err: Exception) -> None:
        """Record a tensor that could not be read; only the first one of each file is logged."""
        if key not in self.problems:
            self.report(key, err, step_file)

    def unread_keys(self) -> Iterator[str]:
        """Yield the index files that could not be read."""
        for workers in self.unread.values():
            for unread in workers.values():
                yield unread.key

    def mended(self, key: str, step_file: StepFile) -> None:
        """Forget the problem of an index file that could be read at last."""
        if self.problems:
            self.problems.pop(key, None)
        workers = self.unread.get(step_file.step)
        if workers is not None:
            workers.pop(step_file.worker, None)
            if not workers:
                del self.unread[step_file.step]

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each problem."""
        for key, text in self.problems.items():
            step_file = self._step_files.get(key)
            if step_file is None:
                yield f"{key}: {text}"
            else:
                yield f"Step {step_file.step} of worker {step_file.worker!r} is unreadable. {text}"


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
        """Raise the error of an earlier read at this step if it failed.

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
        """Remember the error of a read at this step; see `check`."""
        if self._step is not None:
            self._errors[(key, content) if isinstance(err, TrialFileError) else key] = err

    @contextmanager
    def remembered(self, key: str, content: Hashable) -> Iterator[None]:
        """Check, and remember the error of the block; for reads that are rare."""
        self.check(key, content)
        try:
            yield
        except UNREADABLE as err:
            self.add(key, content, err)
            raise
