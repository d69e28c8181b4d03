"""RepresentationCollapse: embeddings of all inputs become the same."""

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

SPREAD: Final = "spread of the embeddings"
EMBEDDINGS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor holds embeddings of inputs, one a row, if one matches in its name.",
    default=r"(?i)(^|[./_])(projector|projection_head|proj_head)(_output_0|/outputs)$",
    also=(r"(?i)^(embeddings|representations|projections|z_?[12])$",),
    collection="embeddings",
)


class RepresentationCollapse(SustainedRule):
    """Met when the spread of the embeddings is below `threshold` for `patience` saved steps.

    Each row is divided by its length. The spread is the standard deviation over the rows, averaged
    over the columns, times the square root of the number of columns: 1 for rows spread evenly over
    a sphere, 0 for equal rows. A spread equal to `threshold` does not meet the condition, nor does
    one that has grown by half since it fell below, if it is a tenth of `threshold` or more. Only
    training steps count; each tensor and worker is judged separately. Tensors with NaN or infinity,
    with fewer than 8 rows, or with other than two dimensions are not judged.
    """

    TENSORS = ("embeddings", EMBEDDINGS)
    READS = "the collection embeddings: values, or their spread; and outputs of projection heads."
    SAVED = ("embeddings",)
    threshold = positive("Smallest accepted spread; even rows have 1.", 0.05, "spread")
    patience = steps_in_a_row(5)
    tensor_regex = names(EMBEDDINGS)
    SEVERITY = Severity.ERROR
    QUANTITIES = (Quantity(SPREAD, "spread of normalised rows x sqrt(columns)", worse="below"),)

    def _measure(self, saved: SavedTensor, step: int) -> TensorState | None:
        rows = finite_array(saved, step)
        if rows is None:
            return None
        if rows.size == 1:  # measured by the hook
            spread, note = float(rows.reshape(-1)[0]), None
        elif rows.ndim == 2 and len(rows) >= MIN_SAMPLES:  # noqa: PLR2004 - rows, columns
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            unit = rows / np.where(lengths > 0, lengths, 1.0)
            spread = float(unit.std(axis=0).mean() * np.sqrt(unit.shape[1]))
            note = f"Rows: {len(rows)}."
        else:
            return None
        is_bad = self._stays_low(saved.key, spread, is_low=spread < self.threshold)
        return TensorState(spread, is_bad, note)
