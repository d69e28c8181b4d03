"""Evaluations: what a controller asks of whatever judges its trials."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from rule_runner.config.request import EvaluationRequest
from rule_runner.results.durable_files import Closing


class EndedEvaluation(NamedTuple):
    """An evaluation that has ended.

    Attributes
    ----------
    output
        Its output folder or address.
    exit_code
        Negative: the signal that ended it; None if that is not known.
    last_line
        The last line that it logged; "" if there is none.
    pause
        If it ended for an external reason, the seconds until it may restart: this does not
        count as a restart. None otherwise.
    """

    output: str
    exit_code: int | None
    last_line: str
    pause: float | None = None


class Evaluations(Closing):
    """The running evaluations, by their output."""

    @property
    def problem(self) -> str:
        """Why none can be started now, in a sentence; "" if nothing is known to be wrong."""
        return ""

    @property
    def is_ready(self) -> bool:
        """Whether evaluations can be started now."""
        return True

    @property
    @abstractmethod
    def outputs(self) -> list[str]:
        """Return the outputs of the running evaluations."""

    def __len__(self) -> int:
        return len(self.outputs)

    def __contains__(self, output: object) -> bool:
        return output in self.outputs

    @abstractmethod
    def start(self, output: str, request: EvaluationRequest) -> None:
        """Start an evaluation, unless the one that writes to this output is followed.

        Raises
        ------
        OutputError
            If it cannot be started.
        """

    @abstractmethod
    def adopt(self, output: str) -> EndedEvaluation | None:
        """Follow an evaluation that another controller started; return how it ended, if it did."""

    @abstractmethod
    def ended(self) -> Iterator[EndedEvaluation]:
        """Yield the evaluations that have ended since the last call; forget each afterwards.

        One whose result the caller could not record is yielded again.
        """

    @abstractmethod
    def terminate_one(self, output: str) -> None:
        """Ask a running evaluation to stop; it writes its results so far."""

    def pause_one(self, output: str) -> None:
        """Ask a running evaluation to make room once it waits for data; it ends with a `pause`.

        Evaluations that cannot do so go on.
        """

    def terminate(self) -> None:
        """Ask all evaluations to stop."""
        for output in self.outputs:
            self.terminate_one(output)
