"""ModeCollapse: the samples of a generator become alike."""

from collections import deque
from statistics import median
from typing import Final

import numpy as np

from builtin_rules.statistics.parameters import names, share
from builtin_rules.statistics.sustained import (
    MIN_SAMPLES,
    SustainedRule,
    TensorState,
    finite_array,
    steps_in_a_row,
)
from builtin_rules.statistics.tensor_selection import SavedTensor, TensorKey
from smdebug.rules.extensions import PatternsParam, Quantity, Severity

SPREAD: Final = "spread of the samples"
SAMPLES: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor holds generated samples, one a row, if one matches in its name.",
    default=r"(?i)^(fake|generated)(_(images?|samples?|data|batch))?$|^samples$",
    also=(r"(?i)(^|[./_])(generator|net_?g)_output_0$",),
    collection="samples",
)
RECENT_STEPS: Final = 5  # saved steps whose median is compared with its maximum


class ModeCollapse(SustainedRule):
    """Met when the spread of samples falls below `threshold` of its maximum and stays there.

    The spread is the root of the variance over the rows of a batch, averaged over all elements of a
    sample. The maximum is that of the median of five saved steps, so that an outlier does not
    count. The condition must hold at `patience` saved steps in a row; a share equal to `threshold`
    does not meet it. A spread of 0 meets it from the start. Only training steps count; each tensor
    and worker is judged separately. Tensors with NaN or infinity, or with fewer than 8 rows, are
    not judged.
    """

    TENSORS = ("samples", SAMPLES)
    READS = "the collection samples, and outputs of generators: values."
    threshold = share("Smallest accepted spread, as a share of its maximum.", 0.1, "share")
    patience = steps_in_a_row(3)
    tensor_regex = names(SAMPLES)
    SEVERITY = Severity.ERROR
    QUANTITIES = (Quantity(SPREAD, "spread of the samples / its maximum so far", worse="below"),)

    def _prepare(self) -> None:
        super()._prepare()
        self._recent: dict[TensorKey, deque[float]] = {}
        self._largest: dict[TensorKey, float] = {}

    def _measure(self, saved: SavedTensor, step: int) -> TensorState | None:
        samples = finite_array(saved, step)
        if samples is None or samples.ndim <= 1 or len(samples) < MIN_SAMPLES:
            return None
        spread = float(np.sqrt(samples.var(axis=0).mean()))
        key = saved.key
        recent = self._recent.setdefault(key, deque(maxlen=RECENT_STEPS))
        recent.append(spread)
        if len(recent) < RECENT_STEPS:
            return None
        largest = self._largest[key] = max(self._largest.get(key, 0.0), median(recent))
        relative = spread / largest if largest else 0.0  # all samples were equal from the start
        note = f"Spread {spread:.4g}, at most {largest:.4g} so far; rows: {len(samples)}."
        return TensorState(relative, relative < self.threshold, note)
