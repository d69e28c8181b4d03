"""Which actions a rule job has, before anything runs."""

import pytest
from evaluating import rule_job

from rule_runner.config.planned_actions import planned
from rule_runner.errors import ParameterError
from smdebug.rules import Rule
from smdebug.rules.action.action import MessageAction, StopTrainingAction


class Plain(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return step < 0


SMS = MessageAction("", "sms", "+15550100")
JSON = '{"name": "stoptraining", "training_job_prefix": "Mine"}'


def test_those_of_the_json_come_before_the_operators() -> None:
    job = rule_job(Plain, actions=JSON, operator_actions=(SMS,))
    assert planned(job, {}, None) == (StopTrainingAction("Plain", "Mine"), SMS)
    assert planned(rule_job(Plain), {}, "job") == ()


@pytest.mark.parametrize(
    "job",
    [
        rule_job(Plain, actions='{"name": "stoptraining"}'),
        rule_job(Plain, operator_actions=(StopTrainingAction(""),)),
    ],
)
def test_the_training_job_itself(job: object) -> None:
    (action,) = planned(job, {}, "mnist-1")  # type: ignore[arg-type]  # of two ways
    assert isinstance(action, StopTrainingAction)
    assert (action.training_job_prefix, action.exact) == ("mnist-1", True)
    with pytest.raises(ParameterError, match=r"^Rule 'Plain' is to stop a training job, and its n"):
        planned(job, {}, None)  # type: ignore[arg-type]  # of two ways


@pytest.mark.parametrize(
    ("arguments", "job", "expected"),
    [
        ({"stop_training_on_fire": False}, None, ()),
        (
            {"stop_training_on_fire": True, "training_job_name_prefix": "a"},
            "b",
            (StopTrainingAction("StalledTrainingRule", "a"),),
        ),
        (
            {"stop_training_on_fire": True, "training_job_name_prefix": None},
            "b",
            (StopTrainingAction("StalledTrainingRule", "b", exact=True),),
        ),
    ],
)
def test_what_a_rules_parameters_ask_for(
    arguments: dict[str, object], job: str | None, expected: object
) -> None:
    assert planned(rule_job("StalledTrainingRule"), arguments, job) == expected


def test_ten_are_enough() -> None:
    job = rule_job(Plain, "mine", actions=JSON, operator_actions=(SMS,) * 9)
    assert len(planned(job, {}, None)) == 10
    job = rule_job(Plain, "mine", actions=JSON, operator_actions=(SMS,) * 10)
    with pytest.raises(ParameterError, match=r"^Rule 'mine' takes at most 10 actions, got 11\.$"):
        planned(job, {}, None)


def test_json_that_is_none() -> None:
    with pytest.raises(ParameterError, match=r"^Unknown action 'emial'\. Did you mean 'email'\?"):
        planned(rule_job(Plain, actions='{"name": "emial"}'), {}, None)
