"""GradientAccumulates: gradients add up over steps, as without `zero_grad`."""

from collections import Counter, deque
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count, positive, share
from builtin_rules.statistics.previous_values import is_learning_step
from builtin_rules.statistics.tensor_selection import GRADIENTS, SavedTensor, numbers, saved_tensors
from builtin_rules.statistics.training_kind import TrainingKind
from smdebug.rules.extensions import Quantity, Severity, TensorInput

COSINE: Final = "cosine of successive gradients"
BAND_FACTOR: Final = 2.0  # see docs/decisions/0049-parameters.md
NORM: Final = "optimizer/grad_norm"
SECOND_NORM: Final = "optimizer/1/grad_norm"  # of a second optimizer
STALE: Final = "optimizer/stale_grad_norm"
LEFT: Final = "norm of the gradients left by the last update"
LEFT_SHARE: Final = 0.01  # of the norm at the optimizer
SUMS: Final = "norm at the optimizer / norm of the backward"


class GradientAccumulates(DeclaredRule):
    """Met when gradients are not set to zero after `patience` updates in a row.

    The hook for PyTorch measures the gradients that the last update has left when the next backward
    adds to them (`optimizer/stale_grad_norm`). Updates are counted at the saved steps that have it,
    and only if it is more than 1 % of the latest norm at the optimizer (`optimizer/grad_norm`).

    Without it, met when gradients point the same way for `patience` saved steps in a row and grow.
    The same way is a cosine above `cosine` with the gradient of the previous saved step, the median
    over all gradients with more than one element. They grow if the norm over all of them has risen
    at each of these steps as that of a sum does: after n steps it is n times the first one, to
    within a factor of 2, and more than `growth` times.

    Hooks of PyTorch save what each backward adds, so that these gradients never show a forgotten
    `zero_grad`. Where only the norm at the optimizer was saved (`optimizer/grad_norm`), it is
    compared with the norm over all gradients instead: met if their ratio has risen for `patience`
    saved steps in a row, and to more than `growth` times that before. A constant number of
    accumulated batches leaves the ratio as it is. With several optimizers, the norm of one is not
    over all gradients, and is not used. With several workers it is that of their mean, which those
    of a backward of one cannot be compared with.

    Adversarial trainings are not judged: the generator's backward adds to the gradients of the
    discriminator, which are set to zero before its own.

    Each worker is judged by itself, in training. Values that are not finite are left to
    `ExplodingTensor` and begin a new count.
    """

    SEVERITY = Severity.ERROR
    READS = (
        "the tensors optimizer/stale_grad_norm and optimizer/grad_norm, or the collection "
        "gradients: values."
    )
    SAVED = ("optimizer", "gradient_norms")
    cosine = share("A larger cosine of two gradients is the same way.", 0.9, "cosine")
    patience = count("Number of such updates or steps in a row that is too many.", 4, "saved steps")
    growth = positive("How many times larger the norm, or the ratio, has become.", 2.0, "ratio")
    QUANTITIES = (
        Quantity(LEFT, "norm of the gradients left by the last update", worse="above", log=True),
        Quantity(COSINE, "median cosine with the previous gradient", worse="above"),
        Quantity(SUMS, "norm at the optimizer / norm of the backward", worse="above", log=True),
    )
    UNSUITED = MappingProxyType(
        {TrainingKind.ADVERSARIAL: "adversarial training: models pass gradients to each other"}
    )

    required_inputs = (TensorInput(GRADIENTS.label, GRADIENTS.collections, (f"^{STALE}$",)),)

    def _prepare(self) -> None:
        # By worker: the latest gradients, and how many norms or ratios have risen in a row.
        self._before: dict[str, dict[str, Any]] = {}
        self._rising: dict[tuple[str, str], deque[float]] = {}
        self._latest_norms: dict[str, float] = {}
        self._in_a_row: Counter[str] = Counter()

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradients of global step `step` with the previous ones."""
        trial = self.base_trial
        if not is_learning_step(trial, step):
            return self.not_judged("no learning in this mode")
        reason = self.unsuited(trial)
        if reason:
            return self.not_judged(reason)
        if trial.has_tensor(STALE):
            answers = [
                self._judge_left(saved, step) for saved in saved_tensors(trial, step, [STALE])
            ]
            return any(answers) if answers else self.not_judged("no first backward after an update")
        gradients: dict[str, dict[str, Any]] = {}
        for saved in saved_tensors(trial, step, GRADIENTS.names(trial, step)):
            array = numbers(saved, step)
            if array is not None and array.size > 1:
                flat = np.array(array, np.float32).reshape(-1)
                gradients.setdefault(saved.worker, {})[saved.name] = flat
        answers = [
            answer
            for worker, arrays in gradients.items()
            if (answer := self._judge(worker, arrays, step)) is not None
        ]
        return any(answers) if answers else self.not_judged("no gradients to compare yet")

    def _judge_left(self, saved: SavedTensor, step: int) -> bool:
        """Judge the gradients that the last update has left."""
        worker = saved.worker
        norm = self._norm_at_optimizer(worker, step)
        if norm is not None:
            self._latest_norms[worker] = norm
        array = numbers(saved, step)
        left = np.nan if array is None else float(array.reshape(-1)[0])
        limit = LEFT_SHARE * self._latest_norms.get(worker, 0.0)
        is_left = bool(np.isfinite(left)) and left > limit
        self._in_a_row[worker] = self._in_a_row[worker] + 1 if is_left else 0
        met = self._in_a_row[worker] >= self.patience
        return self.measured(step, LEFT, left, limit, met=met, worker=worker)

    @np.errstate(over="ignore")  # gradients that explode are not judged
    def _judge(self, worker: str, arrays: dict[str, Any], step: int) -> bool | None:
        before, self._before[worker] = self._before.get(worker, {}), arrays
        with np.errstate(over="ignore"):
            norm = float(np.sqrt(sum(float(array @ array) for array in arrays.values())))
        if not np.isfinite(norm) or norm == 0:
            self._before.pop(worker)
            self._rising.pop((COSINE, worker), None)
            self._rising.pop((SUMS, worker), None)
            return None
        total = self._norm_at_optimizer(worker, step)
        if total is not None:
            if self.base_trial.num_workers > 1:
                return None
            ratio = total / norm
            met = self._grows(SUMS, worker, ratio, together=True)
            limit = self.growth * self._rising[SUMS, worker][0]
            return self.measured(step, SUMS, ratio, limit, met=met, worker=worker)
        cosines = [
            float(array @ before[name]) / (float(np.linalg.norm(array)) * length)
            for name, array in arrays.items()
            if name in before
            and before[name].shape == array.shape
            and (length := float(np.linalg.norm(before[name]))) > 0
            and array.any()
        ]
        if not cosines:
            self._grows(COSINE, worker, norm, together=False)
            return None
        middle = float(np.median(cosines))
        met = self._grows(COSINE, worker, norm, together=middle > self.cosine)
        first = self._rising[COSINE, worker][0]
        note = f"The norm has grown from {first:.3g} to {norm:.3g}." if met else None
        return self.measured(step, COSINE, middle, self.cosine, met=met, worker=worker, note=note)

    def _grows(self, quantity: str, worker: str, value: float, *, together: bool) -> bool:
        """Record a norm or ratio, and return whether it has risen for long enough and far."""
        rising = self._rising.setdefault((quantity, worker), deque())
        if not together or (rising and value <= rising[-1]):
            rising.clear()
        rising.append(value)
        if len(rising) <= self.patience or value <= self.growth * rising[0]:
            return False
        return quantity == SUMS or _is_linear(rising)

    def _norm_at_optimizer(self, worker: str, step: int) -> float | None:
        """Return the norm over the gradients that the optimizer used, or None."""
        trial = self.base_trial
        if not trial.has_tensor(NORM) or trial.has_tensor(SECOND_NORM):
            return None  # the norm of one of several optimizers is not over all gradients
        array = numbers(SavedTensor(trial.tensor(NORM), worker), step)
        value = None if array is None else float(array.reshape(-1)[0])
        return value if value is not None and np.isfinite(value) else None


def _is_linear(norms: Iterable[float]) -> bool:
    """Return whether norms grow as those of sums do: the n-th is about n times the first."""
    first, *later = norms
    shares = [norm / (first * number) for number, norm in enumerate(later, start=2)]
    return min(shares) >= 1 / BAND_FACTOR and max(shares) <= BAND_FACTOR
