"""ValidationInTrainingMode: modules are evaluated in training mode, or trained in evaluation."""

import math
from dataclasses import dataclass
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_scalars import scalars_of_mode
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Quantity, Severity, TensorInput

EVALUATED: Final = "evaluated"
TRAINED: Final = "trained"
MODE: Final = TensorInput("the mode of modules", (), ("^model/training_mode$",))
AT_ONCE: Final = 3  # rows of training after an evaluation


@dataclass(slots=True)
class _Rows:
    """What one worker has saved so far."""

    trained: int = 0  # rows of training
    idle: int = 0  # latest rows of training with share 0, in a row
    has_evaluated: bool = False
    noted: bool = False


class ValidationInTrainingMode(DeclaredRule):
    """Met when a model is evaluated in training mode, or trained in evaluation mode.

    `model/training_mode` is the share of dropout and normalisation modules, and the model itself,
    that are in training mode in the forward pass. The condition is met if

    - it is 1 at a step of mode EVAL: `model.eval()` was not called;
    - it is 0 at 3 steps of mode TRAIN in a row, after an evaluation and after steps of training at
      which it was not: `model.train()` was not called after the evaluation;
    - it is 0 at the first `patience` steps of mode TRAIN.

    A share between 0 and 1 is a note at a step of mode EVAL: single modules are in training mode on
    purpose, as for Monte Carlo dropout. Between 0 and 1 in training, as with frozen normalisation
    beside dropout, it is not mentioned. NaN and steps without a mode are left out. Each worker is
    judged by itself.
    """

    READS = "the tensor model/training_mode at steps of the modes TRAIN and EVAL."
    SAVED = ("model",)
    patience = count("Steps of training in evaluation mode.", 10, "steps")
    QUANTITIES = (
        Quantity(EVALUATED, "share of modules in training mode, in evaluation"),
        Quantity(TRAINED, "share of modules in training mode, in training", worse="below"),
    )

    required_inputs = (MODE,)

    def _prepare(self) -> None:
        self._workers: dict[TensorKey, _Rows] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the mode of the modules at global step `step`."""
        answers = [
            judge(step, key, self._workers.setdefault(key, _Rows()), share)
            for mode, judge in (
                (ModeKeys.TRAIN, self._judge_training),
                (ModeKeys.EVAL, self._judge_evaluation),
            )
            if mode in self.base_trial.modes_at(step)
            for key, share in scalars_of_mode(self.base_trial, step, MODE, mode).items()
            if not math.isnan(share)
        ]
        return any_met(self, answers, "no mode of modules at this step")

    def _judge_evaluation(self, step: int, key: TensorKey, rows: _Rows, share: float) -> bool:
        rows.has_evaluated = True
        note, severity, is_new = "Some modules in training mode.", Severity.NOTE, not rows.noted
        if share >= 1.0:
            note, severity, is_new = "Evaluated in training mode.", Severity.WARNING, True
        rows.noted = rows.noted or 0.0 < share < 1.0
        met = share > 0.0 and is_new
        return self.record(key, step, EVALUATED, share, 0.0, met=met, note=note, severity=severity)

    def _judge_training(self, step: int, key: TensorKey, rows: _Rows, share: float) -> bool:
        rows.trained += 1
        rows.idle = rows.idle + 1 if share == 0.0 else 0
        always = rows.idle == rows.trained
        since_evaluation = rows.has_evaluated and not always and rows.idle >= AT_ONCE
        met = since_evaluation or (always and rows.idle >= self.patience)
        since = ", since an evaluation" if since_evaluation else " from the start"
        note = f"Trained in evaluation mode{since}."
        return self.record(key, step, TRAINED, share, 0.0, met=met, note=note)
