"""The share of wrong predictions of a confusion matrix is exact, so that equal shares are equal."""

import numpy as np
import pytest

from builtin_rules.statistics.confusion_matrix import block


@pytest.mark.parametrize("scale", [1, 10])
def test_wrong_predictions_are_counted_exactly(scale: int) -> None:
    assert block(np.array([[5, 1], [0, 4]]) * scale, literal=False).wrong == 0.1
