"""Rules, exceptions and refreshing as the programming model documents them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import documented_trial as documented
import pytest
from documented_trial import EVAL_GLOBAL

from smdebug import exceptions
from smdebug.analysis.utils import no_refresh, refresh
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import Trial, create_trial

# -- rules ----------------------------------------------------------------------------------------


class VanishingGradientRule(Rule):
    """The example of the document, its loop corrected so that it looks at every gradient."""

    def __init__(self, base_trial: Trial, threshold: object = 0.0000001) -> None:
        super().__init__(base_trial, other_trials=None)
        self.threshold = float(str(threshold))
        self.invoked: list[int] = []

    def invoke_at_step(self, step: int) -> bool:
        self.invoked.append(step)
        for tensorname in self.base_trial.tensors(collection="gradients"):
            tensor = self.base_trial.tensor(tensorname)
            abs_mean = tensor.reduction_value(step, "mean", abs=True)
            if abs_mean < self.threshold:
                return True
        return False


def run(rule: Rule, **arguments: Any) -> None:
    try:
        invoke_rule(rule, **arguments)
    except exceptions.NoMoreData:
        return


def test_a_rule_is_of_a_trial_and_has_its_parameters_as_text(ended: Trial) -> None:
    rule = VanishingGradientRule(ended, "20.0")
    assert (rule.base_trial, rule.other_trials, rule.threshold) == (ended, None, 20.0)


def test_other_trials_can_be_given(ended: Trial, workers: Trial) -> None:
    class Two(Rule):
        def __init__(self, base_trial: Trial, other_trials: list[Trial]) -> None:
            super().__init__(base_trial, other_trials=other_trials)

        def invoke_at_step(self, step: int) -> bool:
            assert self.other_trials is not None
            assert self.other_trials[0].steps()[0] == 0
            return step == 3

    with pytest.raises(exceptions.RuleEvaluationConditionMet) as met:
        invoke_rule(Two(ended, [workers]), raise_eval_cond=True)
    assert met.value.step == 3


def test_the_condition_is_raised_if_asked_for(ended: Trial) -> None:
    with pytest.raises(exceptions.RuleEvaluationConditionMet) as met:
        invoke_rule(VanishingGradientRule(ended, threshold=20.0), raise_eval_cond=True)
    assert (met.value.rule_name, met.value.step) == ("VanishingGradientRule", 0)


def test_the_condition_is_logged_and_the_next_step_judged_otherwise(ended: Trial) -> None:
    rule = VanishingGradientRule(ended, threshold="20.0")
    run(rule, start_step=0, end_step=None)
    assert rule.invoked == list(range(12))


def test_a_condition_that_is_not_met(ended: Trial) -> None:
    run(VanishingGradientRule(ended), raise_eval_cond=True)


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({"start_step": 9}, [9, 10, 11]),
        ({"end_step": 2}, [0, 1]),
        ({"start_step": 4, "end_step": 6}, [4, 5]),
        ({"start_step": 11, "end_step": 11}, []),
    ],
    ids=repr,
)
def test_the_end_is_exclusive(ended: Trial, arguments: dict[str, int], steps: list[int]) -> None:
    rule = VanishingGradientRule(ended)
    run(rule, **arguments)
    assert rule.invoked == steps


def test_a_run_over_all_steps_ends_with_no_more_data(ended: Trial) -> None:
    with pytest.raises(exceptions.NoMoreData):
        invoke_rule(VanishingGradientRule(ended))


def test_steps_without_a_tensor_are_passed_over(ended: Trial) -> None:
    class Softmax(VanishingGradientRule):
        def invoke_at_step(self, step: int) -> bool:
            self.base_trial.tensor("softmax_output").value(step)
            self.invoked.append(step)
            return False

    rule = Softmax(ended)
    run(rule)
    assert rule.invoked == EVAL_GLOBAL


def test_a_later_step_is_not_available_to_a_rule(ended: Trial) -> None:
    class Foreseeing(VanishingGradientRule):
        def invoke_at_step(self, step: int) -> bool:
            with pytest.raises(exceptions.TensorUnavailableForStep):
                self.base_trial.tensor("loss").value(step + 1)
            self.invoked.append(step)
            return False

    rule = Foreseeing(ended)
    run(rule, end_step=3)
    assert rule.invoked == [0, 1, 2]


def test_required_tensors_are_there(ended: Trial) -> None:
    class Required(VanishingGradientRule):
        def set_required_tensors(self, step: int) -> None:
            for name in self.base_trial.tensor_names(collection="losses"):
                self.req_tensors.add(name, steps=[step])

        def invoke_at_step(self, step: int) -> bool:
            self.invoked += [step for tensor in self.req_tensors.get() if tensor.value(step)[0] < 1]
            return False

    rule = Required(ended)
    run(rule, end_step=4)
    assert rule.invoked == [1, 2, 3]


# -- exceptions -----------------------------------------------------------------------------------

RAISED: dict[str, Callable[[Trial], object]] = {
    "TensorUnavailableForStep": lambda trial: trial.tensor("softmax_output").value(0),
    "TensorUnavailable": lambda trial: trial.tensor("tname"),
    "StepUnavailable": lambda trial: trial.tensor("loss").value(100),
    "NoMoreData": lambda trial: trial.wait_for_steps([100]),
}


@pytest.mark.parametrize("name", RAISED)
def test_exception_of_an_ended_trial(ended: Trial, name: str) -> None:
    with pytest.raises(getattr(exceptions, name)) as caught:
        RAISED[name](ended)
    assert type(caught.value).__name__ == name


def test_exception_of_a_running_trial(workers: Trial) -> None:
    with pytest.raises(exceptions.StepNotYetAvailable):
        workers.tensor("w").value(100)


def test_exception_without_collections(tmp_path: Path) -> None:
    with pytest.raises(exceptions.MissingCollectionFiles):
        create_trial(str(tmp_path), timeout=0)


@pytest.mark.parametrize(
    "name",
    [*RAISED, "StepNotYetAvailable", "RuleEvaluationConditionMet", "MissingCollectionFiles"],
)
def test_the_star_brings_the_exception(name: str) -> None:
    names: dict[str, Any] = {}
    exec("from smdebug.exceptions import *", names)
    assert names[name] is getattr(exceptions, name)
    assert issubclass(names[name], Exception)


# -- refreshing -----------------------------------------------------------------------------------


@pytest.fixture
def running(tmp_path: Path) -> tuple[Trial, Callable[[], None]]:
    """Return a running trial of two steps, and what writes its third step."""
    documented.write(tmp_path / "running", steps=2, ended=False)
    documented.write(tmp_path / "later", steps=3, ended=False)
    trial = create_trial(str(tmp_path / "running"))

    def write_third_step() -> None:
        for folder in ("events", "index"):
            for source in (tmp_path / "later" / folder).rglob("000000000002_*"):
                target = tmp_path / "running" / source.relative_to(tmp_path / "later")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())

    return trial, write_third_step


def test_queries_refresh_by_default(running: tuple[Trial, Callable[[], None]]) -> None:
    trial, write_third_step = running
    assert trial.steps() == [0, 1]
    write_third_step()
    assert trial.tensor("loss").steps() == [0, 1, 2]


@pytest.mark.parametrize("as_list", [False, True])
def test_no_refresh(running: tuple[Trial, Callable[[], None]], as_list: bool) -> None:
    trial, write_third_step = running
    with no_refresh([trial] if as_list else trial):
        write_third_step()
        assert trial.steps() == [0, 1]
    assert trial.steps() == [0, 1, 2]


@pytest.mark.parametrize("as_list", [False, True])
def test_refresh(running: tuple[Trial, Callable[[], None]], as_list: bool) -> None:
    trial, write_third_step = running
    with no_refresh(trial):
        write_third_step()
        with refresh([trial] if as_list else trial):
            assert trial.steps() == [0, 1, 2]


def test_no_refresh_gives_the_trial(running: tuple[Trial, Callable[[], None]]) -> None:
    trial, _ = running
    with no_refresh(trial) as same:
        assert same is trial


def test_a_rule_sees_one_state_of_the_trial(running: tuple[Trial, Callable[[], None]]) -> None:
    trial, write_third_step = running

    class Writing(VanishingGradientRule):
        def invoke_at_step(self, step: int) -> bool:
            before = self.base_trial.tensor("loss").steps()
            write_third_step()
            assert self.base_trial.tensor("loss").steps() == before
            self.invoked.append(step)
            return False

    rule = Writing(trial)
    invoke_rule(rule, end_step=1)
    assert rule.invoked == [0]
