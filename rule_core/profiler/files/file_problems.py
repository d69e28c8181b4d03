"""ProfilerFileProblems: the problems of profiler files, each logged once."""

from rule_core.logger import warn_once
from rule_core.storage.base import StorageUnavailableError

PROBLEMS_KEPT = 1000


class ProfilerFileProblems:
    """The problems of one training job's files.

    Attributes
    ----------
    problems
        A description of each problem by file key; at most `PROBLEMS_KEPT`.
    """

    def __init__(self, uri: str) -> None:
        self.problems: dict[str, str] = {}
        self._uri = uri
        self._counts: dict[str, int] = {}

    @property
    def count(self) -> int:
        """The number of lines, events or whole files that were skipped."""
        return sum(self._counts.values())

    def report(self, key: str, text: str, count: int = 1) -> None:
        """Record and log the problem of a file; `count` parts of it are lost."""
        self._counts[key] = count
        if self.problems.get(key) == text:
            return
        if key in self.problems or len(self.problems) < PROBLEMS_KEPT:
            self.problems[key] = text
        warn_once(self._uri, key, text)

    def clear(self, key: str) -> None:
        """Drop the problem of a file that could be read after all."""
        self._counts.pop(key, None)
        self.problems.pop(key, None)


def lasting_reason(err: Exception) -> str:
    """Return the text of an error of a file; raise the error if it is temporary."""
    if isinstance(err, StorageUnavailableError) and err.transient:
        raise err
    return str(err)
