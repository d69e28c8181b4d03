"""resolve, rule_jobs: requested rules get names, parameters, actions and modes."""

from pathlib import Path

import pytest

from builtin_rules import RULES
from rule_runner.config import fitting_rules
from rule_runner.config.job_file.definition import JobDefinition
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve, rule_jobs
from rule_runner.errors import TrialError, UnknownRuleError, UsageError

MINE = """
from smdebug.rules import Rule

class Mine(Rule):
    def invoke_at_step(self, step):
        return False
"""


def test_jobs_get_names_parameters_and_actions(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(MINE)
    request = EvaluationRequest(
        trial="t",
        rules=(RuleRequest("a", "AllZero"), RuleRequest("b", None, str(source))),
        parameters=("a.tensor_regex=x", 'b.action_json={"name": "sms"}'),
        start_step=1,
        end_step=2,
    )
    one, two = rule_jobs(request)
    assert (one.configuration_name, one.loaded.name, one.parameters, one.actions) == (
        "a",
        "AllZero",
        {"tensor_regex": "x"},
        "",
    )
    assert (two.configuration_name, two.loaded.name, two.parameters, two.actions) == (
        "b",
        "Mine",
        {},
        '{"name": "sms"}',
    )
    assert (two.start_step, two.end_step) == (1, 2)


@pytest.mark.parametrize(
    ("requests", "error", "match"),
    [
        ([RuleRequest(None, "AllZero")] * 2, UsageError, r"^Two rule jobs are called 'AllZero'\."),
        ([RuleRequest("../x", "AllZero")], UsageError, r"^Name of a rule job must be"),
        ([RuleRequest(None, "AlZero")], UnknownRuleError, r"Did you mean 'AllZero'\?$"),
        ([RuleRequest(None, None)], UnknownRuleError, r"^Unknown rule ''\."),
    ],
)
def test_jobs_that_cannot_be(
    requests: list[RuleRequest], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        rule_jobs(EvaluationRequest(trial="t", rules=tuple(requests)))


def test_every_rule_is_taken_and_says_what_it_lacks() -> None:
    request = EvaluationRequest(
        trial="t",
        rules=(RuleRequest(None, "all"),),
        parameters=("ExplodingTensor.only_nan=true",),
    )
    jobs = rule_jobs(request)
    assert [one.configuration_name for one in jobs] == list(RULES)
    lacking = {one.configuration_name: one.missing_parameter for one in jobs}
    assert "'tensor_regex'" in lacking["AllZero"]
    assert (lacking["ExplodingTensor"], lacking["VanishingGradient"]) == ("", "")


def test_rules_that_fit_are_those_whose_inputs_the_trial_holds(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{step},{1 / (1 + step)}\n" for step in range(30)))
    rules = (RuleRequest(None, "AllZero"), RuleRequest(None, "auto"))
    request = EvaluationRequest(trial=str(log), rules=rules, wait=False)
    config = resolve(request)
    names = [job.configuration_name for job in config.rules]
    assert names[0] == "AllZero"
    assert "LossNotDecreasing" in names
    assert {"VanishingGradient", "SimilarAcrossRuns"} <= set(config.left_out)
    assert names.count("AllZero") == 1
    assert config.notes[-1].endswith("The report names each with the reason.")


def test_of_a_trial_that_is_to_come_only_parameters_leave_rules_out(tmp_path: Path) -> None:
    request = EvaluationRequest(
        trial=str(tmp_path / "later"), rules=(RuleRequest(None, "auto"),), wait_for_trial=1.0
    )
    config = resolve(request)
    assert "VanishingGradient" in [job.configuration_name for job in config.rules]
    assert "SimilarAcrossRuns" in config.left_out


def test_a_trial_that_no_rule_fits_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n0,1.0\n1,2.0\n")
    monkeypatch.setattr(fitting_rules, "names_over", lambda **_: ["VanishingGradient"])
    request = EvaluationRequest(trial=str(log), rules=(RuleRequest(None, "auto"),), wait=False)
    with pytest.raises(TrialError, match=r"^No built-in rule fits trial '.*log\.csv'\. 1 rule was"):
        resolve(request)


def test_a_rule_that_is_asked_for_by_name_lacks_nothing_silently() -> None:
    (job,) = rule_jobs(EvaluationRequest(trial="t", rules=(RuleRequest(None, "AllZero"),)))
    assert job.missing_parameter == ""


def test_modes_go_to_their_rules() -> None:
    rules = (RuleRequest("a", "ExplodingTensor"), RuleRequest("b", "ExplodingTensor"))
    jobs = rule_jobs(EvaluationRequest(rules=rules, modes=("observe", "b=enforce")))
    assert [one.mode for one in jobs] == ["observe", "enforce"]


def test_a_request_has_a_trial_and_rules() -> None:
    with pytest.raises(UsageError, match=r"^No trial was given: give --trial PATH, or "):
        resolve(EvaluationRequest())
    with pytest.raises(
        UsageError, match=r"^No rule was given: give --rule auto, --rule NAME or --source FILE"
    ):
        resolve(EvaluationRequest(trial="t"))
    several = EvaluationRequest(
        trial="t", rules=(RuleRequest(name="AllZero"),), job=JobDefinition("the job", ())
    )
    with pytest.raises(UsageError, match=r"^A request has 'rules', a 'job' or a 'container', not"):
        resolve(several)
