"""GradientAccumulates: gradients that add up, and those that only grow or agree."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import judge

from builtin_rules import GradientAccumulates
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.rules.extensions import Severity

COLLECTIONS = {"gradients": "^gradient/"}
DRAWN = np.random.default_rng(0)
NOISE = DRAWN.standard_normal((12, 30))
TREND = np.ones((12, 30))


def written(root: Path, gradients: Any, norms: Any = None, mode: ModeKeys = ModeKeys.TRAIN) -> Path:
    writer = TrialWriter(root, collections=COLLECTIONS, end_job=False)
    for step, gradient in enumerate(gradients):
        tensors = {"gradient/fc.weight": np.asarray(gradient, np.float32)}
        if norms is not None:
            tensors["optimizer/grad_norm"] = np.float32(norms[step])
        writer.step(step * 3, tensors, mode=mode, mode_step=step)
    return root


@pytest.mark.parametrize(
    ("gradients", "met"),
    [
        pytest.param(np.cumsum(TREND, 0), [12, 15, 18, 21, 24, 27, 30, 33], id="adds-up"),
        pytest.param(
            np.cumsum(TREND + 0.3 * NOISE, 0), [12, 15, 18, 21, 24, 27, 30, 33], id="noisy"
        ),
        pytest.param(TREND, [], id="agrees"),
        pytest.param(NOISE * np.arange(1, 13)[:, None], [], id="grows"),
        pytest.param(TREND * np.geomspace(1, 0.1, 12)[:, None], [], id="agrees-and-falls"),
        pytest.param(TREND * np.linspace(1, 1.9, 12)[:, None], [], id="grows-a-little"),
        pytest.param(TREND * np.geomspace(1, 5, 12)[:, None], [], id="grows-slower-than-a-sum"),
        pytest.param(TREND * np.geomspace(1, 1e6, 12)[:, None], [], id="leaves-a-saddle"),
        pytest.param(NOISE, [], id="noise"),
        pytest.param(TREND * 0, [], id="zero"),
        pytest.param(np.cumsum(TREND, 0) * np.nan, [], id="nan"),
        pytest.param(np.cumsum(TREND, 0) * 1e25, [], id="squares-overflow"),
    ],
)
def test_gradients_that_agree_and_grow_meet_it(
    gradients: Any, met: list[int], tmp_path: Path
) -> None:
    assert judge(GradientAccumulates, written(tmp_path, gradients)).met == met


LENGTHS = np.linalg.norm(NOISE, axis=1)


@pytest.mark.parametrize(
    ("norms", "met"),
    [
        pytest.param(LENGTHS * np.arange(1, 13), [12, 15, 18, 21, 24, 27, 30, 33], id="adds-up"),
        pytest.param(LENGTHS, [], id="one-batch"),
        pytest.param(LENGTHS * 4, [], id="four-batches-each"),
        pytest.param(LENGTHS * np.tile([1.0, 2, 3, 4], 3), [], id="set-to-zero-now-and-then"),
        pytest.param(LENGTHS * np.inf, [], id="infinite"),
    ],
)
def test_the_norm_at_the_optimizer_is_compared(norms: Any, met: list[int], tmp_path: Path) -> None:
    found = judge(GradientAccumulates, written(tmp_path, NOISE, norms))
    assert found.met == met
    assert all(finding.severity is Severity.ERROR for finding in found.findings)


@pytest.mark.parametrize(
    ("name", "steps"),
    [("optimizer/1/grad_norm", []), ("loss_GAN", []), ("optimizer/lr/0", [12])],
)
def test_norms_of_one_of_several_networks_are_not_compared(
    name: str, steps: list[int], tmp_path: Path
) -> None:
    writer = TrialWriter(tmp_path, collections=COLLECTIONS, end_job=False)
    for step in range(5):
        tensors = {
            "gradient/fc.weight": NOISE[step],
            "optimizer/grad_norm": LENGTHS[step] * (step + 1),
            name: np.float32(1),
        }
        writer.step(step * 3, tensors, mode=ModeKeys.TRAIN, mode_step=step)
    assert judge(GradientAccumulates, tmp_path).met == steps


def test_the_norm_of_a_mean_over_workers_is_compared_with_no_backward(tmp_path: Path) -> None:
    for worker in range(2):
        writer = TrialWriter(
            tmp_path,
            collections=COLLECTIONS,
            num_workers=2,
            worker=f"worker_{worker}",
            end_job=False,
        )
        for step in range(5):
            tensors = {
                "gradient/fc.weight": NOISE[step],
                "optimizer/grad_norm": LENGTHS[step] * (step + 1),
            }
            writer.step(step * 3, tensors, mode=ModeKeys.TRAIN, mode_step=step)
        writer.close()
    assert judge(GradientAccumulates, tmp_path).met == []


def test_adversarial_trainings_are_not_judged(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path, end_job=False)
    for step in range(8):
        tensors = {"loss_D": 1.0, "loss_G": 1.0, "optimizer/stale_grad_norm": 1.0}
        writer.step(step, {name: np.float32(value) for name, value in tensors.items()})
    assert not judge(GradientAccumulates, tmp_path).met


LEFT = {
    "nothing": (np.zeros(8), []),
    "everything": (np.ones(8), [9, 12, 15, 18, 21]),
    "almost-nothing": (np.full(8, 0.005), []),
    "three-in-a-row": (np.tile([1.0, 1, 1, 0], 2), []),
    "nan": (np.array([1, 1, 1, np.nan, 1, 1, 1, np.inf]), []),
    "every-second-step": (np.tile([1.0, np.inf], 4)[:7], []),
}


@pytest.mark.parametrize(("left", "met"), LEFT.values(), ids=LEFT)
def test_gradients_that_were_left(left: Any, met: list[int], tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path, collections=COLLECTIONS, end_job=False)
    for step, norm in enumerate(left):
        tensors = {
            "optimizer/stale_grad_norm": np.float32(norm),
            # The older criterion alone would be met.
            "gradient/fc.weight": np.full(3, step + 1, np.float32),
        }
        if step % 2 == 0:  # accumulation: the update is at another step
            tensors["optimizer/grad_norm"] = np.float32(1)
        writer.step(step * 3, tensors, mode=ModeKeys.TRAIN, mode_step=step)
    found = judge(GradientAccumulates, tmp_path)
    assert found.met == met
    assert all(finding.limit == pytest.approx(0.01) for finding in found.findings)


def test_evidence_tells_how_far_the_norm_has_grown(tmp_path: Path) -> None:
    finding = judge(GradientAccumulates, written(tmp_path, np.cumsum(TREND, 0))).findings[0]
    assert (finding.step, finding.limit) == (12, 0.9)
    assert finding.note == "The norm has grown from 5.48 to 27.4."


def test_evaluation_is_skipped(tmp_path: Path) -> None:
    root = written(tmp_path, np.cumsum(TREND, 0), mode=ModeKeys.EVAL)
    assert {*judge(GradientAccumulates, root).skipped.values()} == {"no learning in this mode"}


@pytest.mark.parametrize(
    ("params", "met"),
    [({"cosine": 1.0}, []), ({"patience": "10"}, [30, 33]), ({"growth": 11}, [33])],
)
def test_parameters(params: dict[str, Any], met: list[int], tmp_path: Path) -> None:
    gradients = np.cumsum(TREND, 0)
    found = judge(GradientAccumulates, written(tmp_path, gradients), **params)
    assert found.met == met
