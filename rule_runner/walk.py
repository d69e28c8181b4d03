"""Walk: what an evaluation judges of a trial, step by step, and what it waits for."""

from collections.abc import Iterator, Sequence
from typing import Protocol


class Walk(Protocol):
    """What there is to judge of a trial, in the order in which it is judged."""

    @property
    def begun(self) -> bool:
        """Whether there is what rules need to be made."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the trial has ended and all its files were looked for."""
        ...

    @property
    def ending(self) -> bool:
        """Whether the trial has ended, and files of slow workers are looked for."""
        ...

    @property
    def steps(self) -> Sequence[int]:
        """The steps that are known and can be read, ascending."""
        ...

    @property
    def all_steps(self) -> Sequence[int]:
        """The steps that are known, ascending."""
        ...

    def look(self) -> bool:
        """Look once for files; say if anything is new.

        Raises
        ------
        StorageUnavailableError
            If a store cannot be asked, unless it has answered before and may do so again.
        """
        ...

    def ready(self, after: int) -> Iterator[int]:
        """Yield the steps after `after` that can be judged now, ascending."""
        ...

    def readable(self, step: int) -> bool:
        """Say whether a step that is ready can be read."""
        ...

    def missing_workers(self, step: int) -> list[str]:
        """Return the workers that a step that can be judged lacks."""
        ...

    def late(self) -> list[int]:
        """Return the steps that came when a later one was ready already, ascending."""
        ...

    def lost_files(self) -> int:
        """Return how many files came after the trial was taken for ended."""
        ...

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each thing that is wrong with the trial, for the results."""
        ...

    def awaited(self, after: int) -> str:
        """Say what is waited for, for people."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of what can be asked for."""
        ...

    def holds(self) -> str:
        """Say what the trial holds, in a sentence without its subject."""
        ...
