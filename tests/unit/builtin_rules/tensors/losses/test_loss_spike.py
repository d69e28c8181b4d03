"""LossSpike: which rows are spikes, and which of them recover."""

from pathlib import Path

import pytest
from judging import judge, save

from builtin_rules import LossNotDecreasing, LossSpike
from smdebug.rules.extensions import Severity

LEVEL = [2.0, 2.02, 1.98, 2.01, 1.99] * 8
DECAY = [3.0 * 0.98**row for row in range(40)]
NEAR_ZERO = [0.02, 0.021, 0.019] * 3
LEARNT = [3.0, 3.0, 3.0, 0.02, *NEAR_ZERO * 4]
NOISY = [loss * ratio for loss, ratio in zip(DECAY, [1, 1.05, 0.95, 1.025, 0.975] * 8, strict=True)]
LASTING = [*DECAY, *[1.9, 1.91, 1.92] * 20]  # above its level by half, below half of the fall


def saved(root: Path, losses: list[float], **names: float) -> Path:
    return save(root, {step: {"loss": loss, **names} for step, loss in enumerate(losses)})


@pytest.mark.parametrize(
    ("losses", "met", "notes"),
    [
        pytest.param(LEVEL, [], [], id="level"),
        pytest.param([*LEVEL, 9.0, *LEVEL], [], [43], id="one-row"),
        pytest.param([*LEVEL[:19], 9.0, *LEVEL], [], [], id="before-20-rows"),
        pytest.param([*LEVEL, 2.3, *LEVEL], [], [], id="below-20-percent"),
        pytest.param([*LEVEL, 2.5, float("nan"), *LEVEL], [], [43], id="nan-in-a-spike"),
        pytest.param([*DECAY, *[1.9] * 3, *DECAY[30:]], [], [44], id="three-rows"),
        pytest.param(LASTING, [90], [], id="lasting"),
        pytest.param([*LEVEL, *[9.0] * 5, *LEVEL], [], [46], id="five-rows"),
        pytest.param([*LEVEL, *[9.0] * 6, *LEVEL], [47], [], id="six-rows"),
        pytest.param([*LEVEL, *[3.0, *LEVEL[:9]] * 6], [93], [43, 53, 63, 73, 83], id="often"),
        pytest.param([*LEVEL, *[9.0, *LEVEL[:9]] * 3], [60, 63], [43, 53], id="outliers"),
        pytest.param([*LEVEL, *[9.0, *LEVEL[:2]] * 3], [46], [43], id="outliers-nearby"),
        pytest.param([*LEVEL, *[9.0, *LEVEL, *LEVEL] * 3], [], [43, 124, 205], id="rare-outliers"),
        pytest.param([*LEARNT, *[1.4, *NEAR_ZERO] * 3], [], [43, 53, 63], id="single-samples"),
        pytest.param([*LEARNT, *[1.6, *NEAR_ZERO] * 3], [60, 63], [43, 53], id="half-the-start"),
        pytest.param([*NOISY, 9.0, *[2.0] * 60], [90], [], id="back-below-the-limit-only"),
    ],
)
def test_spikes(losses: list[float], met: list[int], notes: list[int], tmp_path: Path) -> None:
    result = judge(LossSpike, saved(tmp_path, losses))
    assert result.met == met
    found = [item.step for item in result.findings if item.severity is Severity.NOTE]
    assert found == notes


def test_only_lasting_leaves_out_what_recovered(tmp_path: Path) -> None:
    root = saved(tmp_path, [*LEVEL, 9.0, *LEVEL])
    assert judge(LossSpike, root, only_lasting=True).findings == []


def test_a_divergence_is_no_spike_and_a_spike_no_divergence(tmp_path: Path) -> None:
    lost = saved(tmp_path / "lost", [*DECAY, *[3.0, 3.1, 2.9] * 20])
    assert judge(LossSpike, lost).findings == []
    assert judge(LossNotDecreasing, lost).met
    lasting = saved(tmp_path / "lasting", LASTING)
    assert judge(LossNotDecreasing, lasting).met == []


def test_adversarial_losses_are_not_judged(tmp_path: Path) -> None:
    root = saved(tmp_path, [*LEVEL, 9.0, *LEVEL], generator_loss=1.0, discriminator_loss=1.0)
    result = judge(LossSpike, root)
    assert result.findings == []
    assert set(result.skipped.values()) == {"adversarial training: its losses need not fall"}
