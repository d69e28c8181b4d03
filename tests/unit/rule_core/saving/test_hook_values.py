"""What a hook saves of a tensor comes back: values, names, moments, reductions of integers."""

from pathlib import Path
from typing import Any

import hooked
import numpy as np
import pytest
import rawtrial
from hooked import ONES

from rule_core.model.reduction_config import ReductionConfig


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


VALUES: dict[str, Any] = {
    "a/b": np.int8([-128, 127]),
    'quote" and \\': np.uint16([0, 65535]),
    "line\nbreak\ttab\0nul": np.complex64([1 + 2j, -3j]),
    "größe ✓ 🙂": np.float16([0.1]),
    "../../etc/passwd": np.arange(6, dtype=">i4").reshape(3, 2),
    " ": 2.5,
    "": True,
    "smdebug/x": np.uint64([2**64 - 1]),
    "x" * 10_000: np.arange(6).reshape(2, 3).T,
    "list": [[1, 2], [3, 4]],
    "0-D": np.array(4.0),
    "texts": ["", "ünï ✓"],
    "text": "one",
}


def test_values_and_names_of_every_kind_come_back(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        for name, value in VALUES.items():
            hook.save_tensor(name, value)
    trial = hooked.opened(tmp_path)
    assert trial.tensor_names() == sorted(VALUES)
    for name, value in VALUES.items():
        expected = value if isinstance(value, np.ndarray) else np.atleast_1d(value)
        found = trial.tensor(name).value(0)
        assert (found.shape, found.tolist()) == (expected.shape, expected.tolist())
        assert found.dtype == expected.dtype.newbyteorder("=")


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16"])
def test_non_finite_values_are_kept_bit_for_bit(tmp_path: Path, name: str) -> None:
    dtype = rawtrial.dtype_of(name)
    bits = np.arange(-3, 4, dtype=f"i{dtype.itemsize}")
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0]).astype(dtype)
    quiet = np.concatenate([bits.view(dtype), odd])
    with hooked.hook(tmp_path) as hook:
        hook.save_tensor("odd", quiet)
    found = hooked.opened(tmp_path).tensor("odd").value(0)
    assert (found.dtype, found.tobytes()) == (dtype, quiet.tobytes())
    assert rawtrial.saved_value(tmp_path, "odd", 0).tobytes() == quiet.tobytes()


def test_the_value_is_that_of_the_call(tmp_path: Path) -> None:
    weight = np.zeros(3)
    with hooked.hook(tmp_path) as hook:
        for step in range(3):
            hook.save_tensor("w", weight)
            hook.save_scalar("s", weight[:1])
            weight += step + 1
            hook.step()
    trial = hooked.opened(tmp_path)
    assert hooked.values(trial, "w") == {0: [0] * 3, 1: [1] * 3, 2: [3] * 3}
    assert hooked.values(trial, "scalar/s") == {0: [0], 1: [1], 2: [3]}


def test_what_was_saved_can_be_read_after_a_flush(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.flush()
        for step in range(5):
            hook.save_tensor("w", np.array([step]))
            hook.flush()
            assert sorted(hooked.records(tmp_path)) == list(range(step + 1))
            assert hook.global_step == step


def test_the_last_value_of_a_name_in_a_step_counts(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        for value in (1, 2, 3):
            hook.save_tensor("w", np.array([value]))
    assert hooked.values(hooked.opened(tmp_path), "w") == {0: [3]}
    assert hooked.records(tmp_path) == {0: ["w"]}


def test_arrays_without_elements_are_skipped(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.save_tensor("none", np.zeros((0, 3)))
        hook.save_tensor("some", ONES)
    assert hooked.records(tmp_path) == {0: ["some"]}
    reduced = ReductionConfig(reductions=["min", "sum", "mean"], save_shape=True)
    with hooked.hook(tmp_path / "reduced", reduction_config=reduced) as hook:
        hook.save_tensor("none", np.zeros((0, 3)))
        hook.save_tensor("text", ["a"])
    assert hooked.records(tmp_path / "reduced") == {0: ["smdebug/reductions/sum/none"]}
    assert hooked.opened(tmp_path / "reduced").tensor("none").shape(0) == (0, 3)


def test_integers_are_reduced_without_overflow(tmp_path: Path) -> None:
    config = ReductionConfig(reductions=["sum", "min"], abs_reductions=["max"])
    with hooked.hook(tmp_path, reduction_config=config) as hook:
        hook.save_tensor("w", np.full(1000, -128, np.int8))
    found = hooked.opened(tmp_path).tensor("w").reduction_values(0)
    assert {one: value.tolist() for one, value in found.items()} == {
        ("sum", False): [-128_000],
        ("min", False): [-128],
        ("max", True): [128],
    }
