"""GradientNormZero: gradients have become 0 while the loss is above 0."""

from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count
from builtin_rules.statistics.tensor_selection import LOSSES, TensorKey, any_met
from builtin_rules.statistics.training_scalars import GRADIENT_NORMS, finite_scalars
from smdebug.rules.extensions import Quantity

NORM: Final = "norm"
NEVER_POSITIVE: Final = "the gradient norm was never above 0"


class GradientNormZero(DeclaredRule):
    """Met when a gradient norm is exactly 0 in `patience` rows in a row with losses above 0.

    A row is a saved step of mode TRAIN, or without a mode, that has the norm. It counts if one of
    the losses at the step is above 0, and starts the count anew if all are 0 or less: nothing is
    left to learn there. A norm that was never above 0 is not judged, as some writers save 0 for a
    norm that they do not know. A finding has recovered when the norm is above 0 again. NaN and
    infinity are left out. Each norm and worker is judged by itself.
    """

    READS = "the collections gradient_norms and losses: values of one element."
    patience = count("Rows in a row with a norm of 0.", 10, "rows")
    QUANTITIES = (Quantity(NORM, "gradient norm", worse="below"),)

    required_inputs = (GRADIENT_NORMS, LOSSES)

    def _prepare(self) -> None:
        self._zeros: dict[TensorKey, int] = {}  # rows in a row, once a norm was above 0

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradient norms of global step `step`."""
        norms = finite_scalars(self.base_trial, step, GRADIENT_NORMS)
        losses = finite_scalars(self.base_trial, step, LOSSES)
        if not (norms and losses):
            return self.not_judged("no gradient norm and loss of training at this step")
        learns = max(losses.values()) > 0
        answers = [self._judge(step, key, norm, learns=learns) for key, norm in norms.items()]
        return any_met(self, answers, NEVER_POSITIVE)

    def _judge(self, step: int, key: TensorKey, norm: float, *, learns: bool) -> bool | None:
        if norm > 0:
            if self._zeros.get(key, 0) >= self.patience:
                self.found(step, *key, recovers=True)
            self._zeros[key] = 0
        if key not in self._zeros:
            return None
        self._zeros[key] = self._zeros[key] + 1 if norm == 0 and learns else 0
        zeros = self._zeros[key]
        note = f"0 for {zeros} rows."
        return self.record(key, step, NORM, norm, 0.0, met=zeros >= self.patience, note=note)
