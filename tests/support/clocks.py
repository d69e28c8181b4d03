"""A clock that does not tick."""

from typing import Final

from answers import BlockedError

SHORTEST_SLEEP_S: Final = 0.01


class PatientClock:
    """Time passes by sleeping only; who sleeps longer than `patience_s` is taken for hanging."""

    def __init__(self, patience_s: float = 60.0) -> None:
        self.patience_s = self.deadline = patience_s
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, SHORTEST_SLEEP_S)
        if self.now > self.deadline:
            raise BlockedError

    def wind(self) -> None:
        """Give the next call its own time."""
        self.deadline = self.now + self.patience_s
