"""TensorVariance against a second, slow version of it, over random trials."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from judging import judge, save

from builtin_rules import TensorVariance

NAMES = ("a.weight", "a.bias", "b.weight")
WORKERS = ("worker_0", "worker_1")
Value = list[float]
Trials = dict[str, dict[int, dict[str, Value]]]  # worker -> step -> name -> elements

numbers = st.sampled_from([0.0, 1.0, -2.0, 3.5, 1e-4, np.nan, np.inf])
tensors = st.dictionaries(st.sampled_from(NAMES), st.lists(numbers, max_size=4), min_size=1)
steps = st.dictionaries(st.integers(0, 9), tensors, min_size=1, max_size=3)


def slow_variance(value: Value) -> float:
    mean = sum(value) / len(value)
    return sum((one - mean) ** 2 for one in value) / len(value)


@given(
    st.lists(steps, min_size=1, max_size=2),
    st.sampled_from([None, 0.1, 2.0]),
    st.sampled_from([0.0, 1e-3, 0.05]),
)
def test_tensor_variance(
    trials: list[dict[int, dict[str, Value]]], high: float, low: float
) -> None:
    expected = {
        (step, name, worker)
        for worker, saved in zip(WORKERS, trials, strict=False)
        for step, values in saved.items()
        for name, value in values.items()
        if name.endswith("weight") and len(value) > 1
        for variance in [slow_variance(value)]
        if variance < low or (high is not None and variance > high)
    }
    with tempfile.TemporaryDirectory() as folder:
        for worker, saved in zip(WORKERS, trials, strict=False):
            arrays = {
                step: {name: np.array(value) for name, value in values.items()}
                for step, values in saved.items()
            }
            save(Path(folder), arrays, worker=worker, num_workers=len(trials))
        bounds = {"max_threshold": high, "min_threshold": low}
        found = judge(TensorVariance, Path(folder), tensor_regex="weight$", **bounds).findings
    assert {(one.step, one.tensor, one.worker) for one in found} == expected
