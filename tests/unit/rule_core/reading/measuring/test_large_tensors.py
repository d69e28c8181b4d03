"""LargeTensors: large tensors are measured in pieces, locally and by ranges of remote files."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from faulty_store import REMOTE, CountingStore
from safetensors_files import checkpoint_index, whole_trial, write

from rule_core.exceptions import SMDebugValueError, TensorDamaged
from rule_core.model.array_difference import ChangeNorms
from rule_core.model.element_statistics import ZeroCount
from rule_core.model.reductions import OPERATIONS, Reduction, compute
from rule_core.model.streaming_statistics import PIECE_BYTES, Piece, measure
from rule_core.reading import saved_tensors
from rule_core.reading.measuring import large_tensors
from rule_core.storage.base import ByteRange, TrialStore
from rule_core.storage.local import LocalStore
from rule_core.trials.trial import Trial

SIZE = PIECE_BYTES // 2 + 1000
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_tensors, "LARGE", 1 << 12)
    monkeypatch.setattr(large_tensors, "BLOCK_BYTES", 100_003)


def values(dtype: Any) -> list[Any]:
    """Return the values of a tensor at two steps."""
    return [(RANDOM.standard_normal(SIZE) * 10).astype(dtype) for _ in range(2)]


def trial_of(root: Path, store: TrialStore, *arrays: Any) -> Trial:
    """Write one tensor at some steps; return the trial in a store."""
    for step, array in enumerate(arrays):
        write(root / f"step_{step}" / "model.safetensors", {"a": np.ones(3), "w": array})
    return whole_trial(checkpoint_index(store))


def store_of(kind: str, root: Path) -> TrialStore:
    """Return a local store, or one like that of a network."""
    store = LocalStore(root)
    return store if kind == "local" else CountingStore(store, REMOTE)


@pytest.mark.parametrize("kind", ["local", "remote"])
@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, "i4"]
)
def test_results_are_those_of_whole_tensors(tmp_path: Path, kind: str, dtype: Any) -> None:
    before, after = values(dtype)
    trial = trial_of(tmp_path, store_of(kind, tmp_path), before, after)
    tensor = trial.tensor("w")
    for operation, absolute in itertools.product(OPERATIONS, (False, True)):
        expected = compute(after, operation, absolute)
        result = tensor.reduction_value(1, operation, abs=absolute)
        assert result.dtype == expected.dtype
        assert np.array_equal(result, expected, equal_nan=True), (operation, absolute)
    change = ChangeNorms()
    assert tensor.measure(1, change, 0) == measure(after, [change], before)[change]
    zeros = ZeroCount()
    assert tensor.measure(1, zeros) == measure(after, [zeros])[zeros]


def test_no_read_is_large(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path), REMOTE)
    trial = trial_of(tmp_path, store, *values(np.float32))
    store.reads.clear()
    store.bytes = 0
    trial.tensor("w").measure(1, ChangeNorms(), 0)
    sizes = [byte_range.stop - byte_range.start for _, byte_range in store.reads if byte_range]
    assert len(sizes) == len(store.reads)
    assert max(sizes) <= 100_003
    assert store.bytes == 2 * 4 * SIZE


def test_what_was_asked_of_other_tensors_is_answered_in_the_same_pass(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path), REMOTE)
    array = values(np.float32)[0]
    names = ["u", "v", "w"]
    for step in range(2):
        tensors = dict.fromkeys(names, array * step)
        write(tmp_path / f"step_{step}" / "model.safetensors", tensors)
    trial = whole_trial(checkpoint_index(store))
    store.bytes = 0
    asked = 0
    for step, name in itertools.product(range(2), names):
        for operation in ("min", "max", "mean"):
            trial.tensor(name).reduction_value(step, operation)
            asked += 1
    assert asked == 18
    assert store.bytes == (3 + 5) * array.nbytes


class FailsOnZeros:
    """A statistic of a user that fails on some tensors."""

    def part(self, piece: Piece, before: Piece | None = None) -> float:
        del before
        return 1 / float(piece.elements[0])

    def join(self, parts: Sequence[float], size: int, dtype: "np.dtype[Any]") -> float:
        del size, dtype
        return parts[0]


def test_a_statistic_that_fails_harms_no_other(tmp_path: Path) -> None:
    array = values(np.float32)[0] + 100
    write(tmp_path / "model.safetensors", {"v": array, "w": array * 0})
    trial = whole_trial(checkpoint_index(LocalStore(tmp_path)))
    failing = FailsOnZeros()
    assert trial.tensor("v").measure(0, failing) > 0
    assert trial.tensor("w").reduction_value(0, "max") == 0
    with pytest.raises(ZeroDivisionError):
        trial.tensor("w").measure(0, failing)


def test_values_of_other_shapes_cannot_be_compared(tmp_path: Path) -> None:
    before, after = values(np.float32)
    trial = trial_of(tmp_path, LocalStore(tmp_path), before[1:], after)
    with pytest.raises(SMDebugValueError, match="another shape"):
        trial.tensor("w").measure(1, ChangeNorms(), 0)


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_a_truncated_or_deleted_file_is_damage(tmp_path: Path, kind: str) -> None:
    trial = trial_of(tmp_path, store_of(kind, tmp_path), *values(np.float32))
    path = tmp_path / "step_1" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(TensorDamaged):
        trial.tensor("w").reduction_value(1, "max")
    path.unlink()
    with pytest.raises(TensorDamaged):
        trial.tensor("w").reduction_value(1, "mean")


def test_a_step_is_measured_in_advance(tmp_path: Path) -> None:
    arrays = [values(np.float32)[0] for _ in range(4)]
    trial = trial_of(tmp_path, LocalStore(tmp_path), *arrays)
    reads = []
    for step, array in enumerate(arrays):
        trial.horizon = trial.judged = step
        result = trial.tensor("w").reduction_value(step, "max")
        assert result == array.max()
        small = trial.tensor("a").reduction_value(step, "sum", worker="worker_0")
        assert small == 3
        reads.append(trial.prefetched("w", step, "worker_0", Reduction("max")) is not None)
    assert reads == [False, True, True, True]


def test_ranges_are_read_from_s3(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path), REMOTE)
    trial = trial_of(tmp_path, store, *values(np.float32))
    store.reads.clear()
    assert trial.tensor("a").value(0).sum() == 3
    assert all(isinstance(byte_range, ByteRange) for _, byte_range in store.reads)
