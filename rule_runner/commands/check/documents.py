"""The results of `check` as one JUnit report or SARIF log on all trials."""

from collections.abc import Iterator
from contextlib import closing

from rule_core.severity import Severity
from rule_runner.batch.collecting.junit_file import JunitFile
from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.batch.collecting.sarif_file import SarifFile
from rule_runner.commands.check.tables import CheckResult, shown_path


def document(result: CheckResult, form: str, exit_code: int, fail_on: Severity) -> str:
    """Return the results in the format ``junit`` or ``sarif``, with trials named by their paths.

    What is wrong with the paths is an error of a suite of its own. In JUnit, findings that are
    less serious than `fail_on` are no failures.
    """
    with closing(JunitFile("", fail_on) if form == "junit" else SarifFile("")) as file:
        for trial in _trials(result):
            file.add(trial)
        return b"".join(file.pieces(exit_code)).decode().rstrip()


def _trials(result: CheckResult) -> Iterator[CollectedTrial]:
    for trial in result.trials:
        yield CollectedTrial(
            trial=trial.path,
            output=trial.results,
            rules=trial.evaluation.rules if trial.evaluation else [],
            problems=[trial.problem] if trial.problem else [],
            label=shown_path(trial.path),
        )
    if result.problems:
        yield CollectedTrial("", "", problems=result.problems, label="paths")
