"""What a PyTorch hook saves of a tensor is what its collections are configured to save."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_models import ALWAYS, array, assert_same, hook, nn, opened, read, rows, small

import smdebug.pytorch as smd

torch = pytest.importorskip("torch", reason="torch is not installed.")
REDUCED = {
    ("min", False): np.min,
    ("max", False): np.max,
    ("mean", False): np.mean,
    ("std", False): np.std,
    ("variance", False): np.var,
    ("sum", False): np.sum,
    ("prod", False): np.prod,
    ("l1", False): lambda values: np.abs(values).sum(),
    ("l2", False): lambda values: np.sqrt(np.square(values).sum()),
    ("mean", True): lambda values: np.abs(values).mean(),
    ("l2", True): lambda values: np.sqrt(np.square(values).sum()),
}


def test_reductions_and_shapes_of_a_training(tmp_path: Path) -> None:
    config = smd.ReductionConfig(
        reductions=["min", "max", "mean", "std", "variance", "sum", "prod"],
        norms=["l1", "l2"],
        abs_reductions=["mean"],
        abs_norms=["l2"],
        save_shape=True,
    )
    model, watching = small(), hook(tmp_path, save_all=True, reduction_config=config)
    watching.register_module(model)
    output = model(rows(0))
    output.sum().backward()
    expected = {
        "Sequential_2.weight": array(model[2].weight),
        "gradient/Sequential_0.weight": array(model[0].weight.grad),
        "Sequential_output_0": array(output),
    }
    trial = opened(watching)
    for name, values in expected.items():
        tensor = trial.tensor(name)
        assert tensor.shape(0) == values.shape
        found = tensor.reduction_values(0)
        assert sorted(found) == sorted(REDUCED)
        for key, value in found.items():
            expected_value = REDUCED[key](values.astype(np.float64))
            np.testing.assert_allclose(value, expected_value, rtol=1e-4, atol=1e-6)


def test_each_collection_saves_what_it_is_configured_to(tmp_path: Path) -> None:
    watching = smd.Hook(tmp_path, save_config=ALWAYS, include_collections=["weights", "biases"])
    watching.get_collection("weights").reduction_config = smd.ReductionConfig(reductions=["max"])
    watching.register_module(model := small())
    model(rows(0))
    trial = opened(watching)
    assert trial.tensor("Sequential_0.weight").reduction_value(0, "max") == model[0].weight.max()
    assert_same({"Sequential_0.bias": array(model[0].bias)}, read(trial, 0, ["Sequential_0.bias"]))


def test_scalars(tmp_path: Path) -> None:
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model := small())
    for step in range(2):
        model(rows(step))
        watching.save_scalar("lr", torch.tensor(0.5 / (step + 1)))
    trial = opened(watching)
    assert [float(trial.tensor("scalar/lr").value(step)[0]) for step in (0, 1)] == [0.5, 0.25]


def test_complex_parameters(tmp_path: Path) -> None:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([1 + 2j, -3j]))

        def forward(self, x: Any) -> Any:
            return (self.weight * x).abs().sum()

    model, watching = Complex(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(torch.tensor([1 + 0j, 2j])).backward()
    found = read(opened(watching), 0)
    expected = {"Complex_weight": model.weight, "gradient/Complex_weight": model.weight.grad}
    assert_same(
        {name: array(one) for name, one in expected.items()}, {n: found[n] for n in expected}
    )
