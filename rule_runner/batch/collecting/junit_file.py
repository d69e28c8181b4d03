"""JUnit on many trials: a test suite for each, whose name begins the names of its classes."""

from collections import Counter
from collections.abc import Iterable

from rule_core.severity import Severity
from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.batch.collecting.streams import CollectedFile
from rule_runner.report.junit import (
    COUNTS,
    add_outcome,
    clean,
    new_case,
    report_pieces,
    rule_suite,
    suite_text,
    totals,
)


class JunitFile(CollectedFile):
    """A JUnit report; a result that is missing or not final is an error of its trial's suite."""

    def __init__(self, place: str, fail_on: Severity = Severity.WARNING) -> None:
        super().__init__(place)
        self._fail_on = fail_on
        self._counts = Counter(dict.fromkeys(COUNTS, 0))

    def add(self, trial: CollectedTrial) -> None:
        """Add the suite of a trial."""
        problems = []
        for problem in trial.problems:
            problems.append(new_case("result", "rule-runner"))
            add_outcome(problems[-1], "error", "Missing", problem)
        suite = rule_suite(trial.as_evaluation(), self._fail_on, problems)
        suite.set("name", clean(trial.name))
        for case in suite.iter("testcase"):  # many CI systems show no names of suites
            case.set("classname", f"{suite.get('name')}.{case.get('classname')}")
        for name, count in totals(suite).items():
            self._counts[name] += int(count)
        self.spool.append(suite_text(suite))

    def pieces(self, exit_code: int) -> Iterable[bytes]:
        """Return the report."""
        del exit_code
        counts = {name: str(count) for name, count in self._counts.items()}
        return report_pieces("rule-runner", self.spool.pieces(), counts)
