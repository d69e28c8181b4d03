"""Use the smdebug of whichever interpreter runs this, and report the time; documented names only.

    python bench_custom.py custom TRIAL           the documented custom rule, by `invoke_rule`
    python bench_custom.py workers TRIAL          the same for every worker
    python bench_custom.py fetch TRIAL RULE,...   what built-in rules read, without arithmetic
    python bench_custom.py open TRIAL             `create_trial`, its steps and tensor names

What is timed begins with opening the trial, after all imports.
"""

import sys
from typing import Any

from bench_child import Watch

from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trials import create_trial

FIRST_STEPS = 5
# What the built-in rules read at a step: how it is selected, how many earlier values of it are
# needed too, and whether only the first steps count.
READS: dict[str, list[tuple[dict[str, str], int, bool]]] = {
    "VanishingGradient": [({"collection": "gradients"}, 0, False)],
    "ExplodingTensor": [({}, 0, False)],
    "AllZero": [({"collection": "weights"}, 0, False)],
    "TensorVariance": [({"collection": "weights"}, 0, False)],
    "UnchangedTensor": [({"collection": "weights"}, 2, False)],
    "WeightUpdateRatio": [({"collection": "weights"}, 1, False)],
    "DeadRelu": [({"regex": ".*relu_output"}, 0, False)],
    "SaturatedActivation": [({"regex": ".*tanh_input|.*sigmoid_input"}, 0, False)],
    "PoorWeightInitialization": [
        ({"regex": ".*relu_input"}, 0, True),
        ({"collection": "gradients"}, 0, True),
        ({"collection": "losses"}, 0, True),
    ],
    "LossNotDecreasing": [({"collection": "losses"}, 0, False)],
    "Overfit": [({"collection": "losses"}, 0, False)],
    "Overtraining": [({"collection": "losses"}, 0, False)],
}


class CustomGradientRule(Rule):
    """Met when the mean magnitude of a gradient is above a threshold: the documented example."""

    def __init__(self, base_trial: Any, threshold: str = "10.0") -> None:
        super().__init__(base_trial, "")
        self.threshold = float(threshold)
        self.judged = 0

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradients of one step."""
        self.judged += 1
        for name in self.base_trial.tensor_names(collection="gradients"):
            tensor = self.base_trial.tensor(name)
            if tensor.reduction_value(step, "mean", abs=True) > self.threshold:
                return True
        return False


class EveryWorker(CustomGradientRule):
    """The same for every worker."""

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradients of all workers at one step."""
        self.judged += 1
        for name in self.base_trial.tensor_names(collection="gradients"):
            tensor = self.base_trial.tensor(name)
            for worker in tensor.workers(step):
                mean = tensor.reduction_value(step, "mean", worker=worker, abs=True)
                if mean > self.threshold:
                    return True
        return False


class Fetch(Rule):
    """Reads what a built-in rule reads, and does nothing with it."""

    def __init__(self, base_trial: Any, rule: str) -> None:
        super().__init__(base_trial, "")
        self.reads = READS[rule]
        self.judged = 0

    def invoke_at_step(self, step: int) -> bool:
        """Read what is needed at one step."""
        self.judged += 1
        for selected, earlier, only_first in self.reads:
            if only_first and self.judged > FIRST_STEPS:
                continue
            for name in self.base_trial.tensor_names(step=step, **selected):
                tensor = self.base_trial.tensor(name)
                for at in range(max(0, step - earlier), step + 1):
                    tensor.value(at)
        return False


def judge(trial: Any, rules: list[Any]) -> int:
    """Invoke rules at all steps of a trial, one after the other at each; return the steps."""
    steps = trial.steps()
    if len(rules) == 1:
        invoke_rule(rules[0], 0, steps[-1] + 1)
        return int(rules[0].judged)
    for step in steps:
        for rule in rules:
            rule.invoke(step)
    return len(steps)


def main(what: str, path: str, names: str = "") -> None:
    """Do what is asked for, and report."""
    watch = Watch()
    trial = create_trial(path)
    match what:
        case "open":
            trial.tensor(trial.tensor_names()[0]).steps()
            judged = len(trial.steps())
        case "fetch":
            judged = judge(trial, [Fetch(trial, name) for name in names.split(",")])
        case "workers":
            judged = judge(trial, [EveryWorker(trial)])
        case _:
            judged = judge(trial, [CustomGradientRule(trial)])
    watch.report(judged)


if __name__ == "__main__":
    main(*sys.argv[1:])
