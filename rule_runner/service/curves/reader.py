"""CurveReader: reads the curves of a trial as they grow."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rule_core.clock import Clock
from rule_core.storage.wait_budget import WaitBudget
from rule_runner.loading.trials import check_is_there
from rule_runner.service.curves.points import CurveItem

if TYPE_CHECKING:
    from rule_runner.loading.trials import AnyTrial

LOOK_EVERY_S: Final = 1.0
LOOK_EVERY_REMOTE_S: Final = 15.0  # each look at S3 costs requests
STORAGE_WAIT_S: Final = 5.0


class CurveReader(ABC):
    """Reads the curves of one trial, a little at each call.

    Attributes
    ----------
    complete
        Whether everything that is saved has been read.
    """

    def __init__(self, clock: Clock) -> None:
        self.complete = False
        self._clock = clock
        self._deadline = clock.monotonic()
        self._waits = WaitBudget(clock, lambda: self._deadline + STORAGE_WAIT_S - clock.monotonic())
        self._looked_at = -math.inf
        self._ended = False

    @property
    @abstractmethod
    def last_step(self) -> int:
        """The last step that was read, or in a profile the time; -1 before the first."""

    @property
    @abstractmethod
    def left_out(self) -> int:
        """The number of curves that were left out."""

    @property
    def problem(self) -> str:
        """What could not be read, in a sentence; "" otherwise: damaged values are gaps."""
        return ""

    @property
    def has_points(self) -> bool:
        """Whether there are curves."""
        return any(True for _ in self.items())

    @abstractmethod
    def items(self) -> Iterator[CurveItem]:
        """Yield the curves in the order of their kinds."""

    @abstractmethod
    def read(self, seconds: float, *, ended: bool = False) -> None:
        """Read new data for some seconds; the next call continues.

        Parameters
        ----------
        ended
            Whether nothing more is written.
        """

    @abstractmethod
    def _refresh(self) -> None:
        """Look for new files."""

    def _look(self, trial: "AnyTrial", *, is_remote: bool) -> bool:
        """Look for new files, unless the last look was just now; return whether it did.

        Raises
        ------
        TrialError
            If the trial is not there.
        """
        now = self._clock.monotonic()
        pause = LOOK_EVERY_REMOTE_S if is_remote else LOOK_EVERY_S
        if self._ended or now - self._looked_at < pause:
            return False
        check_is_there(trial)
        self._refresh()
        self._looked_at = now  # after an error, the next call looks again
        return True
