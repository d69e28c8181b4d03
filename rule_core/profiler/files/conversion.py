"""Converted: the files of a profiler that a file of another tool was converted to."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from rule_core.exceptions import TrialFileError
from rule_core.profiler.files.file_problems import lasting_reason
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError

T = TypeVar("T")


class NumberedKey(NamedTuple):
    """A file to convert, and a unique number for the names of the files that it becomes."""

    number: int
    key: str


class Converted(NamedTuple):
    """The result of a conversion.

    Attributes
    ----------
    source
        The key of the file that `problems` are about.
    files
        Paths by the keys at which they are presented.
    problems
        A sentence for each problem.
    lost
        The number of records or whole files that are lost.
    first_us
        The start of the data in epoch microseconds; None if only the names of `files` have it.
    """

    source: str
    files: dict[str, Path]
    problems: list[str]
    lost: int
    first_us: int | None = None


def read_each(
    keys: Iterable[NumberedKey], read: Callable[[NumberedKey], T]
) -> Iterator[T | Converted]:
    """Yield what `read` returns for each file; for unreadable ones a `Converted` with the problem.

    Files that were removed meanwhile are skipped.

    Raises
    ------
    StorageUnavailableError
        If the store is temporarily unavailable.
    """
    for numbered in keys:
        try:
            yield read(numbered)
        except ObjectNotFoundError:
            continue
        except (TrialFileError, StorageUnavailableError) as err:
            yield Converted(numbered.key, {}, [lasting_reason(err)], 1)
