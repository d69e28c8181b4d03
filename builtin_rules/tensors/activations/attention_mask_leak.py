"""AttentionMaskLeak: causal attention sees later positions."""

import re
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import flag, names, share
from builtin_rules.statistics.sustained import finite_array
from builtin_rules.statistics.tensor_selection import SavedTensor, any_met, saved_tensors
from builtin_rules.tensors.activations.attention import PROBABILITIES, future_mass, probabilities
from smdebug.rules.extensions import Quantity, Severity, TensorInput

MASS: Final = "mass above the diagonal"
SAVED: Final = r"^attention/.*future_mass$"


class AttentionMaskLeak(DeclaredRule):
    """Met when causal attention gives later positions a mass above `threshold`.

    The mass is the mean over the queries of the probabilities above the diagonal. The hook saves it
    as `attention/<module>/future_mass`, for causal attention only. With `causal`, it is computed
    from the attention probabilities that `tensor_regex` selects, ``(..., queries, keys)``; with
    more keys than queries, the last query sees all keys. A mass equal to `threshold` does not meet
    the condition. Steps of all modes are judged, each tensor and worker separately. Tensors with
    NaN or infinity, and arrays whose rows do not add up to 1, are not judged.
    """

    READS = (
        "the tensors attention/<module>/future_mass; with `causal`, the attention probabilities: "
        "values."
    )
    threshold = share("Largest accepted mass above the diagonal.", 1e-6, "share")
    causal = flag("Whether the attention of the selected tensors is causal.")
    tensor_regex = names(PROBABILITIES)
    SEVERITY = Severity.ERROR
    QUANTITIES = (Quantity(MASS, "attention mass above the diagonal", log=True),)

    def _prepare(self) -> None:
        patterns = (SAVED, *(self.tensor_regex if self.causal else ()))
        self._inputs = TensorInput("causal attention", patterns=patterns)
        self.required_inputs = (self._inputs,)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the attention of global step `step`."""
        names = self._inputs.names(self.base_trial, step)
        answers = [
            self._judge(saved, step) for saved in saved_tensors(self.base_trial, step, names)
        ]
        return any_met(self, answers, "no causal attention that can be judged at this step")

    def _judge(self, saved: SavedTensor, step: int) -> bool | None:
        if re.search(SAVED, saved.name):
            array = finite_array(saved, step)
            mass = None if array is None else float(array.max())
        else:
            array = probabilities(saved, step)
            mass = None if array is None else future_mass(array)
        if mass is None:
            return None
        met = mass > self.threshold
        return self.record(saved.key, step, MASS, mass, self.threshold, met=met)
