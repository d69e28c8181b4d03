"""What output folders say, also those that a kill left half-written."""

from pathlib import Path
from typing import Any

import outcomes
import pytest
from outcomes import met
from watched import result, save

from rule_core.model.segments import global_step
from rule_runner.errors import OutputError
from rule_runner.index.outputs import (
    SavedOutput,
    base_of,
    is_finished,
    read_output,
    saved_outputs,
)
from rule_runner.results.durable_files import SCRATCH
from rule_runner.results.file_names import RESULTS
from rule_runner.results.schema import Evidence, RuleSource
from rule_runner.results.status import FindingState

TRIAL = "/runs/a"
OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"


def test_the_results_of_several_rules(tmp_path: Path) -> None:
    save(tmp_path, result(TRIAL), result(TRIAL, "Overfit", outcome="IssuesFound", step=20))
    saved = read_output(str(tmp_path))
    assert [(rule.name, rule.outcome, rule.step) for rule in saved.rules] == [
        ("LossSpike", "NoIssuesFound", None),
        ("Overfit", "IssuesFound", 20),
    ]
    assert (saved.trial, saved.ended, saved.final, saved.end_time) == (
        TRIAL,
        True,
        True,
        1_767_225_601.0,
    )
    assert is_finished(str(tmp_path))


@pytest.mark.parametrize(("layout", "rules"), [("single", 1), ("several", 2)])
def test_results_of_version_0_1_0_are_read_and_not_continued(layout: str, rules: int) -> None:
    saved = read_output(str(OLD / layout))
    assert (len(saved.rules), saved.trial, saved.ended) == (rules, "/runs/mnist", True)
    assert saved.rules[0].outcome == "IssuesFound"
    assert not saved.same_version


def test_issues_name_the_root_cause_of_their_incident_and_what_still_holds(tmp_path: Path) -> None:
    def finding(step: int, **more: Any) -> Evidence:
        return Evidence(step, None, None, 1.0, 2.0, None, **more)

    source = RuleSource(location="/m.py", sha256="0")
    back: dict[str, Any] = {"state": FindingState.RECOVERED, "recovered_at": 15}
    again = finding(30, summary="The loss is 9.", segment=1, state=FindingState.OPEN)
    save(
        tmp_path,
        met("Loss", rule="LossNotDecreasing", evidence=[finding(3, **back), again], step=3),
        met("Spike", rule="LossSpike", evidence=[finding(9)], step=9),
        met("Mine", rule="DeadRelu", step=9, evidence=[], source=source),
        met("Back", rule="AllZero", evidence=[finding(4, **back)], **back),
        outcomes.result("Quiet"),
    )
    rules = {rule.name: rule for rule in read_output(str(tmp_path)).rules}
    assert {name: (rule.root, rule.since, rule.recovered_at) for name, rule in rules.items()} == {
        "Loss": ("Spike", global_step(1, 30), None),
        "Spike": ("Spike", 9, None),
        "Mine": ("Mine", 9, None),
        "Back": ("", None, 15),
        "Quiet": ("", None, None),
    }
    assert rules["Loss"].sentence == "The loss is 9."
    assert rules["Spike"].sentence == "step 9, measured 1, limit 2"
    assert rules["Mine"].sentence == rules["Back"].sentence == ""
    assert (rules["Back"].verdict, rules["Loss"].verdict) == ("Recovered", "IssuesFound")


def test_verdicts_that_more_data_may_change_are_not_final(tmp_path: Path) -> None:
    save(tmp_path, result(TRIAL, trial_ended=False))
    saved = read_output(str(tmp_path))
    assert (saved.ended, saved.final) == (True, False)


@pytest.mark.parametrize("place", ["missing", "file", "file/inner"])
def test_no_folder_holds_nothing(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    assert read_output(str(tmp_path / place)) == SavedOutput()


@pytest.mark.parametrize("text", ["", '{"rule": 3}', '{"configuration_name": "Lo', "\0"])
def test_a_damaged_result_names_the_remedy(tmp_path: Path, text: str) -> None:
    save(tmp_path, result(TRIAL))
    (tmp_path / RESULTS).write_text(text)
    with pytest.raises(OutputError, match=r"cannot be read: .*\. Remove the output folder"):
        read_output(str(tmp_path))


def test_a_result_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    save(tmp_path, result(TRIAL))
    (tmp_path / RESULTS).rename(tmp_path / "target")
    (tmp_path / RESULTS).symlink_to(tmp_path / "target")
    with pytest.raises(OutputError, match=r"Result '.*' cannot be read: "):
        read_output(str(tmp_path))


def test_an_evaluation_without_report_or_with_undelivered_events_is_not_finished(
    tmp_path: Path,
) -> None:
    save(tmp_path, result(TRIAL), report=False)
    assert not is_finished(str(tmp_path))
    save(tmp_path, result(TRIAL))
    (tmp_path / "events.jsonl").write_text("{}\n")
    assert is_finished(str(tmp_path))
    (tmp_path / SCRATCH / "cursor-webhook").write_text("0\n")
    assert not is_finished(str(tmp_path))
    assert not is_finished("s3://bucket/out")


def test_outputs_below_the_base_of_a_template(tmp_path: Path) -> None:
    save(tmp_path / "a", result(TRIAL))
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert [*saved_outputs(f"{tmp_path}/{{trial}}")] == [str(tmp_path / "a")]
    assert [*saved_outputs("s3://bucket/{trial}")] == []
    assert base_of("/{trial}") == "/"
