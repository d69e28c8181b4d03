"""TrialOutcome: how the evaluation of one line of a plan ended."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from rule_runner.errors import EXIT_SIGNAL, EXIT_TEMPORARY, counted, worst_exit_code
from rule_runner.escape import printable


class TrialState(StrEnum):
    """How an evaluation ended: those that need attention come first."""

    FAILED = "failed"
    STOPPED = "stopped"
    ISSUES = "with issues"
    HEALTHY = "without issues"


class TrialOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the evaluation of one line of a plan ended: a line of ``--format jsonl``.

    Attributes
    ----------
    line
        Its number in the plan, from 1.
    trial, output
        The trial and the folder of its results; "" if the line does not say.
    exit_code
        The exit code for this trial alone.
    summary
        The number of rules with each outcome, as text.
    complete
        Whether an earlier process had completed it, so that nothing was judged again.
    problems
        Sentences on what went wrong.
    """

    line: int
    state: TrialState
    trial: str = ""
    output: str = ""
    exit_code: int = 0
    summary: str = ""
    complete: bool = False
    problems: list[str] = []

    def text(self) -> str:
        """Return the outcome as a line for people."""
        head = f"{self.line}: {self.trial or 'no trial'}: "
        before = " (judged before)" if self.complete else ""
        said = " ".join(self.problems) if self.state is TrialState.FAILED else ""
        return printable(head + (said or self.summary or str(self.state)) + before)


class Tally:
    """Counts the outcomes of a shard."""

    def __init__(self) -> None:
        self._states: Counter[TrialState] = Counter()
        self._codes: set[int] = set()
        self._complete = 0

    def add(self, outcome: TrialOutcome) -> None:
        """Count an outcome."""
        self._states[outcome.state] += 1
        self._codes.add(outcome.exit_code)
        self._complete += outcome.complete

    def text(self, shard: object) -> str:
        """Return a sentence on all outcomes."""
        counts = ", ".join(f"{self._states[state]} {state}" for state in self._states_in_order())
        trials = counted(self._states.total(), "trial")
        before = f"; {self._complete} had been judged before" if self._complete else ""
        return f"Shard {shard}: {trials}{counts and f': {counts}'}{before}."

    def _states_in_order(self) -> list[TrialState]:
        return [state for state in TrialState if self._states[state]]

    def exit_code(self, signal: int = 0) -> int:
        """Return the exit code of the shard; `signal` ended it, if it is not 0."""
        return shard_exit_code(self._codes | ({EXIT_SIGNAL + signal} if signal else set()))


def shard_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code of a shard from those of its trials.

    Interruptions and failures that may pass precede others: a retry skips what is complete.

    >>> shard_exit_code([0, 1]), shard_exit_code([1, 75]), shard_exit_code([75, 143])
    (1, 75, 143)
    """
    present = {*codes}
    retried = [code for code in present if code > EXIT_SIGNAL]
    if EXIT_TEMPORARY in present and not retried:
        return EXIT_TEMPORARY
    return min(retried, default=worst_exit_code(present))


def failed(line: int, problem: str, code: int, trial: str = "", output: str = "") -> TrialOutcome:
    """Return the outcome of a trial that could not be judged."""
    return TrialOutcome(
        line=line,
        state=TrialState.FAILED,
        trial=trial,
        output=output,
        exit_code=code,
        problems=[problem],
    )
