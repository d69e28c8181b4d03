"""ProbabilitiesAsLogits: a loss that expects logits gets probabilities, or the reverse."""

import re
from typing import Final, NamedTuple

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count
from builtin_rules.statistics.previous_values import is_learning_step
from builtin_rules.statistics.sustained import NOT_TRAINING, finite_array, steps_in_a_row
from builtin_rules.statistics.tensor_selection import SavedTensor, TensorKey, any_met, saved_tensors
from smdebug.rules.extensions import Quantity, Severity, TensorInput

STEPS: Final = "suspect steps"
TOLERANCE: Final = 1e-3  # of the sum of probabilities
BINARY_PATIENCE: Final = 10  # untrained logits may lie between 0 and 1 for a while
_FIRST: Final = r"(?i)^(?!.*(binary|gaussian|poisson))"
CROSS_ENTROPY: Final = _FIRST + r".*cross_?entropy(loss)?\d*_input_0$"
NLL: Final = _FIRST + r".*nll_?loss\d*_input_0$"
BINARY: Final = r"(?i)bce_?with_?logits_?(loss)?\d*_input_0$"
INPUTS: Final = TensorInput("predictions given to a loss", patterns=(CROSS_ENTROPY, NLL, BINARY))
_ROWS: Final = 2  # dimensions


class Suspicion(NamedTuple):
    """What is wrong with predictions, how serious it is, and for how many steps it must last."""

    note: str
    severity: Severity
    patience: int


class ProbabilitiesAsLogits(DeclaredRule):
    """Met when a loss gets predictions of the wrong kind at `patience` saved steps in a row.

    The inputs of cross entropy must not be probabilities: rows of numbers >= 0 that add up to 1
    within 0.001. Those of negative log-likelihood must not be above 0, as logarithms of
    probabilities never are. Those of binary cross entropy with logits must not all lie between 0
    and 1, at ten saved steps in a row at least. Log-probabilities given to cross entropy are noted:
    they are harmless, since their softmax is the same. Classes are along axis 1.

    Rows of saved steps are judged from `rows` rows on. Only training steps count; each tensor and
    worker is judged separately. Tensors with NaN or infinity are not judged.
    """

    READS = (
        "the first input of CrossEntropyLoss, NLLLoss and BCEWithLogitsLoss, which the PyTorch "
        "hook saves as CrossEntropyLoss_input_0: values."
    )
    SAVED = ("loss_inputs",)
    patience = steps_in_a_row(3)
    rows = count("Smallest number of rows of a step that is judged.", 8, "rows")
    QUANTITIES = (Quantity(STEPS, "saved steps in a row with predictions of the wrong kind"),)

    required_inputs = (INPUTS,)

    def _prepare(self) -> None:
        self._suspect: dict[TensorKey, tuple[str, int]] = {}  # the note, and the steps in a row

    def invoke_at_step(self, step: int) -> bool:
        """Judge the predictions of global step `step`."""
        if not is_learning_step(self.base_trial, step):
            return self.not_judged(NOT_TRAINING)
        names = INPUTS.names(self.base_trial, step)
        answers = [
            self._judge(saved, step) for saved in saved_tensors(self.base_trial, step, names)
        ]
        return any_met(self, answers, f"no {INPUTS.label} with {self.rows} rows of finite numbers")

    def _judge(self, saved: SavedTensor, step: int) -> bool | None:
        array = finite_array(saved, step)
        if array is None or not array.ndim or len(array) < self.rows:
            return None
        suspicion = self._suspicion(saved.name, array)
        key = saved.key
        note, steps = self._suspect.get(key, ("", 0))
        if suspicion is None:
            suspicion, steps = Suspicion("", self.SEVERITY, self.patience), 0
        else:
            steps = steps + 1 if note == suspicion.note else 1
        self._suspect[key] = suspicion.note, steps
        note, severity, needed = suspicion
        return self.record(
            key,
            step,
            STEPS,
            steps,
            needed,
            met=steps >= needed,
            note=note or None,
            severity=severity,
        )

    def _suspicion(self, name: str, array: "np.ndarray") -> Suspicion | None:
        """Return what is wrong with the predictions of a step."""
        low, high = float(array.min()), float(array.max())
        if re.search(BINARY, name):
            steps = max(self.patience, BINARY_PATIENCE)
            wrong = Suspicion("All logits lie between 0 and 1.", Severity.WARNING, steps)
            return wrong if 0 <= low <= high <= 1 else None
        if array.ndim < _ROWS or array.shape[1] < _ROWS:
            return None
        if re.search(NLL, name):
            note = "Numbers above 0 are no logarithms of probabilities, as this loss expects."
            return Suspicion(note, Severity.ERROR, self.patience) if high > 0 else None
        if low >= 0 and _adds_up(array):
            note = "Probabilities are given to cross entropy: each row adds up to 1."
            return Suspicion(note, Severity.WARNING, self.patience)
        if high <= 0 and _adds_up(np.exp(array)):
            note = "Log-probabilities are given to cross entropy, which is harmless."
            return Suspicion(note, Severity.NOTE, self.patience)
        return None


def _adds_up(array: "np.ndarray") -> bool:
    """Return whether the classes of each row add up to 1."""
    return bool((np.abs(array.sum(axis=1) - 1.0) <= TOLERANCE).all())
