"""Measurer: measures the tensors of a trial somewhere else, for the process with the rules."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from rule_core.format.index_file import IndexFile
from rule_core.format.paths import StepFile
from rule_core.model.streaming_statistics import StreamingStatistic

LEAST_KEYS: Final = 1024  # for fewer index files, a call costs more than it saves

# A statistic, and the global step of the value that it compares with.
Question = tuple[StreamingStatistic, int | None]


class PartMeasures(NamedTuple):
    """What was measured of the tensors that a part of a worker saved at a step.

    Attributes
    ----------
    values
        By question and tensor. What could not be measured is missing.
    shapes
        The shapes of the measured tensors.
    """

    values: Mapping[Question, Mapping[str, Any]]
    shapes: Mapping[str, tuple[int, ...]]


class Measurer(Protocol):
    """Parses index files and measures tensors somewhere else.

    Whatever it does not return is read and measured by the process that asks, so that it can cost
    time but never change a result.
    """

    def parse(self, keys: Sequence[tuple[str, StepFile]]) -> Iterator[IndexFile | None]:
        """Yield each of the index files, in order; None for one that the caller has to read."""
        ...

    def measures(self, step: int, part: str) -> PartMeasures | None:
        """Return the measures of a part of a step; None without any."""
        ...
