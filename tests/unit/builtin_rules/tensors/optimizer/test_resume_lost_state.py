"""ResumeLostState: what does not continue where a run is resumed, and what does."""

from collections.abc import Sequence

import numpy as np
import pytest
from judging_rows import judge_rows, verdicts
from list_source import Row

from builtin_rules import ResumeLostState
from rule_core.model.segments import numbers_of
from smdebug.rules.extensions import Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING
AT = np.arange(200)
NOISE = 1 + 0.02 * np.random.default_rng(0).standard_normal(200)
LOSSES = (0.5 + 4.5 / (1 + AT / 5)) * NOISE
NORMS = NOISE**3
RATES = 1e-3 * np.minimum(1, AT / 20) * (1 + np.cos(np.pi * AT / 400)) / 2


def resumed(
    column: str, before: Sequence[float], after: Sequence[float], at: int = 80, stop: int = 100
) -> list[Row]:
    """Return rows up to `stop`, and then those of a run that is resumed at step `at`."""
    first = [(step, {column: float(value)}) for step, value in enumerate(before[:stop])]
    return [*first, *((at + row, {column: float(value)}) for row, value in enumerate(after))]


LEVEL = float(np.median(LOSSES[60:80]))
PEAK = float(RATES.max())


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(resumed("loss", LOSSES, LOSSES[80:]), [], id="continues"),
        pytest.param(resumed("loss", LOSSES, LOSSES), [(1, 82, ERROR)], id="untrained"),
        pytest.param(
            resumed("loss", LOSSES, [5, 5, *LOSSES[82:]]), [], id="two-rows-of-an-untrained"
        ),
        pytest.param(
            resumed("loss", LOSSES, 1.5 * LOSSES[80:]), [(1, 99, WARNING)], id="stays-higher"
        ),
        pytest.param(
            resumed("loss", LOSSES, [*(1.5 * LOSSES[80:96]), *LOSSES[96:]]), [], id="comes-back"
        ),
        pytest.param(resumed("loss", LOSSES, 1.5 * LOSSES[80:99]), [], id="19-rows"),
        pytest.param(resumed("loss", LOSSES, 1.05 * LOSSES[80:]), [], id="hardly-higher"),
        pytest.param(resumed("loss", LOSSES, LOSSES, at=0), [], id="begins-again"),
        pytest.param(resumed("loss", LOSSES, 9 * LOSSES, at=9), [], id="nine-rows-before"),
        pytest.param(resumed("loss", LOSSES, 9 * LOSSES, at=10), [(1, 12, ERROR)], id="ten"),
        pytest.param(
            resumed("loss", [*LOSSES[:80], *(50 * LOSSES[80:])], LOSSES[80:]),
            [],
            id="abandoned-rows-do-not-count",
        ),
        pytest.param(
            resumed("loss", LOSSES, [np.nan, 5, np.inf, 5, 5]), [(1, 84, ERROR)], id="not-finite"
        ),
        pytest.param(resumed("eval_loss", LOSSES, LOSSES), [], id="evaluation"),
        pytest.param(resumed("grad_norm", NORMS, NORMS[80:]), [], id="norms-continue"),
        pytest.param(
            resumed("grad_norm", NORMS, 3 * NORMS[80:]), [(1, 99, WARNING)], id="norms-jump"
        ),
        pytest.param(resumed("grad_norm", NORMS, 1.8 * NORMS[80:]), [], id="norms-nearly-double"),
        pytest.param(resumed("lr", RATES, RATES[80:]), [], id="rates-continue"),
        pytest.param(resumed("lr", RATES, RATES), [(1, 84, WARNING)], id="warms-up-again"),
        pytest.param(resumed("lr", RATES, RATES, at=18), [], id="resumed-during-warm-up"),
        pytest.param(
            resumed("lr", RATES**4, np.full(30, PEAK**4), at=180, stop=190),
            [(1, 184, WARNING)],
            id="back-to-the-highest",
        ),
        pytest.param(resumed("lr", RATES, 0.1 * RATES[80:]), [], id="lowered-on-purpose"),
        pytest.param(resumed("lr", RATES, [0, *RATES[81:]]), [], id="one-zero"),
    ],
)
def test_verdicts(rows: list[Row], expected: list[tuple[int, int, Severity]]) -> None:
    judged = judge_rows(ResumeLostState, rows)
    assert [(*numbers_of(step), severity) for step, severity in verdicts(judged)] == expected


def test_patience() -> None:
    rows = resumed("loss", LOSSES, 1.5 * LOSSES[80:90])
    assert judge_rows(ResumeLostState, rows, patience=10).met
    assert not judge_rows(ResumeLostState, rows, patience=11).met


def test_each_resume_is_judged() -> None:
    rows = resumed("loss", LOSSES, LOSSES[80:150])
    again = [(120 + row, {"loss": 5.0}) for row in range(5)]
    judged = judge_rows(ResumeLostState, [*rows, *again])
    assert [numbers_of(step) for step, _ in verdicts(judged)] == [(2, 122)]


def test_runs_without_a_resume_are_skipped() -> None:
    judged = judge_rows(ResumeLostState, resumed("loss", LOSSES, []))
    assert (judged.met, len(judged.skipped)) == ([], 100)


def test_each_worker_is_judged_by_itself() -> None:
    lost = resumed("loss", LOSSES, LOSSES)
    judged = judge_rows(ResumeLostState, resumed("loss", LOSSES, LOSSES[80:]), lost)
    assert len({finding.worker for finding in judged.findings}) == len(judged.findings) == 1


@pytest.mark.parametrize(("factor", "offset"), [(50, 0), (3, 1000)])
def test_the_numbers_of_steps_do_not_matter(factor: int, offset: int) -> None:
    rows = [(factor * step + offset, values) for step, values in resumed("loss", LOSSES, LOSSES)]
    (step,) = judge_rows(ResumeLostState, rows).met
    assert numbers_of(step) == (1, 82 * factor + offset)


@pytest.mark.parametrize("keep", [1, 5, 10])
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_healthy_resumes_are_not_accused(keep: int, noise: float) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        losses = (0.5 + 4.5 / (1 + AT / 5)) * np.exp(noise * rng.standard_normal((2, 200)))
        rows = resumed("loss", losses[0], losses[1][80:], stop=110)
        kept = [row for row in rows if row[0] % keep == 0]
        assert judge_rows(ResumeLostState, kept).met == []
