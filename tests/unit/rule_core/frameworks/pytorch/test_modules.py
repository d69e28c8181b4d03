"""Modules: which of a model's modules work differently in training."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from rule_core.frameworks.pytorch.modules import training_share


@pytest.mark.parametrize(
    ("inside", "share"),
    [
        pytest.param(nn.Dropout(0.1), 1.0, id="dropout"),
        pytest.param(nn.BatchNorm1d(4), 1.0, id="batch norm"),
        pytest.param(nn.BatchNorm1d(4).eval(), 0.5, id="a norm in evaluation mode"),
        pytest.param(nn.Dropout(0.0), None, id="dropout of nothing"),
        pytest.param(nn.LayerNorm(4), None, id="layer norm"),
        pytest.param(nn.RMSNorm(4), None, id="root mean square norm"),
        pytest.param(nn.GroupNorm(2, 4), None, id="group norm"),
    ],
)
def test_share_of_modules_in_training_mode(inside: Any, share: float | None) -> None:
    assert training_share(nn.Sequential(nn.Linear(4, 4), inside)) == share
