"""CaseResult and TableResult: the results of rule tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rule_runner.rule_tests.expectation import Expectation


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case.

    Attributes
    ----------
    problems
        A line for each difference, with its place; empty if the case passed.
    update
        The expectation that the rule meets, if it can be written into the file.
    """

    name: str
    seconds: float
    problems: Sequence[str] = ()
    update: Expectation | None = None


@dataclass(slots=True)
class TableResult:
    """The results of one test file, in its order."""

    path: Path
    cases: list[CaseResult] = field(default_factory=list)

    @property
    def failed(self) -> list[CaseResult]:
        """The cases that did not pass."""
        return [case for case in self.cases if case.problems]
