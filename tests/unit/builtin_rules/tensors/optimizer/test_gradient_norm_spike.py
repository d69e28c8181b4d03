"""GradientNormSpike: single, lasting and repeated spikes, explosions, and healthy norms."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from judging import judge, save
from judging_rows import accused, first_of, judge_rows, rows_of, verdicts
from list_source import Row

from builtin_rules import GradientNormSpike
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Severity

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
ROWS = 200


def noisy(rows: int = ROWS, level: float = 1.0, noise: float = 0.1, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    return list(level * np.exp(noise * rng.standard_normal(rows)))


def changed(values: Sequence[float], **factors: float) -> list[float]:
    """Return values of which some rows, such as `at_70`, are multiplied."""
    result = list(values)
    for row, factor in factors.items():
        result[int(row.removeprefix("at_"))] *= factor
    return result


def raised(values: Sequence[float], begin: int, end: int, factor: float) -> list[float]:
    return [value * factor if begin <= at < end else value for at, value in enumerate(values)]


NORMS, LOSSES = noisy(), noisy(level=2.0, noise=0.02, seed=1)
FOUR = {"at_60": 30.0, "at_90": 30.0, "at_120": 30.0, "at_150": 30.0}
SIX = {**FOUR, "at_75": 30.0, "at_105": 30.0}


@pytest.mark.parametrize(
    ("norms", "losses", "expected"),
    [
        pytest.param(NORMS, LOSSES, [], id="steady"),
        pytest.param(changed(NORMS, at_70=30.0), LOSSES, [(70, NOTE)], id="one-spike"),
        pytest.param(
            changed(NORMS, at_70=30.0), raised(LOSSES, 70, 75, 2.0), [(70, NOTE)], id="recovers"
        ),
        pytest.param(
            changed(NORMS, at_70=30.0),
            raised(LOSSES, 70, ROWS, 1.5),
            [(70, NOTE), (89, WARNING)],
            id="the-loss-stays-up",
        ),
        pytest.param(
            changed(NORMS, at_70=30.0),
            raised(LOSSES, 70, ROWS, 1.1),
            [(70, NOTE)],
            id="the-loss-stays-up-by-too-little",
        ),
        pytest.param(
            raised(NORMS, 70, ROWS, 10.0), LOSSES, [(70, NOTE), (89, NOTE)], id="a-new-level"
        ),
        pytest.param(raised(NORMS, 70, ROWS, 10.0), None, [(70, NOTE), (89, WARNING)], id="lasts"),
        pytest.param(raised(NORMS, 70, 89, 10.0), None, [(70, NOTE)], id="lasts-19-rows"),
        pytest.param(
            changed(NORMS, **FOUR),
            changed(LOSSES, at_60=2, at_91=2, at_122=2, at_150=2),
            [*((at, NOTE) for at in (60, 90, 120, 150)), (150, WARNING)],
            id="repeats-and-the-loss-follows",
        ),
        pytest.param(
            changed(NORMS, **FOUR),
            changed(LOSSES, at_60=2, at_90=2, at_123=2, at_150=2),
            [(at, NOTE) for at in (60, 90, 120, 150)],
            id="the-loss-follows-three-times",
        ),
        pytest.param(
            changed(NORMS, **SIX),
            None,
            [*((at, NOTE) for at in (60, 75, 90, 105, 120, 150)), (150, WARNING)],
            id="repeats-without-losses",
        ),
        pytest.param([*NORMS[:20], *NORMS[:30]], LOSSES[:50], [], id="few-rows"),
        pytest.param(changed(NORMS, at_19=30.0), LOSSES, [], id="in-the-first-20-rows"),
        pytest.param(changed(NORMS, at_20=30.0), LOSSES, [(20, NOTE)], id="in-the-21st"),
        pytest.param(changed(NORMS, at_70=0.0, at_71=np.nan), LOSSES, [], id="not-usable"),
        pytest.param(noisy(level=1.0, noise=0.0), LOSSES, [], id="constant"),
    ],
)
def test_verdicts(
    norms: list[float],
    losses: list[float] | None,
    expected: list[tuple[int, Severity]],
) -> None:
    columns = {"grad_norm": norms} | ({} if losses is None else {"loss": losses})
    judged = judge_rows(GradientNormSpike, rows_of(**columns))
    warned = first_of(judged)
    listed = [one for one in verdicts(judged) if warned is None or one[0] <= warned]
    assert listed == expected


def test_spikes_in_a_tenth_of_the_rows_are_another_kind_of_batches() -> None:
    norms = [30.0 * norm if at % 6 == 5 else norm for at, norm in enumerate(NORMS)]
    judged = judge_rows(GradientNormSpike, rows_of(grad_norm=norms))
    assert judged.met == []
    assert len(judged.findings) > 20
    rarer = [30.0 * norm if at % 15 == 14 else norm for at, norm in enumerate(NORMS)]
    assert judge_rows(GradientNormSpike, rows_of(grad_norm=rarer)).met


@pytest.mark.parametrize(("norm", "expected"), [(4.0, []), (4.01, [30])])
def test_the_limit_of_steady_norms_is_four_times_the_level(
    norm: float, expected: list[int]
) -> None:
    judged = judge_rows(GradientNormSpike, rows_of(grad_norm=[*[1.0] * 30, norm]))
    assert [finding.step for finding in judged.findings] == expected


def test_noise_raises_the_limit() -> None:
    norms = changed(noisy(noise=1.0), at_100=20.0)
    assert judge_rows(GradientNormSpike, rows_of(grad_norm=norms)).findings == []
    lenient = judge_rows(GradientNormSpike, rows_of(grad_norm=norms), deviations=2)
    assert 100 in [finding.step for finding in lenient.findings]
    factor = judge_rows(GradientNormSpike, rows_of(grad_norm=changed(NORMS, at_70=30)), factor=40)
    assert factor.findings == []


@pytest.mark.parametrize(
    ("losses", "severity"),
    [
        pytest.param(np.linspace(2, 3, 80), ERROR, id="the-loss-rises"),
        pytest.param(np.linspace(2, 1, 80), NOTE, id="the-loss-falls"),
        pytest.param(None, WARNING, id="no-loss"),
    ],
)
def test_explosions(losses: np.ndarray | None, severity: Severity) -> None:
    norms = np.exp(0.1 * np.maximum(0, np.arange(80) - 19))  # never a spike from row to row
    columns = {"grad_norm": norms} | ({} if losses is None else {"loss": losses})
    judged = judge_rows(GradientNormSpike, rows_of(**columns))
    exploded = [finding for finding in judged.findings if "exploded" in (finding.note or "")]
    assert exploded[0].severity is severity
    assert exploded[0].measured > 100
    assert exploded[0].step == 68
    if severity is NOTE:
        assert len(exploded) == 1


def test_norms_of_the_whole_model_are_judged_alone() -> None:
    rows = rows_of(
        **{
            "grad_2.0_norm/layer": raised(NORMS, 70, ROWS, 10.0),
            "grad_2.0_norm_total": NORMS,
        }
    )
    assert judge_rows(GradientNormSpike, rows).findings == []
    alone = rows_of(**{"grad_2.0_norm/layer": raised(NORMS, 70, ROWS, 10.0)})
    assert judge_rows(GradientNormSpike, alone).met


def test_each_worker_is_judged_by_itself() -> None:
    rows = rows_of(grad_norm=NORMS)
    broken = rows_of(grad_norm=raised(NORMS, 70, ROWS, 10.0))
    judged = judge_rows(GradientNormSpike, rows, broken)
    assert len({finding.worker for finding in judged.findings}) == 1
    assert judged.met


def test_gradients_take_the_place_of_norms(tmp_path: Path) -> None:
    values = raised(NORMS, 60, 90, 10.0)[:90]
    steps = {
        at: {"gradient/a": np.full(4, 0.3 * norm), "gradient/b": np.full(9, 0.2 * norm)}
        for at, norm in enumerate(values)
    }
    steps[30] = {"gradient/a": np.full(4, 90.0)}  # another set of gradients
    judged = judge(GradientNormSpike, save(tmp_path, steps))
    assert [finding.step for finding in judged.findings] == [60, 79]
    assert judged.findings[0].measured == pytest.approx(values[60] * np.sqrt(0.36 + 0.36))


def test_rows_of_evaluation_and_without_norms_are_skipped() -> None:
    rows: list[Row] = [(0, {"loss": 1.0}), (1, {"grad_norm": 1.0}), (2, {"eval_grad_norm": 9.0})]
    assert set(judge_rows(GradientNormSpike, rows).skipped) == {0, 1, 2}
    norms = rows_of(grad_norm=raised(NORMS, 70, ROWS, 10.0))
    assert not judge_rows(GradientNormSpike, norms, modes={0: ModeKeys.EVAL}).findings


def test_the_numbers_of_steps_do_not_matter() -> None:
    rows = rows_of(grad_norm=raised(NORMS, 70, ROWS, 10.0))
    renumbered = [(7 * step + 1000, values) for step, values in rows]
    assert judge_rows(GradientNormSpike, renumbered).met == [
        7 * step + 1000 for step in judge_rows(GradientNormSpike, rows).met
    ]


def healthy(seed: int) -> list[Row]:
    """Return norms that fall by 100, grow by 10, are heavy-tailed, or of two kinds of batches."""
    rng = np.random.default_rng(seed)
    rows = 300
    at = np.arange(rows)
    tails = rng.standard_t(3, rows)
    level = [
        -np.log(100) * np.minimum(1, at / 60),
        np.log(10) * at / rows,
        0.2 * tails,
        np.where(rng.random(rows) < 0.3, np.log(8), 0.0),
    ][seed % 4]
    norms = np.exp(level + 0.15 * rng.standard_normal(rows))
    losses = 2.5 / np.sqrt(1 + at / 20) * (1 + 0.1 * rng.standard_normal(rows))
    return rows_of(grad_norm=norms, loss=losses)


@pytest.mark.parametrize("keep", [1, 5])
def test_healthy_norms_are_not_accused(keep: int) -> None:
    assert accused(GradientNormSpike, lambda seed: healthy(seed)[::keep], 4) == []
