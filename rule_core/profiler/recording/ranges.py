"""ProfilingRange: the steps or the time in which a kind of metrics is profiled."""

from dataclasses import dataclass


@dataclass(slots=True)
class ProfilingRange:
    """A half-open range of steps or of time.

    Without a start it begins at the first step that is looked up. Without a length it is one step.

    Parameters
    ----------
    start_step, num_steps
        The first step, and the number of steps.
    start_s, duration_s
        Alternatively the start in seconds since the epoch, and the duration in seconds.
    """

    start_step: int | None = None
    num_steps: int | None = None
    start_s: float | None = None
    duration_s: float | None = None

    def contains(self, step: int, time_s: float) -> bool:
        """Return whether a step that begins at a time is in the range.

        Steps must be looked up in ascending order.

        >>> steps = ProfilingRange(start_step=5, num_steps=2)
        >>> [step for step in range(9) if steps.contains(step, 0.0)]
        [5, 6]
        """
        if self.start_s is None and self.duration_s is None:
            return self._contains_step(step)
        if self.start_s is None:
            self.start_s = time_s
        if self.duration_s is None:
            return time_s >= self.start_s and self._contains_step(step)
        return self.start_s <= time_s < self.start_s + self.duration_s

    def _contains_step(self, step: int) -> bool:
        if self.start_step is None:
            self.start_step = step
        return self.start_step <= step < self.start_step + (self.num_steps or 1)

    def is_over(self, step: int, time_s: float) -> bool:
        """Return whether no step from this one on is in the range."""
        if self.start_s is not None and self.duration_s is not None:
            return time_s >= self.start_s + self.duration_s
        return self.start_step is not None and step >= self.start_step + (self.num_steps or 1)
