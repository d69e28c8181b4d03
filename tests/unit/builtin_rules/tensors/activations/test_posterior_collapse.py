"""PosteriorCollapse: which latent units are active, and for how many saved steps none is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import PosteriorCollapse


def means(*deviations: float, rows: int = 32) -> "np.ndarray":
    """Return latent means with these standard deviations."""
    signs = np.where(np.arange(rows) % 2, 1.0, -1.0)
    return signs[:, None] * np.array(deviations)


DEAD = means(0.01, 0.0, 0.05)
ALIVE = means(0.01, 0.0, 0.8)


def judged(root: Path, *values: Any, name: str = "mu", **params: Any) -> Judged:
    steps = {at: {name: value} for at, value in enumerate(values)}
    return judge(PosteriorCollapse, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "params", "met"),
    [
        pytest.param([DEAD] * 21, {}, [19, 20], id="no-unit"),
        pytest.param([DEAD] * 19, {}, [], id="19-saved-steps"),
        pytest.param([ALIVE] * 22, {}, [], id="one-unit"),
        pytest.param([DEAD] * 18 + [ALIVE] + [DEAD] * 18, {}, [], id="interrupted"),
        pytest.param([means(0.5)] * 3, {"patience": 1, "threshold": 0.25}, [0, 1, 2], id="equal"),
        pytest.param([means(0.5)] * 3, {"patience": 1, "threshold": 0.249}, [], id="just-above"),
        pytest.param([DEAD * 1.02**at for at in range(30)], {}, [], id="becomes-active"),
        pytest.param([means(0.0)] * 20, {}, [19], id="constant"),
        pytest.param(
            [means(1e-4 * 1.1**at) for at in range(20)], {}, [19], id="grows-from-nothing"
        ),
        pytest.param([means(0.0, rows=7)] * 22, {}, [], id="7-rows"),
        pytest.param([DEAD * np.nan] * 22, {}, [], id="nan"),
    ],
)
def test_it_is_met_without_active_units(
    values: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, *values, **params).met == met


@pytest.mark.parametrize(
    ("name", "is_judged"),
    [
        ("mu", True),
        ("fc_mu_output_0", True),
        ("encoder.to_mu_output_0", True),
        ("z_mean/outputs", True),
        ("latent_means", True),
        ("mu_head_output_0", True),
        ("gradient/fc_mu.weight", False),
        ("fc_mu.weight", False),
        ("bn.running_mean", False),
    ],
)
def test_names_of_latent_means_are_known(name: str, is_judged: bool, tmp_path: Path) -> None:
    assert bool(judged(tmp_path, DEAD, name=name, patience=1).met) is is_judged
