"""Damages: what is wrong with the profiler's files, each said once."""

from smdebug.core.logger import get_logger

PROBLEMS_KEPT = 1000


class Damages:
    """The problems of one training job's files.

    Attributes
    ----------
    problems
        What is wrong, by key; at most `PROBLEMS_KEPT`.
    """

    def __init__(self, uri: str) -> None:
        self.problems: dict[str, str] = {}
        self._uri = uri
        self._counts: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many lines, events or whole files were passed over."""
        return sum(self._counts.values())

    def report(self, key: str, text: str, count: int = 1) -> None:
        """Say what is wrong with a file; `count` parts of it are lost."""
        self._counts[key] = count
        if self.problems.get(key) == text:
            return
        if key in self.problems or len(self.problems) < PROBLEMS_KEPT:
            self.problems[key] = text
        get_logger().warning("Trial %r: %s", self._uri, f"{key!r}: {text}")

    def mended(self, key: str) -> None:
        """Forget what was wrong with a file: it could be read."""
        self._counts.pop(key, None)
        self.problems.pop(key, None)
