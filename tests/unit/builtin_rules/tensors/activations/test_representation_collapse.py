"""RepresentationCollapse: the spread of embeddings, and for how many saved steps it is small."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import RepresentationCollapse

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(64, 16))
EVEN = NOISE
SAME = np.ones((64, 16)) + 0.01 * NOISE
BEFORE = "no embeddings that can be judged at this step"


def judged(root: Path, *values: Any, name: str = "embeddings", **params: Any) -> Judged:
    steps = {at: {name: value} for at, value in enumerate(values)}
    return judge(RepresentationCollapse, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        pytest.param([EVEN] * 8, [], id="even"),
        pytest.param([SAME] * 6, [4, 5], id="collapsed"),
        pytest.param([SAME + 0.08 * NOISE] * 6, [], id="close-but-not-collapsed"),
        pytest.param(
            [np.ones((64, 16))] + [np.ones((64, 16)) + 0.001 * NOISE] * 5, [4, 5], id="from-nothing"
        ),
        pytest.param([SAME] * 4, [], id="four-saved-steps"),
        pytest.param([SAME] * 4 + [EVEN] + [SAME] * 4, [], id="interrupted"),
        pytest.param([np.ones((64, 16))] * 5, [4], id="all-equal"),
        pytest.param([np.zeros((64, 16))] * 5, [4], id="all-zero"),
        pytest.param([SAME * 1e6] * 5, [4], id="any-length"),
        pytest.param(
            [np.ones((64, 16)) + 0.01 * 1.6**at * NOISE for at in range(6)], [], id="recovers"
        ),
    ],
)
def test_a_small_spread_meets_it_when_it_lasts(
    values: list[Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, *values).met == met


@pytest.mark.parametrize(("threshold", "met"), [(1.0, False), (1.0001, True)])
def test_a_spread_equal_to_the_threshold_does_not(
    threshold: float, met: bool, tmp_path: Path
) -> None:
    rows = np.repeat([[1.0, 1.0], [-1.0, -1.0]], 8, axis=0)  # of spread 1
    found = judged(tmp_path, *[rows] * 5, threshold=threshold - 1e-9)
    assert bool(found.met) is met


@pytest.mark.parametrize(
    "value",
    [SAME[:7], SAME * np.nan, np.ones((8, 4, 4)), np.ones(8)],
    ids=["7-rows", "nan", "sequences", "1-d"],
)
def test_what_is_no_batch_of_embeddings_is_not_judged(value: Any, tmp_path: Path) -> None:
    assert judged(tmp_path, value, patience=1).skipped == {0: BEFORE}


@pytest.mark.parametrize(
    ("name", "is_judged"),
    [
        ("encoder.projector_output_0", True),
        ("projection_head/outputs", True),
        ("z1", True),
        ("embeddings", True),
        ("gradient/projector.weight", False),
        ("model.embed_tokens_output_0", False),
        ("projector.weight", False),
    ],
)
def test_names_of_embeddings_are_known(name: str, is_judged: bool, tmp_path: Path) -> None:
    assert bool(judged(tmp_path, SAME, name=name, patience=1).met) is is_judged
