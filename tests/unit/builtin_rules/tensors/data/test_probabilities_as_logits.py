"""ProbabilitiesAsLogits: which inputs of losses are of the wrong kind, and for how long."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import ProbabilitiesAsLogits
from smdebug.rules.extensions import Severity

CROSS, NLL, BCE = (
    f"{name}_input_0" for name in ("CrossEntropyLoss", "NLLLoss", "BCEWithLogitsLoss")
)
LOGITS = np.random.default_rng(0).normal(size=(16, 5))
EXP = np.exp(LOGITS)
SHARES = EXP / EXP.sum(axis=1, keepdims=True)
MAPS = np.moveaxis(np.tile(SHARES, (4, 4, 1, 1)), (2, 3), (0, 1))  # (rows, classes, 4, 4)
WARNING, ERROR, NOTE = Severity.WARNING, Severity.ERROR, Severity.NOTE


def judged(root: Path, name: str, *values: Any, **params: Any) -> Judged:
    steps = {at: {name: value} for at, value in enumerate(values)}
    return judge(ProbabilitiesAsLogits, save(root, steps), **params)


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        pytest.param(CROSS, LOGITS, None, id="logits"),
        pytest.param(CROSS, SHARES, WARNING, id="softmax"),
        pytest.param("criterion.SoftTargetCrossEntropy_input_0", SHARES, WARNING, id="other-class"),
        pytest.param(CROSS, MAPS, WARNING, id="softmax-of-maps"),
        pytest.param(CROSS, SHARES.astype(np.float16), WARNING, id="half-precision"),
        pytest.param(CROSS, SHARES * 1.0009, WARNING, id="within-the-tolerance"),
        pytest.param(CROSS, SHARES * 1.002, None, id="beyond-the-tolerance"),
        pytest.param(CROSS, np.log(SHARES), NOTE, id="log-softmax"),
        pytest.param(CROSS, np.ones((16, 1)), None, id="one-class"),
        pytest.param(CROSS, np.abs(LOGITS), None, id="positive-logits"),
        pytest.param(NLL, np.log(SHARES), None, id="nll-of-log-softmax"),
        pytest.param(NLL, LOGITS, ERROR, id="nll-of-logits"),
        pytest.param(NLL, SHARES, ERROR, id="nll-of-softmax"),
        pytest.param("GaussianNLLLoss_input_0", LOGITS, None, id="gaussian-nll"),
        pytest.param("MSELoss_input_0", SHARES, None, id="mse"),
        pytest.param("CrossEntropyLoss_input_1", SHARES, None, id="labels"),
    ],
)
def test_predictions_of_the_wrong_kind_are_reported(
    name: str, value: "np.ndarray", severity: Severity | None, tmp_path: Path
) -> None:
    found = judged(tmp_path, name, value, value, value)
    severities = [finding.severity for finding in found.findings]
    assert severities == ([] if severity is None else [severity])
    assert found.met == ([2] if severity in {WARNING, ERROR} else [])


@pytest.mark.parametrize(
    ("values", "params", "met"),
    [
        pytest.param([SHARES] * 2, {}, [], id="two-saved-steps"),
        pytest.param([SHARES, SHARES, LOGITS, SHARES, SHARES], {}, [], id="interrupted"),
        pytest.param([SHARES, SHARES, LOGITS * np.nan, SHARES], {}, [3], id="nan-in-between"),
        pytest.param([SHARES[:7]] * 3, {}, [], id="7-rows"),
        pytest.param([SHARES[:7]] * 3, {"rows": 7, "patience": 2}, [1, 2], id="parameters"),
    ],
)
def test_one_batch_is_not_enough(
    values: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, CROSS, *values, **params).met == met


@pytest.mark.parametrize(
    ("value", "steps", "met"),
    [
        pytest.param(SHARES[:, 0], 11, [9, 10], id="sigmoid"),
        pytest.param(SHARES[:, 0], 9, [], id="untrained-logits"),
        pytest.param(SHARES[:, 0] - 0.5, 11, [], id="negative-ones"),
        pytest.param(SHARES[:, 0] + 1, 11, [], id="above-1"),
        pytest.param(np.linspace(0, 1, 16), 10, [9], id="0-and-1"),
    ],
)
def test_binary_logits_between_0_and_1_must_last(
    value: "np.ndarray", steps: int, met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, BCE, *[value] * steps).met == met
