"""BroadcastTargets: a loss compares each prediction with each target of the batch."""

from collections import Counter
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.sustained import steps_in_a_row
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_scalars import scalars_of_mode
from smdebug.rules.extensions import Quantity, Severity, TensorInput

STEPS: Final = "steps with broadcast targets"
BROADCAST: Final = TensorInput("losses of numbers", (), ("^targets/broadcast$",))
NOTE: Final = (
    "Predictions and targets have different shapes, such as (N, 1) and (N,), and are broadcast."
)


class BroadcastTargets(DeclaredRule):
    """Met when predictions and targets are broadcast at `patience` saved steps in a row.

    A squared error, or an error of Huber or smooth L1, is broadcast if its predictions and its
    targets are as many, but are repeated along different dimensions: predictions of shape
    ``(N, 1)`` and targets of shape ``(N,)`` make N times N differences. One target for all
    predictions, or one prediction for all targets, is not meant. Only training steps count, and
    each worker is judged separately.
    """

    READS = (
        "the tensor targets/broadcast, which hooks of `rule-runner train` save for PyTorch: how "
        "many losses of a step are broadcast."
    )
    SAVED = ("targets",)
    SEVERITY = Severity.ERROR
    patience = steps_in_a_row(3)
    QUANTITIES = (Quantity(STEPS, "saved steps in a row with broadcast targets"),)

    required_inputs = (BROADCAST,)

    def _prepare(self) -> None:
        self._steps: Counter[TensorKey] = Counter()  # in a row

    def invoke_at_step(self, step: int) -> bool:
        """Judge the losses of global step `step`."""
        losses = scalars_of_mode(self.base_trial, step, BROADCAST)
        answers = [self._judge(step, key, broadcast) for key, broadcast in losses.items()]
        return any_met(self, answers, "no loss of numbers at this step")

    def _judge(self, step: int, key: TensorKey, broadcast: float) -> bool:
        steps = self._steps[key] = self._steps[key] + 1 if broadcast else 0
        met = steps >= self.patience
        return self.record(key, step, STEPS, steps, self.patience, met=met, note=NOTE)
