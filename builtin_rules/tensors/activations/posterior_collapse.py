"""PosteriorCollapse: no latent unit of a variational autoencoder depends on the input."""

from typing import Final

import numpy as np

from builtin_rules.statistics.parameters import names, positive
from builtin_rules.statistics.sustained import (
    MIN_SAMPLES,
    SustainedRule,
    TensorState,
    finite_array,
    steps_in_a_row,
)
from builtin_rules.statistics.tensor_selection import SavedTensor
from smdebug.rules.extensions import PatternsParam, Quantity, Severity

VARIANCE: Final = "largest variance of a latent mean"
MEANS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor holds means of latent units, a row for each input, if one matches.",
    default=r"(?i)(^|[./_])((fc|to|head|linear|z|latent)_?)?mu([_.]?head)?(_output_0|/outputs)?$",
    also=(
        r"(?i)(^|[./_])((fc|to)_mean|mean_head|(z|latent|posterior)_?means?)(_output_0|/outputs)?$",
    ),
    collection="latent_means",
)


class PosteriorCollapse(SustainedRule):
    """Met when no latent unit has a variance above `threshold` for `patience` saved steps.

    The variance is that of the latent mean of a unit over the inputs of a batch; a unit above
    `threshold` is active. A variance equal to `threshold` is not active. While the largest variance
    is half as large again as when it was first too small, and at least a tenth of `threshold`,
    units are still becoming active and the condition is not met. Only training steps count; each
    tensor and worker is judged separately. Tensors with NaN or infinity, with fewer than 8 rows, or
    with other than two dimensions are not judged.
    """

    TENSORS = ("latent means", MEANS)
    READS = "the collection latent_means, and outputs of layers named mu: values."
    threshold = positive("A latent unit with a larger variance is active.", 0.01, "variance")
    patience = steps_in_a_row(20)
    tensor_regex = names(MEANS)
    SEVERITY = Severity.ERROR
    QUANTITIES = (
        Quantity(VARIANCE, "largest variance of a latent mean over a batch", "below", log=True),
    )

    def _measure(self, saved: SavedTensor, step: int) -> TensorState | None:
        means = finite_array(saved, step)
        if means is None or means.ndim != 2 or len(means) < MIN_SAMPLES:  # noqa: PLR2004 - rows, units
            return None
        variances = means.var(axis=0)
        active = int(np.count_nonzero(variances > self.threshold))
        note = f"{active} of {variances.size} latent units are active; rows: {len(means)}."
        largest = float(variances.max())
        is_bad = self._stays_low(saved.key, largest, is_low=not active)
        return TensorState(largest, is_bad, note)
