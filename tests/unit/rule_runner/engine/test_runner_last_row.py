"""Runner: the last row of a log whose format does not tell whether the run has ended."""

from pathlib import Path
from typing import Any

import evaluating
import pytest
from evaluating import Script, WoundClock, configured
from list_source import ListSource, opened, source_index

from rule_runner.engine.outcome import EvaluationOutcome, exit_code
from rule_runner.engine.runner import QUIET, Runner
from smdebug.rules import Rule

AT_ONCE = {"wait": False, "as_it_is": True}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class Above(Rule):
    """Met when the loss is above 1."""

    def invoke_at_step(self, step: int) -> bool:
        loss = float(self.base_trial.tensor("loss").value(step)[0])
        return loss > 1 and self.found(step, "loss", measured=loss, limit=1.0)


class NeverLow(Rule):
    """Met at the end when no loss was at 0.1 or below."""

    lowest = float("inf")

    def invoke_at_step(self, step: int) -> bool:
        self.lowest = min(self.lowest, float(self.base_trial.tensor("loss").value(step)[0]))
        return False

    def invoke_at_end(self, step: int) -> bool:
        return self.lowest > 0.1 and self.found(step, "loss", measured=self.lowest, limit=0.1)


def evaluated(
    output: Path, last: float, ended: bool | None, rule: type[Rule] = Above, **more: Any
) -> EvaluationOutcome:
    source = ListSource(*((step, {"loss": 0.5}) for step in range(5)), ended=ended)
    later = [lambda: source.rows.append((5, {"loss": last}))]
    script = Script(WoundClock(), later)
    if not more.get("wait", True):
        script.wait(0.0)
    with opened(source_index(source)):
        return Runner(
            configured(output, [rule], idle_timeout=60.0, **more),
            clock=script.clock,
            waiter=script,
        ).run()


def seen(evaluation: EvaluationOutcome) -> tuple[str, int | None, int, bool, int]:
    (rule,) = evaluation.result.rules
    code = exit_code(evaluation, fail_on=None)
    return rule.outcome, rule.step, rule.coverage.judged, rule.trial_ended, code


@pytest.mark.parametrize("how", [{}, AT_ONCE], ids=["followed", "quiet-already"])
def test_a_fault_in_the_last_row_of_a_log_that_has_become_quiet_is_found(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    assert seen(evaluated(tmp_path, 2.0, None, **how)) == ("IssuesFound", 5, 6, False, 0)


@pytest.mark.parametrize("how", [{}, AT_ONCE], ids=["followed", "quiet-already"])
def test_a_log_that_has_become_quiet_is_not_stopped_before_its_last_row(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    evaluation = evaluated(tmp_path, 0.5, None, **how)
    assert seen(evaluation) == ("NoIssuesFound", None, 6, False, 0)
    assert evaluation.result.rules[0].notes == ([] if how else [QUIET])


@pytest.mark.parametrize("how", [{}, AT_ONCE], ids=["followed", "quiet-already"])
def test_what_a_rule_finds_at_the_end_counts_for_a_log_that_is_judged_as_it_is(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    evaluation = evaluated(tmp_path, 0.5, None, NeverLow, **how)
    assert seen(evaluation) == ("IssuesFound", 5, 6, False, 0)


@pytest.mark.parametrize("how", [{"ended": False}, {"ended": None, "wait": False}])
def test_what_a_rule_finds_at_the_end_does_not_count_while_the_run_goes_on(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    assert evaluated(tmp_path, 0.5, rule=NeverLow, **how).result.rules[0].findings_count == 0


def test_the_last_row_stays_open_if_the_format_says_that_the_run_goes_on(tmp_path: Path) -> None:
    evaluation = evaluated(tmp_path, 2.0, ended=False)
    assert seen(evaluation) == ("Stopped", None, 5, False, 124)


def test_the_last_row_stays_open_without_a_wait(tmp_path: Path) -> None:
    evaluation = evaluated(tmp_path, 2.0, None, wait=False)
    assert seen(evaluation) == ("NoIssuesFound", None, 5, False, 0)
