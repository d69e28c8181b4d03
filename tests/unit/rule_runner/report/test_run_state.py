"""run_state and headline: a run in a word and in a line."""

import pytest
import reports

from rule_core.severity import Severity
from rule_runner.report.run_state import headline, run_state
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import FindingState

FINE = reports.result("Fine")
SILENT = reports.result("Silent", "NotEvaluated")
FAILED = reports.result("Failed", "Error")
BAD = reports.fired("Bad")
ODD = reports.fired("Odd", severity=Severity.WARNING)
BACK = reports.fired("Back", state=FindingState.RECOVERED, recovered_at=30)


@pytest.mark.parametrize(
    ("rules", "state", "line"),
    [
        ([], "cannot tell", "cannot tell, nothing was judged"),
        ([SILENT], "cannot tell", "cannot tell, nothing was judged"),
        ([FINE, SILENT], "looks healthy", "looks healthy, judged by 1 of 3 rules: Fine"),
        ([FINE, FAILED], "cannot tell", "cannot tell, judged by 2 of 3 rules"),
        ([FINE, ODD], "suspicious", "suspicious since step 20, judged by 2 of 3 rules"),
        ([FAILED, ODD], "suspicious", "suspicious since step 20, judged by 2 of 3 rules"),
        ([ODD, BAD], "broken", "broken since step 20, judged by 2 of 3 rules"),
        ([FINE, BACK], "looks healthy", "looks healthy, judged by 2 of 3 rules: Fine"),
    ],
)
def test_the_state_of_a_run(rules: list[RuleResult], state: str, line: str) -> None:
    assert run_state(rules) == state
    assert headline(rules, left_out=3 - len(rules)) == line


def test_incomplete_results_tell_nothing_but_issues() -> None:
    assert run_state([FINE], "The disk is full.") == "cannot tell"
    assert headline([FINE], problem="The disk is full.") == "cannot tell, judged by 1 of 1 rule"
    assert run_state([BAD], "The disk is full.") == "broken"
