"""StepSource: the steps of a trial that are ready to be judged, and those still awaited."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rule_core.model.segments import step_text
from rule_runner.results.schema import WindowTimes


class StepSource(ABC):
    """The steps of a trial, in the order in which they are judged."""

    @property
    @abstractmethod
    def begun(self) -> bool:
        """Whether the data that rule constructors need has arrived."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether the trial has ended and its last files have been listed."""

    @property
    def is_loaded(self) -> bool:
        """Whether no further steps are expected: the trial has ended, or is judged as it is."""
        return self.ended

    @property
    @abstractmethod
    def ending(self) -> bool:
        """Whether the trial has ended and files of slow workers may still arrive."""

    @property
    def may_resume(self) -> bool:
        """Whether steps may be repeated in another segment."""
        return False

    def segments(self) -> Sequence[int]:
        """Return the first global step of each segment; nothing if there is no second one."""
        return ()

    def windows(self) -> WindowTimes | None:
        """Return when the steps begin if they are windows of time, and that is known."""
        return None

    @property
    @abstractmethod
    def steps(self) -> Sequence[int]:
        """The known steps that can be read, ascending."""

    @property
    def all_steps(self) -> Sequence[int]:
        """All known steps, ascending."""
        return self.steps

    @abstractmethod
    def look(self, *, at_once: bool = False, last: bool = False) -> bool:
        """Look once for new files; return whether anything changed.

        Parameters
        ----------
        at_once
            Look even during a pause between looks.
        last
            Look at once, and treat a trial with an end mark as ended without waiting for files of
            slow workers.

        Raises
        ------
        StorageUnavailableError
            If a store does not answer, unless it has answered before and the error is transient.
        """

    def settle(self) -> bool:
        """Let the last steps be judged as they are, since nothing has come for long.

        This concerns runs whose format does not tell whether they go on. They may go on, so that
        they have not `ended`.

        Returns
        -------
        bool
            Whether that changes anything.
        """
        return False

    @abstractmethod
    def ready(self, after: int) -> Iterator[int]:
        """Yield the steps after `after` that are ready to be judged, ascending."""

    def kind(self, step: int, tensor: str | None = None) -> str:
        """Return the kind of a step, or of a tensor at it, such as its mode; "" if it is unknown.

        A rule may judge steps of some kinds only.
        """
        del step, tensor
        return ""

    def kinds(self, steps: NDArray[np.int64]) -> Mapping[str, int]:
        """Return how many of ascending steps are of each kind."""
        return Counter(map(self.kind, steps.tolist()))

    def step_name(self, step: int) -> str:
        """Return a step for people, with its number in its mode if that is another one.

        ``step 115 (training step 99)``
        """
        return f"step {step_text(step)}"

    @property
    def workers(self) -> Collection[str]:
        """The workers of the trial; empty if they are unknown."""
        return ()

    @abstractmethod
    def missing_workers(self, step: int) -> list[str] | None:
        """Return the workers whose data of a ready step is missing, sorted.

        None means that no file of the step can be read.
        """

    def late_steps(self) -> list[int]:
        """Return the steps that arrived after a later one was ready, ascending."""
        return []

    def lost_files(self) -> int:
        """Return how many files arrived after the trial was considered ended."""
        return 0

    @abstractmethod
    def notes(self) -> Iterator[str]:
        """Yield a sentence for each problem of the trial, for the results."""

    @abstractmethod
    def describe_wait(self, after: int) -> str:
        """Return what the step after `after` is waiting for, for messages."""

    def names(self) -> Sequence[str]:
        """Return the names that rules can request."""
        return []

    @abstractmethod
    def describe_contents(self) -> str:
        """Return the contents of the trial, as a sentence without its subject."""
