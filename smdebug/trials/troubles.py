"""Troubles: what is wrong with the files of one trial, and which steps cannot be read for it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from smdebug.core.locations import StepFile
from smdebug.core.logger import get_logger
from smdebug.exceptions import CorruptFileError

PROBLEMS_KEPT: Final = 1000


class Unread(NamedTuple):
    """An index file that is listed and could not be read; `passes` if it may be read later."""

    key: str
    passes: bool


class Troubles:
    """The problems of one trial's files; each is said once.

    Attributes
    ----------
    problems
        What is wrong, by key; at most `PROBLEMS_KEPT`.
    unread
        Index files that could not be read, by step and worker.
    """

    def __init__(self, uri: str) -> None:
        self.problems: dict[str, str] = {}
        self.unread: dict[int, dict[str, Unread]] = {}
        self._uri = uri
        self._places: dict[str, StepFile] = {}

    def report(self, key: str, reason: object, place: StepFile | None = None) -> None:
        """Say once what is wrong with a file; `place` if a step cannot be read for it."""
        text = str(reason)
        if self.problems.get(key) != text:
            if len(self.problems) < PROBLEMS_KEPT:
                self.problems[key] = text
                if place is not None:
                    self._places[key] = place
            get_logger().warning("Trial %r: %s", self._uri, f"{key!r}: {text}")

    def cannot_read(self, key: str, place: StepFile, err: Exception) -> None:
        """Take note of an index file that could not be read."""
        self.report(key, err, place)
        passes = getattr(err, "transient", not isinstance(err, CorruptFileError))
        self.unread.setdefault(place.step, {})[place.worker] = Unread(key, passes)

    def unread_keys(self) -> Iterator[str]:
        """Yield the index files that could not be read."""
        for workers in self.unread.values():
            for unread in workers.values():
                yield unread.key

    def mended(self, key: str, place: StepFile) -> None:
        """Forget what was wrong with an index file: it was read."""
        if self.problems:
            self.problems.pop(key, None)
        workers = self.unread.get(place.step)
        if workers is not None:
            workers.pop(place.worker, None)
            if not workers:
                del self.unread[place.step]

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each problem."""
        for key, text in self.problems.items():
            place = self._places.get(key)
            if place is None:
                yield f"{key}: {text}"
            else:
                yield f"Step {place.step} of worker {place.worker!r} is unreadable. {text}"
