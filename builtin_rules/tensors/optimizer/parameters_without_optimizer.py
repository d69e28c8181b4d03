"""ParametersWithoutOptimizer: parameters get gradients, but no optimizer holds them."""

from collections import Counter
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.sustained import steps_in_a_row
from builtin_rules.statistics.tensor_selection import any_met
from builtin_rules.statistics.training_scalars import scalars_of_mode
from smdebug.rules.extensions import Quantity, Severity, TensorInput

STEPS: Final = "steps with parameters in no optimizer"
TRAINED: Final = TensorInput("trained parameters", (), ("^optimizer/trained_parameters$",))
REPLACED: Final = TensorInput("replaced parameters", (), ("^optimizer/replaced_parameters$",))
NOT_HELD: Final = TensorInput("parameters in no optimizer", (), ("^optimizer/not_held/",))
UNFROZEN: Final = 2


class ParametersWithoutOptimizer(DeclaredRule):
    """Met when parameters that should be trained are in no optimizer at `patience` steps in a row.

    A parameter is in no optimizer if it requires and gets gradients, no optimizer of the process
    holds it, and it has kept its values since this was first seen at an update. That alone is no
    fault: scripts train the last layer of a model that they have not frozen, or take the gradient
    of a fixed network. The condition is met if, at saved steps with an update,

    - the parameters in the optimizers get no gradients at all: the optimizer was made for another
      model, or before adapters were added and the base was frozen;
    - an optimizer also holds parameters that get no gradients and that the model has no longer, or
      that no module has: a layer was replaced after the optimizer was made;
    - some of the parameters in no optimizer were frozen at an earlier update: they were unfrozen
      after the optimizer was made.

    Each worker is judged separately.
    """

    READS = (
        "the tensors optimizer/trained_parameters, optimizer/replaced_parameters and "
        "optimizer/not_held/<parameter>, which the PyTorch hook saves in the collection optimizer."
    )
    SAVED = ("optimizer",)
    SEVERITY = Severity.ERROR
    patience = steps_in_a_row(3)
    QUANTITIES = (Quantity(STEPS, "saved steps in a row with parameters in no optimizer"),)

    required_inputs = (TRAINED,)

    def _prepare(self) -> None:
        self._steps: Counter[str] = Counter()  # in a row with the fault, by worker

    def invoke_at_step(self, step: int) -> bool:
        """Judge which parameters the optimizers hold at global step `step`."""
        trained, replaced, flags = (
            scalars_of_mode(self.base_trial, step, tensors)
            for tensors in (TRAINED, REPLACED, NOT_HELD)
        )
        answers = [
            self._judge(
                step,
                worker,
                {name: flag for (name, owner), flag in flags.items() if owner == worker and flag},
                trained=count,
                replaced=sum(held for (_, owner), held in replaced.items() if owner == worker),
            )
            for (_, worker), count in trained.items()
        ]
        return any_met(self, answers, "no update at this step")

    def _judge(
        self, step: int, worker: str, flags: dict[str, float], *, trained: float, replaced: float
    ) -> bool:
        if flags and not trained:
            reason = "The optimizers hold none that get gradients."
        elif flags and replaced:
            reason = f"The optimizers still hold replaced ones: {replaced:.0f}."
        elif UNFROZEN in flags.values():
            flags = {name: flag for name, flag in flags.items() if flag == UNFROZEN}
            reason = "They were frozen at an earlier update."
        else:
            reason = ""
        steps = self._steps[worker] = self._steps[worker] + 1 if reason else 0
        first = next(iter(flags), None)
        note = f"Parameters with gradients in no optimizer: {len(flags)}. {reason}"
        met = bool(reason) and steps >= self.patience
        return self.record((first, worker), step, STEPS, steps, self.patience, met=met, note=note)
