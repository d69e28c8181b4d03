"""StalledParameters: which parameters stand still while others learn."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import StalledParameters
from smdebug.rules.extensions import Severity

NAME, OTHER = "fc.weight", "head.weight"
ONES = np.ones((4, 4))
MOVING = [1.0 + 0.01 * step for step in range(8)]
STILL = [1.0] * 8
FLAG = f"parameters/requires_grad/{NAME}"


def judged(
    root: Path,
    values: list[float],
    others: list[float] = MOVING,
    *,
    gradient: Any = ONES,
    dtype: Any = np.float32,
    flag: int | None = None,
    every: int = 1,
) -> Judged:
    """Judge a parameter beside another one; both have gradients unless `gradient` is None."""
    steps = {}
    for row, (value, other) in enumerate(zip(values, others, strict=False)):
        tensors = {NAME: (ONES * value).astype(dtype), OTHER: (ONES * other).astype(np.float32)}
        tensors["gradient/head.weight"] = ONES
        tensors |= {} if gradient is None else {"gradient/fc.weight": gradient}
        tensors |= {} if flag is None or row else {FLAG: np.uint8(flag)}
        steps[row * every] = tensors
    return judge(StalledParameters, save(root, steps))


SPARSE = np.diag([1.0, 0, 0, 0])


@pytest.mark.parametrize(
    ("values", "others", "options", "met"),
    [
        pytest.param(STILL, MOVING, {}, [4, 5, 6, 7], id="stands-still"),
        pytest.param(STILL, MOVING, {"every": 50}, [200, 250, 300, 350], id="rows-count"),
        pytest.param(STILL, STILL, {}, [], id="nothing-moves"),
        pytest.param(MOVING, MOVING, {}, [], id="moves"),
        pytest.param([1 + 5e-6 * row for row in range(8)], MOVING, {}, [4, 5, 6, 7], id="creeps"),
        pytest.param(
            [1 + 5e-6 * row for row in range(8)],
            [1 + 1e-4 * row for row in range(8)],
            {},
            [],
            id="all-are-slow",
        ),
        pytest.param([1.0, 1, 1, 1, 1.1, 1.1, 1.1, 1.1], MOVING, {}, [], id="accumulates"),
        pytest.param(STILL, MOVING, {"gradient": ONES * 0}, [], id="no-pull"),
        pytest.param(STILL, MOVING, {"gradient": ONES * np.nan}, [], id="nan"),
        pytest.param(STILL, MOVING, {"gradient": SPARSE}, [], id="rare-tokens"),
        pytest.param(STILL, MOVING, {"gradient": None}, [], id="frozen"),
        pytest.param(STILL, MOVING, {"gradient": None, "flag": 0}, [], id="known-to-be-frozen"),
        pytest.param(STILL, MOVING, {"gradient": None, "flag": 1}, [4, 5, 6, 7], id="detached"),
        pytest.param(MOVING, MOVING, {"gradient": None, "flag": 1}, [], id="not-saved-gradients"),
        pytest.param([0.0] * 8, MOVING, {}, [], id="zeros"),
    ],
)
def test_parameters_that_stall_meet_it(
    values: list[float],
    others: list[float],
    options: dict[str, Any],
    met: list[int],
    tmp_path: Path,
) -> None:
    assert judged(tmp_path, values, others, **options).met == met


def test_half_precision_is_named(tmp_path: Path) -> None:
    (finding, *_) = judged(tmp_path, STILL, dtype=ml_dtypes.bfloat16).findings
    assert finding.severity is Severity.WARNING
    assert str(finding.note).endswith("bfloat16 and float16 round small updates away.")


@pytest.mark.parametrize(
    ("name", "severity"), [("encoder.weight", Severity.ERROR), ("pooler.weight", Severity.NOTE)]
)
def test_what_got_no_gradient_is_an_error(name: str, severity: Severity, tmp_path: Path) -> None:
    flags = {f"parameters/requires_grad/{name}": np.uint8(1)}
    steps = {
        row: {name: ONES[0], OTHER: ONES * MOVING[row], "gradient/head.weight": ONES}
        for row in range(5)
    }
    steps[0] |= flags
    (finding,) = judge(StalledParameters, save(tmp_path, steps)).findings
    assert (finding.step, finding.tensor, finding.severity) == (4, name, severity)


@pytest.mark.parametrize(
    ("update", "met"), [(0.0, [3, 4]), (1e-6, [3, 4]), (1e-2, []), (np.nan, [])]
)
def test_norms_of_updates_are_enough(update: float, met: list[int], tmp_path: Path) -> None:
    steps = {
        row: {
            "optimizer/update_norm/fc.weight": np.array([update, 1.0], np.float32),
            "optimizer/update_norm/head.weight": np.array([1e-2, 1.0], np.float32),
            "gradient/fc.weight": ONES,
            "gradient/head.weight": ONES,
        }
        for row in range(5)
    }
    found = judge(StalledParameters, save(tmp_path, steps))
    assert found.met == met
    assert {finding.tensor for finding in found.findings} == ({NAME} if met else set())


@pytest.mark.parametrize(
    ("least", "met"),
    [pytest.param(1e-9, [3, 4], id="dense"), pytest.param(0.0, [], id="perhaps-sparse")],
)
def test_reductions_of_gradients_are_enough(least: float, met: list[int], tmp_path: Path) -> None:
    gradients = ["gradient/fc.weight", "gradient/head.weight"]
    root = save(
        tmp_path,
        {
            row: {
                "optimizer/update_norm/fc.weight": np.array([0, 1], np.float32),
                "optimizer/update_norm/head.weight": np.array([1e-2, 1], np.float32),
            }
            for row in range(5)
        },
        reductions={
            row: {name: {("min", True): least, ("max", True): 1.0} for name in gradients}
            for row in range(5)
        },
        shapes=dict.fromkeys(gradients, (4, 4)),
    )
    assert judge(StalledParameters, root).met == met


@pytest.mark.parametrize(
    ("share", "rates", "met"),
    [
        pytest.param(0.96, [0.1] * 8, [4, 5, 6, 7], id="rounded-away"),
        pytest.param(0.96, None, [3, 4, 5, 6, 7], id="without-a-rate"),
        pytest.param(0.8, [0.1] * 8, [], id="most-move"),
        pytest.param(0.96, [0.01 * row for row in range(8)], [], id="warm-up"),
        pytest.param(1.0, [0.0] * 8, [], id="a-rate-of-zero"),
    ],
)
def test_updates_that_are_rounded_away_meet_it(
    share: float, rates: list[float] | None, met: list[int], tmp_path: Path
) -> None:
    steps: dict[int, dict[str, Any]] = {}
    for row in range(8):
        steps[row] = {f"optimizer/unchanged_share/{NAME}": np.float32(share)}
        if rates is not None:
            steps[row]["rate"] = np.float32(rates[row])
    trial = save(tmp_path, steps, collections={"learning_rates": "^rate"})
    assert judge(StalledParameters, trial).met == met
