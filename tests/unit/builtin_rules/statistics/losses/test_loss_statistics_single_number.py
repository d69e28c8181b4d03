"""Single numbers: the same whether a tensor is read or was measured with others."""

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rawtrial
from judging import opened, save

from builtin_rules.statistics.losses import loss_statistics as module
from builtin_rules.statistics.losses.loss_statistics import single_number
from builtin_rules.statistics.tensor_selection import saved_tensor, statistics
from rule_core.model.element_statistics import SingleNumber, ZeroCount
from rule_core.model.streaming_statistics import measure
from rule_core.trials.snapshot_view import snapshot

VALUES = (1.5, -2.0, 0.0, -0.0, math.nan, math.inf)


@pytest.mark.parametrize("dtype", [name for name in rawtrial.NUMBERS if name[:4] != "comp"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2,), (3, 2)])
def test_only_a_single_number_is_told(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.full(shape, 3).astype(rawtrial.dtype_of(dtype))
    statistic = SingleNumber()
    expected = float(array.reshape(-1)[0]) if array.size == 1 and dtype != "bool" else math.nan
    assert struct.pack("d", measure(array, [statistic])[statistic]) == struct.pack("d", expected)


def test_a_tensor_that_is_measured_with_others_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: dict[str, Any] = {f"loss{place}": np.float32(one) for place, one in enumerate(VALUES)}
    rows |= {"flag": np.bool_(1), "many": np.ones(2), "none": np.zeros(0), "text": np.array(["a"])}
    save(tmp_path, dict.fromkeys(range(4), rows))
    trial, read = opened(tmp_path), set[str]()

    def view(saved: Any, step: int, *_: object) -> Any:
        read.add(saved.name)
        return saved.tensor.view(step)

    monkeypatch.setattr(module, "view", view)
    for step in range(4):
        read.clear()
        with snapshot([trial], step):
            saved = trial.saved_by(step, sorted(rows))
            if step:
                statistics(trial, step, saved, ZeroCount())
            numbers = {key[0]: single_number(saved_tensor(trial, key), step) for key in saved}
        expected = dict(zip(sorted(rows), (None, *VALUES, None, None, None), strict=True))
        assert repr(numbers) == repr(expected)
        assert read == (set(rows) if step < 1 else set(rows) - {"loss0", "loss1", "loss5"})
