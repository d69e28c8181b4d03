"""Rule files as the public has them: what they import, ask and keep, each in a minimal file."""

import textwrap
from pathlib import Path

import numpy as np
import pytest

from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from rule_runner.errors import ClientError
from rule_runner.loading.loader import load_source
from rule_runner.loading.parameters import bind, construct
from smdebug import modes
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import Trial, create_trial

HEAD = """
import collections
import numpy as np
import smdebug
from smdebug import modes
from smdebug.exceptions import *
from smdebug.rules.rule import Rule
"""
LAST = 7
# Each file, and the global steps at which its condition is met.
RULES: dict[str, tuple[str, list[int]]] = {
    "mean of a collection above a threshold": (
        """
        class Mine(Rule):
            def __init__(self, base_trial, threshold=10.0):
                super().__init__(base_trial)
                self.threshold = float(threshold)
            def invoke_at_step(self, step):
                for tname in self.base_trial.tensor_names(collection="gradients"):
                    t = self.base_trial.tensor(tname)
                    if t.reduction_value(step, "mean", abs=True) > self.threshold:
                        return True
                return False
        """,
        [5, 6],
    ),
    "required tensors of a collection": (
        """
        class Mine(Rule):
            def set_required_tensors(self, step):
                for tname in self.base_trial.tensor_names(collection="gradients"):
                    self.req_tensors.add(tname, steps=[step])
            def invoke_at_step(self, step):
                return any(t.reduction_value(step, "max") > 10 for t in self.req_tensors.get())
        """,
        [5, 6],
    ),
    "required tensors by pattern": (
        """
        class Mine(Rule):
            def set_required_tensors(self, step):
                self.req_tensors.add(name="gradient", steps=[step], trial=None,
                                     should_match_regex=True)
            def invoke_at_step(self, step):
                assert list(self.req_tensors.get_names()) == ["gradient/fc_weight"]
                assert self.req_tensors.get_tensor_steps("gradient/fc_weight") == [step]
                return step == 1
        """,
        [1],
    ),
    "required tensors and nothing else": (
        """
        class Mine(Rule):
            def set_required_tensors(self, step):
                self.req_tensors.add("loss", steps=[step])
            def invoke_at_step(self, step):
                return False
        """,
        [],
    ),
    "accuracy of evaluation steps by the inner map of modes": (
        """
        class Mine(Rule):
            def __init__(self, base_trial, predictions="CrossEntropyLoss_0_input_0",
                         labels="CrossEntropyLoss_0_input_1", previous_accuracy=0.9):
                super().__init__(base_trial)
                self.base_trial = base_trial
                self.names = predictions, labels
                self.previous_accuracy = float(previous_accuracy)
                self.right = self.samples = 0
            def invoke_at_step(self, step):
                if self.base_trial._global_to_mode[step][0] == modes.EVAL:
                    step = self.base_trial._global_to_mode[step][1]
                    first, second = (self.base_trial.tensor(name).value(step, mode=modes.EVAL)
                                     for name in self.names)
                    self.right += np.sum(np.argmax(first, axis=1) == second)
                    self.samples += first.shape[0]
                    return self.previous_accuracy - self.right / self.samples > 0.3
                return False
        """,
        [7],
    ),
    "values by name and step in a dictionary": (
        """
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__(base_trial)
                self.tensors = collections.OrderedDict()
            def invoke_at_step(self, step):
                for tname in self.base_trial.tensor_names(regex=".*relu_output"):
                    if "gradients" not in tname:
                        try:
                            tensor = self.base_trial.tensor(tname).value(step)
                            self.tensors.setdefault(tname, {}).setdefault(step, 0)
                            self.tensors[tname][step] += np.sum(tensor, axis=0) / tensor.shape[0]
                        except:
                            self.logger.warning(f"Can not fetch tensor {tname}")
                return len(self.tensors) > 0 and len(self.tensors["relu_output"]) == 3
        """,
        [2],
    ),
    "variance across layers": (
        """
        class Mine(Rule):
            def __init__(self, base_trial, ):
                super().__init__(base_trial)
                self.extremes = {}
            def invoke_at_step(self, step):
                for tname in self.base_trial.tensor_names(regex=[".*gradient", ".*weight"]):
                    variance = np.var(self.base_trial.tensor(tname).value(step).flatten())
                    low, high = self.extremes.get(step, (np.inf, 0))
                    self.extremes[step] = min(low, variance), max(high, variance)
                return self.extremes[step][1] > 100
        """,
        [4, 5, 6],
    ),
    "training steps by mode": (
        """
        import smdebug.core.modes
        class Mine(Rule):
            def invoke_at_step(self, step):
                mode, own = self.base_trial.mode(step), self.base_trial.mode_step(step)
                assert self.base_trial.global_step(mode, own) == step
                for tname in self.base_trial.tensor_names(collection="gradients",
                                                          mode=smdebug.modes.TRAIN):
                    t = self.base_trial.tensor(tname)
                    v = t.value(step_num=own, worker=None, mode=smdebug.modes.TRAIN)
                    return t.reduction_value(own, "variance", mode=modes.TRAIN) + v.max() >= 20
        """,
        [5, 6],
    ),
    "not enough change since the previous step": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                tensor = self.base_trial.tensor("weight_1")
                steps = tensor.prev_steps(step, 2)
                if len(steps) < 2:
                    return False
                before, now = (tensor.value(one) for one in steps)
                return bool(np.allclose(before, now, rtol=1e-3, atol=0))
        """,
        [1, 3, 5],
    ),
    "loss higher than before": (
        """
        from smdebug.rules import Rule
        class Mine(Rule):
            def __init__(self, base_trial, collection_names="losses", num_steps="2"):
                super().__init__(base_trial)
                self.names, self.num_steps = collection_names.split(","), int(num_steps)
            def invoke_at_step(self, step):
                for name in self.names:
                    for tname in self.base_trial.tensor_names(step=step, collection=name):
                        tensor = self.base_trial.tensor(tname)
                        steps = [s for s in tensor.steps() if s <= step][-1 - self.num_steps:]
                        if tensor.value(steps[-1])[0] > tensor.value(steps[0])[0]:
                            return True
                return False
        """,
        [5, 6, 7],
    ),
    "loss is not a number": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                loss = self.base_trial.tensor("loss").value(step)
                return np.isnan(loss).any() or not np.isfinite(loss).all()
        """,
        [],
    ),
    "patience": (
        """
        class Mine(Rule):
            def __init__(self, base_trial, patience=2):
                super().__init__(base_trial)
                self.patience, self.bad = int(patience), 0
            def invoke_at_step(self, step):
                self.bad = self.bad + 1 if self.base_trial.tensor("loss").value(step) > 0.6 else 0
                if self.bad > self.patience:
                    self.logger.info("Step %d: %d bad steps", step, self.bad)
                    return True
                return False
        """,
        [2, 7],
    ),
    "exceptions as answers": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                try:
                    self.base_trial.tensor("nothing").value(step)
                except TensorUnavailable:
                    pass
                try:
                    return bool(self.base_trial.tensor("gradient/fc_weight").value(step)[0, 0] > 9)
                except TensorUnavailableForStep as err:
                    assert err.tname == "gradient/fc_weight"
                    return False
        """,
        [5, 6],
    ),
    "state of a step": (
        """
        from smdebug.core.tensor import StepState
        class Mine(Rule):
            def invoke_at_step(self, step):
                assert self.base_trial.has_passed_step(step) == StepState.AVAILABLE
                return self.base_trial.steps(mode=modes.EVAL) == [0, 1]
        """,
        [7],
    ),
    "workers": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                tensor = self.base_trial.tensor("loss")
                values = {w: tensor.value(step, worker=w) for w in tensor.workers(step)}
                assert list(values) == self.base_trial.workers()
                return sum(v[0] for v in values.values()) > 0.85
        """,
        [0, 6, 7],
    ),
    "a collection of one's own": (
        """
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__(base_trial)
                base_trial.collection("mine").include(".*weight_1")
            def invoke_at_step(self, step):
                names = self.base_trial.tensor_names(step=step, collection="mine")
                assert "losses" in self.base_trial.collections()
                return names == ["weight_1"] and step == 2
        """,
        [2],
    ),
    "saved reductions": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                found = self.base_trial.tensor("reduced").reduction_values(step)
                return found.get(("mean", True), 0) > 4
        """,
        [5, 6],
    ),
    "shapes": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                return self.base_trial.tensor("relu_output").shape(step) != (2, 3)
        """,
        [],
    ),
    "arguments by name and by type": (
        """
        class Mine(Rule):
            def __init__(self, base_trial, action_str="", other_trials=None, limit: float = 0.5):
                super().__init__(base_trial=base_trial, action_str=action_str,
                                 other_trials=other_trials)
                self.limit = limit
            def invoke_at_step(self, step) -> bool:
                return self.base_trial.tensor("loss").value(step).mean() < float(self.limit)
        """,
        [3, 4],
    ),
    "None as the second argument": (
        """
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__(base_trial, None)
            def invoke_at_step(self, step):
                return step == 3
        """,
        [3],
    ),
    "actions of nobody": (
        """
        from smdebug.rules.action import Actions
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__(base_trial, action_str="")
                assert Actions("", rule_name="Mine") is not None
            def invoke_at_step(self, step):
                return step == 3
        """,
        [3],
    ),
    "a report of its own": (
        """
        class Mine(Rule):
            def __init__(self, base_trial, limit=0.5):
                super().__init__(base_trial)
                self.report["RuleParameters"] = f"limit:{limit}"
            def invoke_at_step(self, step):
                self.report["Datapoints"] += 1
                if self.report["Datapoints"] == 4:
                    self.report["Violations"] += 1
                    self.report["RuleTriggered"] += 1
                    self.report["Details"][step] = self.rule_name
                    return True
        """,
        [3],
    ),
    "files of its own": (
        """
        import json, os, tempfile
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__(base_trial)
                self.folder = tempfile.mkdtemp()
            def invoke_at_step(self, step):
                with open(os.path.join(self.folder, "seen.json"), "a") as file:
                    file.write(json.dumps(step))
                return len(os.listdir(self.folder)) > 1
        """,
        [],
    ),
    "two classes and a helper": (
        """
        def low(value): return value < 0.5
        class Base(Rule):
            def invoke_at_step(self, step):
                return self.judge(self.base_trial.tensor("loss").value(step))
        class Mine(Base):
            judge = staticmethod(low)
        """,
        [3, 4],
    ),
    "older names of questions": (
        """
        from smdebug.core.logger import get_logger
        from smdebug.core.collection import CollectionKeys
        logger = get_logger()
        class Mine(Rule):
            def invoke_at_step(self, step):
                names = self.base_trial.tensors_in_collection(CollectionKeys.LOSSES)
                assert names == self.base_trial.tensors_matching_regex(["^loss$"])
                assert self.base_trial.tensors(collection="losses") == names
                logger.info(names)
                return step == 1
        """,
        [1],
    ),
    "no more refreshing": (
        """
        from smdebug.analysis.utils import no_refresh
        from smdebug.trials import LocalTrial, S3Trial, Trial
        class Mine(Rule):
            def invoke_at_step(self, step):
                with no_refresh(self.base_trial) as trial:
                    assert isinstance(trial, Trial) and not isinstance(trial, S3Trial)
                    return max(trial.steps()) == 4
        """,
        [4],
    ),
    "raises the condition": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                if self.base_trial.tensor("loss").value(step)[0] < 0.5:
                    raise RuleEvaluationConditionMet(self.rule_name, step)
        """,
        [3, 4],
    ),
    "a loop of its own": (
        """
        class Mine(Rule):
            def invoke_at_step(self, step):
                pass
            def invoke(self, step):
                if step in self.base_trial.steps() and step == 4:
                    raise RuleEvaluationConditionMet(self.rule_name, step)
        """,
        [4],
    ),
}
# Files whose own text cannot work, here as in smdebug, and what is said of them.
BROKEN = {
    "base without a trial": (
        """
        class Mine(Rule):
            def __init__(self, base_trial):
                super().__init__()
            def invoke_at_step(self, step):
                return False
        """,
        "base_trial",
    ),
    "no rule": (
        """
        class Mine():
            def __init__(self, base_trial):
                super().__init__()
            def invoke_at_step(self, step):
                return False
        """,
        "Mine",
    ),
    "another package": (
        """
        from sagemaker.rules.rule import Rule
        class Mine(Rule):
            def invoke_at_step(self, step):
                return False
        """,
        "sagemaker",
    ),
    "lost indentation": ("class Mine(Rule):\ndef invoke_at_step(self, step):\nreturn True", "line"),
}


def loss(step: int) -> float:
    return [0.9, 0.8, 0.7, 0.45, 0.4, 0.8, 0.9, 1.0][step]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write eight steps, of which 3 and 7 are of evaluation; `smdebug` saved such ones."""
    path = tmp_path_factory.mktemp("public") / "trial"
    groups = {"losses": "^loss$", "gradients": "^gradient", "weights": "^weight"}
    with TrialWriter(path, collections=groups) as writer:
        for step in range(LAST + 1):
            evaluates = step % 4 == 3
            ramp = np.linspace(0, 1, 6).reshape(2, 3)
            tensors = {"loss": np.array([loss(step)]), "relu_output": ramp - 0.1}
            tensors["weight_1"] = ramp * 10 * (1 + step // 2 if step < LAST else 1)
            if evaluates:
                tensors["CrossEntropyLoss_0_input_0"] = np.eye(4)
                wrong = 0 if step < LAST else 3
                tensors["CrossEntropyLoss_0_input_1"] = (np.arange(4) + wrong) % 4
            tensors["gradient/fc_weight"] = np.full((2, 2), 20.0 if step in {5, 6} else 0.1)
            writer.step(
                step,
                tensors,
                mode=modes.EVAL if evaluates else modes.TRAIN,
                mode_step=step // 4 if evaluates else step - step // 4,
                reductions={"reduced": {("mean", True): np.float32(step if step < LAST else 0)}},
            )
    return path


@pytest.fixture
def trial(path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    trial = create_trial(str(path))
    trial.steps()
    return trial


def load(folder: Path, source: str, trial: Trial) -> Rule:
    file = folder / "my_custom_rule.py"
    file.write_text(HEAD + textwrap.dedent(source), encoding="utf-8")
    return construct(bind(load_source(file), {}), trial)


@pytest.mark.parametrize("name", RULES)
def test_judged_by_the_runner(tmp_path: Path, trial: Trial, name: str) -> None:
    source, met = RULES[name]
    runner = InProcessInvoker("Mine", load(tmp_path, source, trial), [trial])
    answers = [runner.judge(step) for step in range(LAST + 1)]
    assert [answer.reason for answer in answers if answer.did is InvocationOutcome.FAILED] == []
    assert [
        step for step, answer in enumerate(answers) if answer.did is InvocationOutcome.MET
    ] == met


@pytest.mark.parametrize("name", RULES)
def test_invoked_in_a_notebook(tmp_path: Path, trial: Trial, name: str) -> None:
    source, met = RULES[name]
    rule = load(tmp_path, source, trial)
    with pytest.raises(RuleEvaluationConditionMet if met else NoMoreData) as ended:
        invoke_rule(rule, raise_eval_cond=True)
    assert not met or getattr(ended.value, "step", None) == met[0]


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_work_is_reported(tmp_path: Path, trial: Trial, name: str) -> None:
    source, said = BROKEN[name]
    with pytest.raises(ClientError, match=said):
        load(tmp_path, source, trial)
