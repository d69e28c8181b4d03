"""Rules as users wrote them for smdebug: every call style, import and older name that is in use."""

import logging
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from rule_runner.loading.loader import load_source
from rule_runner.loading.parameters import bind, construct
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import Trial, create_trial

# The example of the documentation, with the indentation that its page has lost.
DOCUMENTED = """
from smdebug.rules import Rule
class VanishingGradientRule(Rule):
    def __init__(self, base_trial, threshold=0.0000001):
        super().__init__(base_trial, other_trials=None)
        self.threshold = float(threshold)
    def invoke_at_step(self, step):
        for tensorname in self.base_trial.tensors(collection='gradients'):
            tensor = self.base_trial.tensor(tensorname)
            abs_mean = tensor.reduction_value(step, 'mean', abs=True)
            if abs_mean < self.threshold:
                return True
            else:
                return False
"""
STYLES = {
    "super-base-trial": """
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def __init__(self, base_trial, limit="0.2"):
                super().__init__(base_trial)
                self.limit = float(limit)
            def invoke_at_step(self, step):
                return self.base_trial.tensor("loss").value(step)[0] < self.limit
    """,
    "super-keyword-other-trials": """
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def __init__(self, base_trial, other_trials=None, limit="0.2"):
                super().__init__(base_trial, other_trials=other_trials)
                self.limit = float(limit)
            def invoke_at_step(self, step):
                return self.base_trial.tensor("loss").value(step)[0] < self.limit
    """,
    "super-positional-other-trials": """
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def __init__(self, base_trial, other_trials=None):
                super().__init__(base_trial, other_trials)
            def invoke_at_step(self, step):
                return self.base_trial.tensor("loss").value(step)[0] < 0.2
    """,
    "super-action-str": """
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def __init__(self, base_trial, action_str):
                super().__init__(base_trial, action_str)
            def invoke_at_step(self, step):
                return self.base_trial.tensor("loss").value(step)[0] < 0.2
    """,
    "super-action-str-other-trials": """
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def __init__(self, base_trial, action_str="", other_trials=None):
                super().__init__(base_trial, action_str, other_trials)
            def invoke_at_step(self, step):
                return self.base_trial.tensor("loss").value(step)[0] < 0.2
    """,
    "no-constructor": """
        from smdebug.rules import Rule
        class Mine(Rule):
            def invoke_at_step(self, step):
                return np.mean(self.base_trial.tensor("loss").value(step)) < 0.2
        import numpy as np
    """,
    "raises-the-condition-itself": """
        import smdebug
        from smdebug.exceptions import RuleEvaluationConditionMet
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def invoke_at_step(self, step):
                values = self.base_trial.tensor("loss").values(smdebug.modes.TRAIN)
                assert max(values) <= self.base_trial.mode_step(step)
                if values[self.base_trial.mode_step(step)] < 0.2:
                    raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)
                return False
    """,
    "every-exception-by-star": """
        from smdebug.exceptions import *
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def invoke_at_step(self, step):
                try:
                    self.base_trial.tensor("nope")
                except TensorUnavailable:
                    return bool(self.base_trial.tensor("loss").value(step)[0] < 0.2)
    """,
    "older-names": """
        import smdebug as smd
        from smdebug.core.logger import get_logger
        from smdebug.core.modes import ModeKeys
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__(base_trial)
                self.logger = get_logger()
            def invoke_at_step(self, step):
                assert self.base_trial.tensors_in_collection("losses") == ["loss"]
                assert smd.modes is ModeKeys
                names = self.base_trial.tensor_names(False, regex="loss")
                assert self.base_trial.collection("losses").name == "losses"
                return self.base_trial.tensor(names[0]).reduction_value(step, "mean") < 0.2
    """,
    "required-tensors": """
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def set_required_tensors(self, step):
                for name in self.base_trial.tensor_names(collection="losses"):
                    self.req_tensors.add(name, [step])
            def invoke_at_step(self, step):
                self.report["Datapoints"] += 1
                for tensor in self.req_tensors.get():
                    if tensor.value(step)[0] < 0.2:
                        self.logger.info("low")
                        return True
                return False
    """,
    "overrides-invoke": """
        from smdebug.exceptions import RuleEvaluationConditionMet
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def invoke_at_step(self, step):
                raise NotImplementedError
            def invoke(self, step):
                if step in self.base_trial.steps():
                    if self.base_trial.tensor("loss").value(step)[0] < 0.2:
                        raise RuleEvaluationConditionMet(self.rule_name, step)
    """,
    "writes-in-place": """
        from smdebug.rules.rule import Rule
        class Mine(Rule):
            def invoke_at_step(self, step):
                loss = self.base_trial.tensor("loss").value(step)
                loss *= 2
                return loss[0] < 0.4
    """,
    "imports-much": """
        from smdebug.analysis.utils import no_refresh, refresh
        from smdebug.core.collection import CollectionKeys
        from smdebug.rules import invoke_rule
        from smdebug.rules.action import Actions
        from smdebug.rules.rule import Rule
        from smdebug.rules.rule_invoker import invoke_rule as again
        from smdebug.trials import create_trial
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__(base_trial)
                self.name = CollectionKeys.LOSSES
            def invoke_at_step(self, step):
                with no_refresh([self.base_trial]):
                    name, = self.base_trial.tensor_names(step, ModeKeys.GLOBAL, None, self.name)
                return (self.base_trial.tensor(name).value(step) < 0.2).all()
        from smdebug.core.modes import ModeKeys
        if __name__ == "__main__":
            invoke_rule(Mine(create_trial("/nowhere")))
    """,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a trial whose loss at global steps 0, 1 ... 9 is 1, 0.9 ... 0.1."""
    collections = {"losses": "^loss$", "gradients": "^gradient"}
    with TrialWriter(tmp_path / "trial", collections=collections) as writer:
        for step in range(10):
            gradient = np.full((2, 2), 10.0**-step)
            tensors = {"loss": np.array([(10 - step) / 10]), "gradient/w": gradient}
            writer.step(step, tensors, mode=ModeKeys.TRAIN)
    return tmp_path / "trial"


@pytest.fixture
def trial(path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    return create_trial(str(path))


def load(tmp_path: Path, source: str, trial: Trial) -> Rule:
    file = tmp_path / "mine.py"
    file.write_text(textwrap.dedent(source))
    return construct(bind(load_source(file), {}), trial)


@pytest.mark.parametrize("source", STYLES.values(), ids=STYLES)
def test_every_style_meets_its_condition_where_the_runner_asks(
    tmp_path: Path, trial: Trial, source: str
) -> None:
    rule = load(tmp_path, source, trial)
    trial.steps()
    runner = InProcessInvoker("Mine", rule, [trial])
    answers = [runner.judge(step) for step in range(10)]
    assert [one.did for one in answers] == [InvocationOutcome.CLEAR] * 9 + [
        InvocationOutcome.MET
    ], [one.reason for one in answers]


@pytest.mark.parametrize("source", STYLES.values(), ids=STYLES)
def test_every_style_meets_its_condition_in_the_documented_loop(
    tmp_path: Path, trial: Trial, source: str
) -> None:
    rule = load(tmp_path, source, trial)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        invoke_rule(rule, raise_eval_cond=True)
    assert (met.value.rule_name, met.value.step) == ("Mine", 9)


def test_the_documented_rule_runs_word_for_word(
    tmp_path: Path, trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    rule = load(tmp_path, DOCUMENTED, trial)
    with caplog.at_level(logging.INFO, logger="smdebug"), pytest.raises(NoMoreData):
        invoke_rule(rule, start_step=0, end_step=None)
    assert [record.getMessage() for record in caplog.records] == [
        "Started rule VanishingGradientRule at step 0.",
        *(f"The condition of rule VanishingGradientRule was met at step {n}." for n in (8, 9)),
        "Ended rule VanishingGradientRule after step 9.",
    ]


@pytest.mark.parametrize(
    ("arguments", "action", "others"),
    [
        pytest.param(((), {}), "", None, id="none"),
        pytest.param((("act",), {}), "act", None, id="action"),
        pytest.param(((["o"],), {}), "", ["o"], id="others-in-second-place"),
        pytest.param((("act", ["o"]), {}), "act", ["o"], id="new-order"),
        pytest.param(((["o"], "act"), {}), "act", ["o"], id="old-order"),
        pytest.param(((None, ""), {}), "", None, id="old-order-none"),
        pytest.param(((None, "act"), {}), "act", None, id="old-order-action-only"),
        pytest.param(((), {"other_trials": ("o",)}), "", ("o",), id="keyword"),
    ],
)
def test_the_base_constructor_takes_every_order(
    trial: Trial, arguments: tuple[tuple[Any, ...], dict[str, Any]], action: str, others: object
) -> None:
    class Mine(Rule):
        def invoke_at_step(self, step: int) -> bool:
            return bool(step)

    positional, keyword = arguments
    rule = Mine(trial, *positional, **keyword)
    assert (rule._action_str, rule.other_trials) == (action, others)
    assert rule.trials == [trial, *(others or ())]  # type: ignore[misc]  # any iterable


def test_other_trials_arrive_as_a_list(tmp_path: Path, trial: Trial) -> None:
    source = STYLES["super-keyword-other-trials"]
    file = tmp_path / "mine.py"
    file.write_text(textwrap.dedent(source))
    rule = construct(bind(load_source(file), {"limit": "0.5"}), trial, [trial])
    assert (rule.other_trials, rule.limit) == ([trial], 0.5)  # type: ignore[attr-defined]
