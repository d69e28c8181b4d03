"""LossScaleAtFloor: scales at the floor, scales that keep falling, and those that are healthy."""

from collections.abc import Sequence

import numpy as np
import pytest
from judging_rows import judge_rows, rows_of, verdicts

from builtin_rules import LossScaleAtFloor
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING
STEADY = [1024.0] * 20


def falling(rows: int, start: float = 2.0**60) -> list[float]:
    return [start * 0.5**row for row in range(rows)]


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        pytest.param([*STEADY, 1.0, 1.0, 1.0], [(22, ERROR)], id="at-the-floor"),
        pytest.param([*STEADY, 1.01, 1.01, 1.01], [], id="just-above"),
        pytest.param([*STEADY, 0.5, 0.25, 0.1], [(22, ERROR)], id="below-the-floor"),
        pytest.param([*STEADY, 1.0, 1.0, 2.0, 1.0, 1.0], [], id="too-short"),
        pytest.param([*STEADY, 1.0, np.nan, 1.0, np.inf, 1.0], [(24, ERROR)], id="not-finite"),
        pytest.param([1.0] * 60, [], id="constant-1-of-bfloat16"),
        pytest.param([0.5] * 60, [], id="constant-below"),
        pytest.param([*STEADY[:17], 1.0, 1.0, 1.0], [], id="in-the-first-rows"),
        pytest.param([*STEADY[:17], *[1.0] * 6], [(22, ERROR)], id="longer-than-the-first-rows"),
        pytest.param(falling(40), [(39, WARNING)], id="falls-in-each-row"),
        pytest.param(falling(39), [], id="too-few-rows"),
        pytest.param(
            [*STEADY, *np.repeat(falling(11, 2.0**40), 2)][:40], [], id="half-of-the-rows"
        ),
        pytest.param([2.0**50] * 20 + falling(11) + [2.0**49] * 9, [], id="ends-where-it-was"),
        pytest.param([*falling(17, 2.0**32), *[2.0**16] * 60], [], id="the-search-for-a-scale"),
        pytest.param([2.0 ** (16 - row // 10) for row in range(150)], [], id="a-fall-in-ten-rows"),
        pytest.param([2.0 ** (row // 9) for row in range(99)], [], id="grows-from-1"),
    ],
)
def test_verdicts(scales: Sequence[float], expected: list[tuple[int, Severity]]) -> None:
    assert verdicts(judge_rows(LossScaleAtFloor, rows_of(loss_scale=scales)))[:1] == expected


def test_parameters() -> None:
    rows = rows_of(loss_scale=[*STEADY, 128.0, 128.0])
    assert judge_rows(LossScaleAtFloor, rows, floor=128, patience=2).met == [21]
    assert judge_rows(LossScaleAtFloor, rows, floor=127, patience=2).met == []


def test_each_worker_is_judged_by_itself() -> None:
    rows = rows_of(loss_scale=[*STEADY, 1.0, 1.0, 1.0])
    judged = judge_rows(LossScaleAtFloor, rows_of(loss_scale=[1024.0] * 23), rows)
    assert len({finding.worker for finding in judged.findings}) == len(judged.findings) == 1


def test_steps_of_evaluation_are_skipped() -> None:
    rows = rows_of(loss_scale=[*STEADY, 1.0, 1.0, 1.0])
    judged = judge_rows(LossScaleAtFloor, rows, modes={0: ModeKeys.EVAL})
    assert (judged.met, len(judged.skipped)) == ([], 23)


@pytest.mark.parametrize(("factor", "offset"), [(1, 10_000), (500, 0), (7, 3)])
def test_the_numbers_of_steps_do_not_matter(factor: int, offset: int) -> None:
    rows = rows_of(loss_scale=falling(60))
    renumbered = [(step * factor + offset, values) for step, values in rows]
    judged = judge_rows(LossScaleAtFloor, renumbered)
    assert judged.met == [step * factor + offset for step in judge_rows(LossScaleAtFloor, rows).met]


def healthy(seed: int, rows: int = 3000) -> list[float]:
    """Return the scale of a run whose gradients overflow above a level that wanders."""
    rng = np.random.default_rng(seed)
    scale, scales = 2.0**16, []
    grown = 0
    bound = 2.0 ** rng.uniform(3, 15)
    for _ in range(rows):
        bound *= np.exp(0.01 * rng.standard_normal())
        overflows = scale > bound or rng.random() < 0.001
        scale, grown = (scale / 2, 0) if overflows else (scale, grown + 1)
        if grown == 200:
            scale, grown = scale * 2, 0
        scales.append(scale)
    return scales


@pytest.mark.parametrize("keep", [1, 10])
def test_healthy_scalers_are_not_accused(keep: int) -> None:
    for seed in range(2):
        rows = rows_of(loss_scale=healthy(seed)[::keep])
        assert judge_rows(LossScaleAtFloor, rows).findings == []
