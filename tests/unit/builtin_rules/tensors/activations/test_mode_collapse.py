"""ModeCollapse: the spread of samples, compared with its maximum so far."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import ModeCollapse

NOISE = np.random.default_rng(0).normal(size=(16, 1, 4, 4))
FIVE = [NOISE] * 5
SAME = 0.05 * NOISE


def judged(root: Path, *values: Any, name: str = "samples", **params: Any) -> Judged:
    steps = {at: {name: value} for at, value in enumerate(values)}
    return judge(ModeCollapse, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "params", "met"),
    [
        pytest.param([*FIVE, *[SAME] * 4], {}, [7, 8], id="collapses"),
        pytest.param([*FIVE, *[SAME] * 2], {}, [], id="two-saved-steps"),
        pytest.param([*FIVE, SAME, SAME, NOISE, SAME, SAME], {}, [], id="interrupted"),
        pytest.param([SAME] * 10, {}, [], id="never-had-more"),
        pytest.param([NOISE * at for at in range(12)], {}, [], id="grows"),
        pytest.param([1000 * NOISE, *[NOISE] * 12], {}, [], id="one-outlier"),
        pytest.param([*FIVE, *[NOISE / 4] * 3], {"threshold": 0.25}, [], id="equal"),
        pytest.param([*FIVE, *[NOISE / 4] * 3], {"threshold": 0.251}, [7], id="just-below"),
        pytest.param([one[:7] for one in [*FIVE, *[SAME] * 4]], {}, [], id="7-rows"),
        pytest.param([*FIVE, *[SAME * np.nan] * 4], {}, [], id="nan"),
        pytest.param([0 * NOISE] * 9, {}, [6, 7, 8], id="zero"),
    ],
)
def test_samples_that_become_alike_meet_it(
    values: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, *values, **params).met == met


@pytest.mark.parametrize(
    ("name", "is_judged"),
    [
        ("fake", True),
        ("fake_images", True),
        ("generator_output_0", True),
        ("netG_output_0", True),
        ("gan.generator_output_0", True),
        ("generator.weight", False),
        ("fake_loss", False),
        ("generator.fc_output_0", False),
    ],
)
def test_names_of_samples_are_known(name: str, is_judged: bool, tmp_path: Path) -> None:
    values = [*FIVE, *[SAME] * 3]
    assert bool(judged(tmp_path, *values, name=name).met) is is_judged
