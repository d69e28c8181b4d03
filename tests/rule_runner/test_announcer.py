"""Announcer: what each event says of every rule, also after an evaluation was killed."""

from datetime import UTC, datetime
from pathlib import Path

import evaluating
import pytest

from rule_runner.announcer import Announcer
from rule_runner.evaluation import Evaluation
from rule_runner.events import TrainingJob
from smdebug.rules import Finding

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def announce(
    folder: Path, evaluation: Evaluation, mode: str, *, ended: bool = False
) -> dict[str, str]:
    """Announce where a rule stands, and return what the last event says of it."""
    announcer = Announcer(
        TrainingJob("job", NOW),
        [folder],
        (),
        [evaluation],
        lambda: NOW,
        modes={"zeros": mode},
        overwrite=False,
    )
    announcer.announce(trial_ended=ended)
    announcer.close()
    detail = evaluating.json_lines(folder / "events.jsonl")[-1]["detail"]
    (entry,) = detail["DebugRuleEvaluationStatuses"]
    return {name: entry[f"RuleEvaluation{name}"] for name in ("Status", "Mode")}


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_an_event_has_the_mode_of_each_rule(tmp_path: Path, mode: str) -> None:
    evaluation = Evaluation("AllZero", "zeros", False, NOW)
    assert announce(tmp_path, evaluation, mode) == {"Status": "InProgress", "Mode": mode}


def test_what_was_told_as_final_stays_and_the_mode_is_todays(tmp_path: Path) -> None:
    before = Evaluation("AllZero", "zeros", False, NOW)
    before.condition_met(3, [Finding(3)], NOW)
    assert announce(tmp_path, before, "enforce")["Status"] == "IssuesFound"
    again = Evaluation("AllZero", "zeros", False, NOW)
    found = announce(tmp_path, again, "observe", ended=True)
    assert found == {"Status": "IssuesFound", "Mode": "observe"}
