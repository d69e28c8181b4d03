"""Runner: findings of rules that judge the whole run, which recover and come back."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import evaluating
import pytest
from evaluating import Script, WoundClock, configured, json_lines
from list_source import ListSource, Row, opened, source_index

from rule_core.severity import Severity
from rule_runner.engine.outcome import EvaluationOutcome, exit_code
from rule_runner.engine.runner import Runner
from rule_runner.results.schema import RuleResult
from smdebug.rules import Rule


class TooHigh(Rule):
    """Met while the loss is above 2, and again at the end; it recovers below 1."""

    def invoke_at_step(self, step: int) -> bool:
        loss = float(self.base_trial.tensor("loss").value(step)[0])
        if loss < 1:
            self.found(step, "loss", recovers=True)
        return loss > 2 and self.found(step, "loss", None, loss, 2.0)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def rows(*losses: float, first: int = 0) -> list[Row]:
    return [(first + at, {"loss": loss}) for at, loss in enumerate(losses)]


def evaluated(
    output: Path, source: ListSource, *later: Callable[[], object], **more: Any
) -> EvaluationOutcome:
    """Return the outcome of an evaluation; each of `later` happens at a wait."""
    config = configured(output, [TooHigh], **{"follow_issues": True, **more})
    script = Script(WoundClock(), later)
    with opened(source_index(source)):
        return Runner(config, clock=script.clock, waiter=script).run()


def states(output: Path) -> Iterator[tuple[str, str | None, int | None]]:
    """Yield what each event says of the rule."""
    for event in json_lines(output / "events.jsonl"):
        (entry,) = event["detail"]["DebugRuleEvaluationStatuses"]
        status = entry["RuleEvaluationStatus"]
        yield status, entry.get("RuleEvaluationState"), entry.get("StateStep")


def result_of(outcome: EvaluationOutcome) -> RuleResult:
    (result,) = outcome.result.rules
    return result


@pytest.mark.parametrize(
    ("source", "state", "last"),
    [
        pytest.param(rows(1.0, 3.0, 3.0, 1.5), "open", None, id="neither-high-nor-back"),
        pytest.param(rows(1.0, 3.0, 3.0, 0.5, 1.5), "recovered", 3, id="back"),
        pytest.param(rows(1.0, 3.0, 0.5, 3.0), "open", 3, id="high-again"),
        pytest.param([*rows(1.0, 3.0, 1.5), *rows(1.5, first=1)], "recovered", 1, id="passed"),
        pytest.param([*rows(1.0, 1.5, 3.0), *rows(1.5)], "open", None, id="not-passed"),
    ],
)
def test_the_state_at_the_end_decides_what_counts(
    source: list[Row], state: str, last: int | None, tmp_path: Path
) -> None:
    outcome = evaluated(tmp_path, ListSource(*source, ended=True))
    result = result_of(outcome)
    assert (result.outcome, result.state) == ("IssuesFound", state)
    assert result.has_issues() is (state == "open")
    assert exit_code(outcome, fail_on=Severity.WARNING) == (10 if state == "open" else 0)
    *_, latest = states(tmp_path)
    assert latest == ("IssuesFound", state, last)


def test_each_change_is_an_event_live_as_afterwards(tmp_path: Path) -> None:
    source = rows(1.0, 3.0, 3.0, 0.5, 3.0, 0.5)
    after = evaluated(tmp_path / "after", ListSource(*source, ended=True))
    growing = ListSource(ended=False)
    later = [lambda row=row: growing.rows.append(row) for row in source]
    live = evaluated(tmp_path / "live", growing, *later, lambda: setattr(growing, "ended", True))
    assert result_of(live).evidence == result_of(after).evidence
    expected = [("open", None), ("recovered", 3), ("open", 4), ("recovered", 5)]
    for name in ("live", "after"):
        found = [(state, step) for _, state, step in states(tmp_path / name) if state]
        assert [*dict.fromkeys(found)] == expected  # the end of the trial repeats one
        steps = [finding["step"] for finding in json_lines(tmp_path / name / "findings.jsonl")]
        assert steps == [1, 3, 4, 5]


def test_without_following_the_first_finding_ends_the_rule(tmp_path: Path) -> None:
    source = ListSource(*rows(1.0, 3.0, 0.5), ended=True)
    result = result_of(evaluated(tmp_path, source, follow_issues=False))
    assert result.coverage.judged == 2
    assert [state for _, state, _ in states(tmp_path) if state] == []
    assert "state" not in (tmp_path / "results.json").read_text()
